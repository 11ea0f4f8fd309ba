package import MediaCore

/// The layout of IVF, little-endian throughout (libvpx `ivfenc.c`, `ivfdec.c`).
enum IVF {
    /// `DKIF`, most significant byte first.
    static let signature: UInt32 = 0x444B_4946
    /// The file header's length, in bytes.
    static let headerLength = 32
    /// The offset of the length in the file header, 32 bits.
    ///
    /// libvpx writes the number of frames there and reads nothing. ffmpeg writes and reads the duration in units of the
    /// file's clock. With our clock, a number of frames would make players show a duration close to zero.
    static let durationOffset: Int64 = 24
    /// A frame header's length, in bytes: the picture's length, 32 bits, then its time, 64 bits.
    static let frameHeaderLength = 12
    /// The units per second of our times: RTP's video clock, with which the length's 32 bits last 13 hours.
    static let unitsPerSecond: UInt32 = 90_000
}

/// Writes compressed pictures to an IVF file.
///
/// The file has a header, then for each frame its length, its time and its bytes. If it is cut anywhere, it plays up to
/// that point. Confine to one thread.
package final class IVFWriter: EncodedVideoWriter {
    private var file: OutputFile
    private var header = HeaderBytes()
    private var clock = FileClock(unitsPerSecond: Int64(IVF.unitsPerSecond))
    private var isFinished = false

    /// Creates a file, as `EncodedVideoFormat.makeWriter` says.
    package convenience init(
        path: String,
        dimensions: Dimensions,
        codec: StoredVideoCodec
    ) throws(MediaFileError) {
        try self.init(OutputFile(creating: path), dimensions: dimensions, codec: codec)
    }

    init(
        _ file: consuming OutputFile,
        dimensions: Dimensions,
        codec: StoredVideoCodec
    ) throws(MediaFileError) {
        precondition(dimensions.isCodable, "pictures of \(dimensions)")
        self.file = file
        header.append(bigEndian: UInt64(IVF.signature), count: 4)
        header.append(littleEndian: UInt16(0))
        header.append(littleEndian: UInt16(IVF.headerLength))
        header.append(codec.ivfName)
        header.append(littleEndian: UInt16(dimensions.width))
        header.append(littleEndian: UInt16(dimensions.height))
        header.append(littleEndian: IVF.unitsPerSecond)
        header.append(littleEndian: UInt32(1))
        header.append(littleEndian: UInt32(0))
        header.append(littleEndian: UInt32(0))
        let head = header.bytes
        try self.file.append(head.span)
    }

    /// Adds a frame, as `EncodedVideoWriter` says.
    package func write(_ frame: EncodedFrame) throws(MediaFileError) {
        precondition(!isFinished, "a frame for \(file.path), which is finished")
        guard clock.newest != nil || frame.info.isKeyframe else { throw .startsWithoutKeyframe(file.path) }
        let time = clock.time(of: frame.info.timestamp)
        header.removeAll()
        header.append(littleEndian: UInt32(frame.size.bytes))
        header.append(littleEndian: UInt64(time))
        let head = header.bytes
        try frame.withBytes { bytes throws(MediaFileError) in try file.append(head.span, bytes) }
        clock.wrote(time, of: frame.info.timestamp)
    }

    /// Writes the length into the header, unless it does not fit.
    package func finish() throws(MediaFileError) {
        guard !isFinished else { return }
        isFinished = true
        guard file.isPatchable, let duration = UInt32(exactly: clock.duration) else { return }
        header.removeAll()
        header.append(littleEndian: duration)
        let head = header.bytes
        try file.patch(head.span, at: IVF.durationOffset)
    }
}

extension MediaFileError {
    static func startsWithoutKeyframe(_ path: String) -> MediaFileError {
        MediaFileError(
            .startsWithoutKeyframe,
            .write,
            path,
            "its first frame must be a keyframe; leave frames out until one comes"
        )
    }
}

/// What the header of an IVF file says.
private struct IVFHeader {
    let dimensions: Dimensions
    let codec: StoredVideoCodec
    let unitsPerSecond: Int64
    let unitSeconds: Int64

    /// Reads the header at the beginning of `file`.
    init(reading file: inout InputFile) throws(MediaFileError) {
        let path = file.path
        let isWhole = try file.load(IVF.headerLength, .open)
        guard file.available >= 4, file.bigEndian(at: 0, count: 4) == UInt64(IVF.signature) else {
            throw MediaFileError(.wrongFormat, .open, path, "it is not an IVF file; check the name")
        }
        guard isWhole else {
            throw MediaFileError(.truncated, .open, path, "it ends in its header, after \(file.available) bytes")
        }
        let name = file.text(at: 8, count: 4)
        do throws(UnknownCodec) {
            codec = try StoredVideoCodec(named: name, in: \.ivfName)
        } catch {
            let advice = "it holds \(error); convert it: ffmpeg -i FILE -c:v libvpx -b:v 2M NEW.ivf"
            throw MediaFileError(.unsupported, .open, path, advice)
        }
        let headerLength = Int(file.littleEndian(at: 6, count: 2))
        unitsPerSecond = Int64(file.littleEndian(at: 16, count: 4))
        unitSeconds = Int64(file.littleEndian(at: 20, count: 4))
        dimensions = Dimensions(
            width: Int(file.littleEndian(at: 12, count: 2)),
            height: Int(file.littleEndian(at: 14, count: 2))
        )
        guard dimensions.isCodable, unitsPerSecond > 0, unitSeconds > 0, headerLength >= IVF.headerLength else {
            let clock = "\(unitSeconds)/\(unitsPerSecond) s"
            throw MediaFileError(
                .damaged,
                .open,
                path,
                "its header states \(dimensions) pixels and a clock of \(clock); \(name) cannot be like that"
            )
        }
        guard try file.skip(headerLength, .open) else {
            throw MediaFileError(.truncated, .open, path, "it ends in its header, of \(headerLength) bytes")
        }
    }
}

