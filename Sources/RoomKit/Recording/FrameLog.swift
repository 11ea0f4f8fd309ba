import FoundationEssentials
import Glibc
package import MediaCore
import MediaFiles
import RoomProtocol

/// A line of a dump's `.frames.jsonl`, which describes one received frame; times are in microseconds of room time.
package struct FrameLogEntry: Codable, Hashable, Sendable {
    /// The frame's number among the track's encoded frames.
    package var number: UInt32
    /// The frame's simulcast layer, in which its number counts; `nil` in logs of older programs, which received one.
    package var simulcastLayer: Int?
    /// The frame's temporal layer.
    package var layer: Int
    /// The number of the newest frame of temporal layer 0, this frame included.
    package var base: Int
    /// Whether the frame decodes without any other.
    package var key: Bool
    /// Whether the frame shows the same picture as the one before, because the source stood still; `nil` in logs of
    /// older programs.
    package var repeated: Bool?
    /// Whether the frame shows a slate instead of the camera's picture; `nil` in logs of older programs.
    package var substitute: Bool?
    /// The length of the compressed frame.
    package var bytes: Int
    /// The width of its picture; `nil` in logs of older programs.
    package var width: Int?
    /// The height of its picture; `nil` in logs of older programs.
    package var height: Int?
    /// When the picture was captured.
    package var captured: Int64
    /// When the frame's last byte arrived.
    package var received: Int64
    /// When the frame was decoded; `nil`, written as `null`, if it was not.
    package var decoded: Int64?
    /// Whether the picture was shown, and not left out for a newer one or as too late; `nil` in logs of older programs,
    /// which showed all but those from the relay's cache.
    package var shown: Bool?
    /// Whether the frame came from the relay's cache; such a frame is decoded and not shown, except the last one if the
    /// source stands still.
    package var catchUp: Bool
    /// `same-host` if capture and decoding read the same clock; `estimated` if the offset is estimated.
    package var clock: String
    /// The largest error of the offset at this end, in microseconds; `nil` in logs of older programs.
    package var clockError: Int64?
    /// The clockwise turn, in degrees, by which a viewer turned the decoded picture; `nil` in logs of older programs.
    package var rotation: Int?
    /// Whether a viewer exchanged left and right after that; `nil` in logs of older programs.
    package var mirrored: Bool?
    /// The application's bytes that came with the frame, in base64; `nil`, written as `null`, for none.
    package var metadata: String?
}

extension FrameLogEntry {
    init(_ frame: ReceivedFrame) {
        let info = frame.frame.info
        func microseconds(_ instant: MonotonicInstant) -> Int64 { frame.clock.roomTime(at: instant).microseconds }
        number = info.number
        simulcastLayer = Int(info.simulcastLayer)
        layer = Int(info.temporalLayer)
        base = Int(info.baseLayerIndex)
        key = info.isKeyframe
        repeated = info.isRepeat
        substitute = info.isSubstitute
        bytes = frame.frame.size.bytes
        width = frame.dimensions?.width
        height = frame.dimensions?.height
        captured = microseconds(info.timestamp)
        received = microseconds(frame.received)
        decoded = frame.decoded.map { microseconds($0) }
        shown = frame.isShown
        catchUp = frame.isCatchUp
        clock = frame.clock.basis.rawValue
        clockError = frame.clock.errorBound.wholeNanoseconds / 1000
        let extensions = frame.extensions
        rotation = extensions.rotation.rawValue
        mirrored = extensions.isMirrored
        metadata = extensions.metadata.map { Data($0.bytes).base64EncodedString() }
    }

    /// Whether a viewer saw the picture, and live: not from the relay's cache.
    package var isShown: Bool { decoded != nil && !catchUp && shown != false }

    /// The size of the picture, if the log says it.
    package var dimensions: Dimensions? {
        guard let width, let height else { return nil }
        return Dimensions(width: width, height: height)
    }

    /// Writes all keys, `decoded` and `metadata` also without a value: readers recognise a frame that was not decoded
    /// by its `null`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(number, forKey: .number)
        try container.encodeIfPresent(simulcastLayer, forKey: .simulcastLayer)
        try container.encode(layer, forKey: .layer)
        try container.encode(base, forKey: .base)
        try container.encode(key, forKey: .key)
        try container.encodeIfPresent(repeated, forKey: .repeated)
        try container.encodeIfPresent(substitute, forKey: .substitute)
        try container.encode(bytes, forKey: .bytes)
        try container.encodeIfPresent(width, forKey: .width)
        try container.encodeIfPresent(height, forKey: .height)
        try container.encode(captured, forKey: .captured)
        try container.encode(received, forKey: .received)
        try container.encode(decoded, forKey: .decoded)
        try container.encodeIfPresent(shown, forKey: .shown)
        try container.encode(catchUp, forKey: .catchUp)
        try container.encode(clock, forKey: .clock)
        try container.encodeIfPresent(clockError, forKey: .clockError)
        try container.encodeIfPresent(rotation, forKey: .rotation)
        try container.encodeIfPresent(mirrored, forKey: .mirrored)
        try container.encode(metadata, forKey: .metadata)
    }

    private enum CodingKeys: CodingKey {
        case number, simulcastLayer, layer, base, key, bytes, width, height, captured, received, decoded, shown, catchUp
        case clock, clockError, rotation, mirrored, metadata, repeated, substitute
    }

    /// Reads the lines of a `.frames.jsonl`; an incomplete last line is ignored.
    package static func read(_ text: String) throws -> [FrameLogEntry] {
        // As bytes: a line feed after a carriage return is no `Character` of its own.
        var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true)
        if let last = text.utf8.last, last != UInt8(ascii: "\n") { lines.removeLast() }
        let decoder = JSONDecoder()
        return try lines.map { try decoder.decode(FrameLogEntry.self, from: Data($0)) }
    }
}

/// Writes a dump's `.frames.jsonl`, one whole line with each `write` system call.
struct FrameLogWriter: ~Copyable {
    private let descriptor: Int32
    private let path: String
    /// Whether the file had a name at first.
    ///
    /// Some file systems count no links, so a missing name means that the file was removed only if it had one.
    private let hasName: Bool
    private let encoder = JSONEncoder()

    init(path: String) throws(RecordingError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw RecordingError(MediaFileError(.create, path, status: errno)) }
        self.init(adopting: descriptor, path: path)
    }

    /// Takes over `descriptor`, which is open for writing.
    init(adopting descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
        hasName = Self.linkCount(of: descriptor).map { $0 > 0 } ?? false
        encoder.outputFormatting = .sortedKeys
    }

    deinit {
        close(descriptor)
    }

    func write(_ frame: ReceivedFrame) throws(RecordingError) {
        let line: [UInt8]
        do {
            line = try Array(encoder.encode(FrameLogEntry(frame))) + [UInt8(ascii: "\n")]
        } catch {
            preconditionFailure("a frame's numbers cannot be encoded: \(error)")
        }
        if hasName, Self.linkCount(of: descriptor) == 0 { throw RecordingError(MediaFileError(removed: path)) }
        let written = unsafe line.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard written == line.count else {
            throw RecordingError(MediaFileError(.write, path, status: written < 0 ? errno : ENOSPC))
        }
    }

    /// The names that a file has; `nil` if that cannot be found out.
    private static func linkCount(of descriptor: Int32) -> Int? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? Int(status.st_nlink) : nil
    }
}
