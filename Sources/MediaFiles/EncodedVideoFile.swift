package import MediaCore

/// Writes compressed pictures to a file that is playable at any time, however the program ends.
///
/// Confine to one thread. `EncodedVideoFormat.makeWriter` makes it.
package protocol EncodedVideoWriter: AnyObject {
    /// Adds a frame, directly from its memory, in one system call.
    ///
    /// The first frame has time 0. Times in the file strictly increase: a frame that is not later than the one before
    /// is written one unit of the file's clock after it. The first frame must be a keyframe. Later the caller may leave
    /// out frames that no other frame refers to.
    ///
    /// - Throws: `startsWithoutKeyframe`, `storageFull`, `readerGone`, `systemFailure`. The file then ends with the
    ///   last whole frame; the caller may finish it, or continue with a keyframe.
    func write(_ frame: EncodedFrame) throws(MediaFileError)

    /// Completes header and index, unless the file is a pipe, and ends the writing; a second call does nothing.
    ///
    /// Without this call, as after a crash, the file can still be played, but players do not know its length.
    ///
    /// - Throws: `storageFull`, `systemFailure`; the file then plays as if `finish` had not been called.
    func finish() throws(MediaFileError)
}

/// A file's description of a compressed picture.
package struct StoredFrame: Hashable, Sendable {
    /// When the picture is shown, counted from the file's time 0.
    package var time: Duration
    /// Whether the picture can be decoded without any other, by its own first byte (RFC 6386, section 9.1).
    package var isKeyframe: Bool
    /// The size of the compressed picture.
    package var size: DataSize
}

/// The names of a codec in files.
package struct StoredVideoCodec: Hashable, Sendable {
    /// The `CodecID` of a WebM track.
    let webmName: String
    /// The four characters in the header of an IVF file.
    package let ivfName: String

    /// VP8 (RFC 6386).
    package static let vp8 = StoredVideoCodec(webmName: "V_VP8", ivfName: "VP80")

    /// The codecs whose files are read and written.
    static let all = [vp8]
}

/// A file's name for a codec that is not one of ours, and the names that a file of this kind may use.
struct UnknownCodec: Error, CustomStringConvertible {
    let name: String
    let known: [String]

    /// A part of a sentence: "VP90 video, not VP80".
    var description: String { "\(name) video, not \(known.joined(separator: " or "))" }
}

extension StoredVideoCodec {
    /// The codec that a file names `name`; `field` is the name that files of this kind use.
    init(named name: String, in field: (StoredVideoCodec) -> String) throws(UnknownCodec) {
        guard let known = Self.all.first(where: { field($0) == name }) else {
            throw UnknownCodec(name: name, known: Self.all.map(field))
        }
        self = known
    }
}

/// Reads compressed pictures one by one from a file.
///
/// Confine to one thread. `EncodedVideoFormat.openReader` makes it.
package protocol EncodedVideoReader: AnyObject {
    /// The size of the pictures, as the file's header states it; a keyframe may state another.
    var dimensions: Dimensions { get }
    /// The codec of the pictures.
    var codec: StoredVideoCodec { get }
    /// Where another file begins that was appended to this one, in bytes; `nil` until the last frame was read, and if
    /// there is none.
    ///
    /// The frames of that file are not read before `beginNextFile`.
    var nextFileOffset: Int64? { get }

    /// Moves to the next frame.
    ///
    /// - Returns: `nil` at the end of the file, and where another one was appended.
    /// - Throws: `truncated` in the middle of a frame, `damaged`, `unsupported`, `systemFailure`; every later call
    ///   throws the same error.
    func nextFrame() throws(MediaFileError) -> StoredFrame?

    /// Goes on with the file that was appended to this one, as by a program before a pipe that was started again.
    ///
    /// In a pipe that program may have been killed in the middle of a frame, which is then left out.
    ///
    /// - Returns: `false` if there is none, as far as is known.
    /// - Throws: As `EncodedVideoFormat.openReader`, but not `notFound` and `notPermitted`.
    func beginNextFile() throws(MediaFileError) -> Bool

    /// Lends the compressed picture of the current frame; empty before the first and after the last.
    func withFrameBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result
}

