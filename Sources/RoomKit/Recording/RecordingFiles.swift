import Glibc
import MediaCore
import MediaFiles

/// Writes the files of one recording, one after the other; confined to the recorder's thread.
struct RecordingFiles: ~Copyable {
    private enum Video {
        case none
        case compressed(any EncodedVideoWriter)
        case raw(Y4MWriter)
        case pictures(PNGWriter, path: String)
    }

    /// The limit for files with the same name; more would be a mistake.
    private static let maximumFiles = 10_000

    private let directory: String
    private let name: String
    private let format: TrackRecorder.Format
    private let codec: TrackCodec
    private let frameRate: FrameRate
    private var filesOpened = 0
    private var dimensions: Dimensions?
    private var video = Video.none
    private var picturesWritten = 0
    private var log: FrameLogWriter?

    init(directory: String, name: String, format: TrackRecorder.Format, codec: TrackCodec, frameRate: Double) {
        self.directory = directory
        self.name = name
        self.format = format
        self.codec = codec
        let rate = frameRate.isFinite && (0.001...1000).contains(frameRate) ? frameRate : 30
        self.frameRate = FrameRate(numerator: Int((rate * 1000).rounded()), denominator: 1000)
    }

    /// Writes a frame; returns the path of a new file if this frame began one.
    mutating func write(_ frame: ReceivedFrame) throws(RecordingError) -> String? {
        let newFile = try beginFile(for: frame)
        do throws(MediaFileError) {
            switch video {
            case .none: return nil
            case .compressed(let writer): try writer.write(frame.frame)
            case .raw(let writer): if let picture = frame.picture { try writer.write(picture) }
            case .pictures(let writer, let path):
                guard let picture = frame.picture else { return nil }
                picturesWritten += 1
                try writer.write(picture, to: self.path(ofFile: path, number: picturesWritten))
            }
        } catch {
            throw RecordingError(error)
        }
        try log?.write(frame)
        return newFile
    }

    /// Completes the current file.
    mutating func finish() throws(RecordingError) {
        let current = video
        video = .none
        log = nil
        guard case .compressed(let writer) = current else { return }
        do {
            try writer.finish()
        } catch {
            throw RecordingError(error)
        }
    }

    /// Closes the current file after an error, ignoring further errors.
    mutating func abandon() {
        try? finish()
    }

    /// Begins a new file if there is none, or the picture's size has changed.
    private mutating func beginFile(for frame: ReceivedFrame) throws(RecordingError) -> String? {
        let size: Dimensions? =
            if let picture = frame.picture {
                picture.dimensions
            } else {
                frame.frame.withBytes { codec.keyframeDimensions($0) }
            }
        guard let size, size != dimensions else { return nil }
        try finish()
        dimensions = size
        picturesWritten = 0
        while true {
            filesOpened += 1
            let path = "\(directory)/\(name)" + (filesOpened == 1 ? "" : "-\(filesOpened)")
            if try begin(path, size) { return self.path(ofFile: path, number: 1) }
        }
    }

    /// Creates the files with the name `path`; `false` if one of them exists already.
    ///
    /// The log is created first, because every format has one. For single pictures there is no file with the bare name.
    private mutating func begin(_ path: String, _ size: Dimensions) throws(RecordingError) -> Bool {
        let logPath = "\(path).frames.jsonl"
        do throws(RecordingError) {
            log = try FrameLogWriter(path: logPath)
        } catch {
            guard error.isFileThere, filesOpened < Self.maximumFiles else { throw error }
            return false
        }
        do throws(MediaFileError) {
            video = try open(path, size)
        } catch {
            log = nil
            unsafe unlink(logPath)
            guard error.code == .fileExists, filesOpened < Self.maximumFiles else { throw RecordingError(error) }
            return false
        }
        return true
    }

    private func path(ofFile path: String, number: Int) -> String {
        guard format == .png else { return "\(path).\(format.rawValue)" }
        let digits = String(number)
        return "\(path)-\(String(repeating: "0", count: max(0, 6 - digits.count)))\(digits).png"
    }

    private func open(_ path: String, _ size: Dimensions) throws(MediaFileError) -> Video {
        switch format {
        case .webm: .compressed(try makeWriter(.webm, path, size))
        case .ivf: .compressed(try makeWriter(.ivf, path, size))
        case .y4m: .raw(try Y4MWriter(path: "\(path).y4m", dimensions: size, frameRate: frameRate))
        case .png: .pictures(PNGWriter(), path: path)
        }
    }

    private func makeWriter(
        _ format: EncodedVideoFormat,
        _ path: String,
        _ size: Dimensions
    ) throws(MediaFileError) -> any EncodedVideoWriter {
        try format.makeWriter(path: "\(path).\(format.rawValue)", dimensions: size, codec: codec.stored)
    }
}