/// Reads compressed pictures from an IVF file; confine to one thread.
package final class IVFReader: EncodedVideoReader {
    /// The size of the pictures, as the header states it.
    package var dimensions: Dimensions { header.dimensions }
    /// The codec of the pictures.
    package var codec: StoredVideoCodec { header.codec }
    /// Where another file begins, as `EncodedVideoReader` says.
    package private(set) var nextFileOffset: Int64?

    private var file: InputFile
    private var header: IVFHeader
    private var frameCount = 0
    private var lentCount = 0
    private var failure: MediaFileError?

    /// How a file begins: signature, version and length of the header.
    private static let beginning: [UInt8] = Array("DKIF".utf8) + [0, 0, UInt8(IVF.headerLength), 0]

    /// Opens a file and reads its header, as `EncodedVideoFormat.openReader` says.
    package convenience init(path: String) throws(MediaFileError) {
        try self.init(InputFile(path: path))
    }

    init(_ opened: consuming InputFile) throws(MediaFileError) {
        var file = opened
        header = try IVFHeader(reading: &file)
        self.file = file
    }

    /// Moves to the next frame, as `EncodedVideoReader` says.
    package func nextFrame() throws(MediaFileError) -> StoredFrame? {
        if let failure { throw failure }
        do {
            try findStraddlingFile()
            file.consume(lentCount)
            lentCount = 0
            return try readFrame()
        } catch {
            failure = error
            throw error
        }
    }

    /// Finds another file that begins within the last bytes of the current frame, and goes on behind it.
    private func findStraddlingFile() throws(MediaFileError) {
        guard file.isPipe, lentCount > 0, try file.load(lentCount + IVF.frameHeaderLength) else { return }
        let begin = lentCount - Self.beginning.count + 1
        let end = lentCount + IVF.frameHeaderLength
        guard let next = file.firstPlace(of: Self.beginning, from: begin, within: end), next < lentCount else { return }
        lentCount = next
    }

    private func readFrame() throws(MediaFileError) -> StoredFrame? {
        guard nextFileOffset == nil else { return nil }
        guard try file.load(IVF.frameHeaderLength) else {
            if file.available == 0 { return nil }
            throw .truncated(file.path, at: file.offset, wholeFrames: frameCount)
        }
        // As a length it would be that of a frame that is too long.
        if file.bigEndian(at: 0, count: 4) == UInt64(IVF.signature) {
            nextFileOffset = file.offset
            return nil
        }
        let count = Int(file.littleEndian(at: 0, count: 4))
        let (units, overflow) = Int64(truncatingIfNeeded: file.littleEndian(at: 4, count: 8))
            .multipliedReportingOverflow(by: header.unitSeconds)
        guard count <= largestFrame, !overflow, units >= 0 else {
            throw .damaged(file.path, at: file.offset, "a frame of \(count) bytes", wholeFrames: frameCount)
        }
        guard try file.load(IVF.frameHeaderLength + count) else {
            throw .truncated(file.path, at: file.offset, wholeFrames: frameCount)
        }
        let whole = IVF.frameHeaderLength + count
        if file.isPipe, let next = file.firstPlace(of: Self.beginning, within: whole) {
            file.consume(next)
            nextFileOffset = file.offset
            return nil
        }
        file.consume(IVF.frameHeaderLength)
        lentCount = count
        frameCount += 1
        return StoredFrame(
            time: .ratio(units, header.unitsPerSecond),
            isKeyframe: count > 0 && file.byte(at: 0) & 1 == 0,
            size: DataSize(bytes: count)
        )
    }

    /// Goes on with an appended file, as `EncodedVideoReader` says.
    package func beginNextFile() throws(MediaFileError) -> Bool {
        guard nextFileOffset != nil else { return false }
        header = try IVFHeader(reading: &file)
        (nextFileOffset, frameCount) = (nil, 0)
        return true
    }

    /// Lends the compressed picture, as `EncodedVideoReader` says.
    package func withFrameBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try file.withBytes(lentCount, body)
    }
}

extension Duration {
    /// `units` / `unitsPerSecond` seconds, rounded down to the nanosecond.
    fileprivate static func ratio(_ units: Int64, _ unitsPerSecond: Int64) -> Duration {
        let (seconds, rest) = units.quotientAndRemainder(dividingBy: unitsPerSecond)
        // `rest` is below 2^32, so that the product stays below 2^62.
        return .seconds(seconds) + .nanoseconds(rest * 1_000_000_000 / unitsPerSecond)
    }
}

extension MediaFileError {
    static func truncated(_ path: String, at offset: Int64, wholeFrames: Int) -> MediaFileError {
        MediaFileError(
            .truncated,
            .read,
            path,
            at: offset,
            "it ends in the middle of the frame at byte \(offset), after \(wholeFrames) whole frames; those are good"
        )
    }

    static func damaged(_ path: String, at offset: Int64, _ finding: String, wholeFrames: Int) -> MediaFileError {
        MediaFileError(
            .damaged,
            .read,
            path,
            at: offset,
            "it is damaged at byte \(offset), after \(wholeFrames) whole frames: \(finding); get an intact copy"
        )
    }
}