/// A file format for compressed video.
package enum EncodedVideoFormat: String, CaseIterable, Sendable {
    /// WebM (a kind of Matroska), which browsers and players open.
    case webm
    /// IVF, the plain format of the codecs' own tools.
    case ivf

    /// Creates a file of compressed pictures and writes its header.
    ///
    /// - Parameters:
    ///   - path: Must not exist yet; `-` is standard output.
    ///   - dimensions: The size that the header states, both sides in 1...16383; players open a window of this size.
    ///     Frames may have other sizes, which change with a keyframe: VP8 states the size in each keyframe.
    ///   - codec: The codec of the pictures.
    /// - Returns: The file's writer, with the file open.
    /// - Throws: `fileExists`, `notFound`, `notPermitted`, `storageFull`, `systemFailure`.
    package func makeWriter(
        path: String,
        dimensions: Dimensions,
        codec: StoredVideoCodec
    ) throws(MediaFileError) -> any EncodedVideoWriter {
        switch self {
        case .webm: try WebMWriter(path: path, dimensions: dimensions, codec: codec)
        case .ivf: try IVFWriter(path: path, dimensions: dimensions, codec: codec)
        }
    }

    /// Opens a file of compressed pictures, in any of the formats, and reads its header.
    ///
    /// - Parameters:
    ///   - path: `-` is standard input.
    ///   - isStopRequested: Called while the reader waits for a pipe's writer. Once it returns true, this and
    ///     `nextFrame` throw `interrupted`. Without it they wait as long as necessary.
    /// - Returns: A reader before the first frame.
    /// - Throws: `notFound`, `notPermitted`, `wrongFormat`, `unsupported`, `damaged`, `truncated`, `systemFailure`,
    ///   `interrupted`.
    package static func openReader(
        path: String,
        isStopRequested: (@Sendable () -> Bool)? = nil
    ) throws(MediaFileError) -> any EncodedVideoReader {
        var file = try InputFile(path: path, isStopRequested: isStopRequested)
        guard try file.load(4, .open) else {
            let reason = "it has only \(file.available) bytes; it is no video file"
            let isSilent = path == "-" && file.available == 0
            let advice = isSilent ? "nothing came; check the program before the pipe" : reason
            throw MediaFileError(.wrongFormat, .open, path, advice)
        }
        switch file.bigEndian(at: 0, count: 4) {
        case UInt64(IVF.signature): return try IVFReader(file)
        case UInt64(EBMLID.header.rawValue): return try WebMReader(file)
        default:
            let isY4M = file.bigEndian(at: 0, count: 4) == 0x5955_5634
            let reason =
                isY4M
                ? "it is Y4M, which is not compressed: play it with a source that encodes it"
                : "its content is neither WebM nor IVF; it is damaged, or another kind of file"
            throw MediaFileError(.wrongFormat, .open, path, reason)
        }
    }
}

/// Turns capture times into a file's times.
struct FileClock {
    /// Units of the file's clock in a second; at most 1,000,000,000.
    let unitsPerSecond: Int64
    /// The time of the newest frame, in units; `nil` before the first.
    private(set) var newest: Int64?
    /// The duration of the file, in units; the newest frame counts as long as the one before.
    var duration: Int64 { newest.map { max($0 + newestInterval, 1) } ?? 0 }

    private var newestInterval: Int64 = 0
    private var start: MonotonicInstant?

    /// Creates a clock with the given unit that has seen no frame yet.
    init(unitsPerSecond: Int64) {
        self.unitsPerSecond = unitsPerSecond
    }

    /// The time in the file, in units, of a frame captured at `timestamp`.
    func time(of timestamp: MonotonicInstant) -> Int64 {
        guard let start, let newest else { return 0 }
        let second: Int64 = 1_000_000_000
        let (seconds, rest) = timestamp.duration(since: start).wholeNanoseconds.quotientAndRemainder(dividingBy: second)
        return max(seconds * unitsPerSecond + (rest * unitsPerSecond + second / 2) / second, newest + 1)
    }

    /// Records that the frame captured at `timestamp` was written with `time`.
    mutating func wrote(_ time: Int64, of timestamp: MonotonicInstant) {
        if start == nil { start = timestamp }
        newestInterval = time - (newest ?? time)
        newest = time
    }
}

/// The bytes of a small header, in memory that is reused.
struct HeaderBytes {
    private(set) var bytes: [UInt8] = []

    /// Forgets the bytes, keeping the memory.
    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Adds one byte.
    mutating func append(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// Adds the characters of `text`.
    mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Adds the bytes of `other`.
    mutating func append(_ other: HeaderBytes) {
        bytes.append(contentsOf: other.bytes)
    }

    /// Adds the low `count` bytes of `value`, most significant first.
    mutating func append(bigEndian value: UInt64, count: Int) {
        for place in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(place)))) }
    }

    /// Adds all bytes of `value`, least significant first.
    mutating func append(littleEndian value: some FixedWidthInteger & UnsignedInteger) {
        for shift in stride(from: 0, to: value.bitWidth, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }
}

/// The largest compressed picture that is read: 64 MiB, in bytes.
///
/// A 16383x16383 keyframe at half a bit a pixel is a quarter of that.
let largestFrame = 64 << 20
