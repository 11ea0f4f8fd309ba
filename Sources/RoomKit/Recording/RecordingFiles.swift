import Glibc
import MediaCore
import MediaFiles
import RoomProtocol
import VideoProcessing

/// Writes the file of one recording, or its pictures, and the log beside it; confined to the recorder's thread.
///
/// The file goes on when the pictures change their size. In compressed formats each keyframe states the size. Raw
/// pictures are scaled to the size of the file. Single pictures keep their size.
struct RecordingFiles: ~Copyable {
    private enum Video {
        case none
        case compressed(any EncodedVideoWriter)
        case raw(Y4MWriter, Dimensions)
        case pictures(PNGWriter, path: String)
    }

    /// The limit for files with the same name; more would be a mistake.
    private static let maximumFiles = 10_000

    private let directory: String
    private let name: String
    private let format: TrackRecorder.Format
    private let codec: TrackCodec
    private let frameRate: FrameRate
    /// The size as published; `nil` if it is not usable.
    private let announced: Dimensions?
    private let scaler = FrameScaler()
    private var namesTried = 0
    private var video = Video.none
    private var picturesWritten = 0
    private var time: RecordingTime
    private var log: FrameLogWriter?

    /// Prepares a recording of a track that began at `start`.
    ///
    /// `announced` and `frameRate` are as published, and may have any value.
    init(
        directory: String,
        name: String,
        format: TrackRecorder.Format,
        codec: TrackCodec,
        announced: Dimensions,
        frameRate: Double,
        start: MonotonicInstant
    ) {
        time = RecordingTime(start: start)
        self.directory = directory
        self.name = name
        self.format = format
        self.codec = codec
        let limits = 1...Dimensions.largestCodable.width
        let isUsable = limits.contains(announced.width) && limits.contains(announced.height) && codec.allows(announced)
        self.announced = isUsable ? announced : nil
        let rate = frameRate.isFinite && (0.001...1000).contains(frameRate) ? frameRate : 30
        self.frameRate = FrameRate(numerator: Int((rate * 1000).rounded()), denominator: 1000)
    }

    /// A file that a frame began.
    struct BegunFile {
        var path: String
        /// Whether it is the file of a video, or the first picture of a recording.
        var isFirst: Bool
    }

    /// Writes a frame.
    ///
    /// - Returns: The file that this frame began, if it did.
    /// - Throws: `RecordingError` if a file cannot be made or written.
    mutating func write(_ frame: ReceivedFrame) throws(RecordingError) -> BegunFile? {
        var begun = try beginFile(for: frame).map { BegunFile(path: $0, isFirst: true) }
        do throws(MediaFileError) {
            switch video {
            case .none: return nil
            case .compressed(let writer):
                var moved = frame.frame
                moved.info.timestamp = time.moved(frame)
                try writer.write(moved)
            case .raw(let writer, let size):
                if let picture = frame.picture { try writer.write(scaler.fit(picture, to: size)) }
            case .pictures(let writer, let path):
                guard let picture = frame.picture else { return nil }
                picturesWritten += 1
                let file = self.path(ofFile: path, number: picturesWritten)
                try writer.write(picture, to: file)
                begun = begun ?? BegunFile(path: file, isFirst: false)
            }
        } catch {
            throw RecordingError(error)
        }
        try log?.write(frame)
        return begun
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

    /// Begins the file with the first frame that can be decoded alone.
    ///
    /// Its header states the size as published, so that players open a window that suits the largest pictures.
    private mutating func beginFile(for frame: ReceivedFrame) throws(RecordingError) -> String? {
        guard case .none = video else { return nil }
        let size: Dimensions? =
            if let picture = frame.picture {
                picture.dimensions
            } else {
                frame.frame.withBytes { codec.keyframeDimensions($0) }
            }
        guard let size else { return nil }
        while true {
            namesTried += 1
            let path = "\(directory)/\(name)" + (namesTried == 1 ? "" : "-\(namesTried)")
            if try begin(path, headerSize(for: frame, size)) { return self.path(ofFile: path, number: 1) }
        }
    }

    /// The size for the file's header; `size` is that of the first picture.
    ///
    /// The size as published is that of upright pictures. Compressed ones stay as they were encoded.
    private func headerSize(for frame: ReceivedFrame, _ size: Dimensions) -> Dimensions {
        guard let announced else { return size }
        let isTurned = (format == .webm || format == .ivf) && frame.extensions.rotation.swapsDimensions
        return isTurned ? announced.transposed : announced
    }

    /// Creates the files with the name `path`; `false` if one of them exists already.
    ///
    /// The log is created first, because every format has one. For single pictures there is no file with the bare name.
    private mutating func begin(_ path: String, _ size: Dimensions) throws(RecordingError) -> Bool {
        let logPath = "\(path).frames.jsonl"
        do throws(RecordingError) {
            log = try FrameLogWriter(path: logPath)
        } catch {
            guard error.isFileThere, namesTried < Self.maximumFiles else { throw error }
            return false
        }
        do throws(MediaFileError) {
            video = try open(path, size)
        } catch {
            log = nil
            unsafe unlink(logPath)
            // Without room for its header, there is an empty file.
            if error.code == .storageFull, format != .png { unsafe unlink(self.path(ofFile: path, number: 0)) }
            guard error.code == .fileExists, namesTried < Self.maximumFiles else { throw RecordingError(error) }
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
        case .y4m: .raw(try Y4MWriter(path: "\(path).y4m", dimensions: size, frameRate: frameRate), size)
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
