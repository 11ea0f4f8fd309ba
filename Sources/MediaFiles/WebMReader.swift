package import MediaCore

/// Reads the compressed pictures of a WebM file's first video track; confine to one thread.
///
/// It does not rely on the sizes of segment and clusters, so that it can also read the file of a live stream and a
/// truncated file.
package final class WebMReader: EncodedVideoReader {
    /// The size of the pictures, as the header states it.
    package var dimensions: Dimensions { track.dimensions }
    /// The codec of the pictures.
    package var codec: StoredVideoCodec { track.codec }
    /// Where the element begins that is being read.
    private var elementOffset: Int64 = 0
    /// Where another file begins, as `EncodedVideoReader` says.
    package private(set) var nextFileOffset: Int64?

    /// How a file begins.
    private static let beginning = (0..<4).map { UInt8(truncatingIfNeeded: EBMLID.header.rawValue >> (24 - 8 * $0)) }

    private var file: InputFile
    private var track: WebMTrack
    private var timestampScale: Int64
    private var clusterTime: Int64?
    private var frameCount = 0
    private var lentCount = 0
    private var failure: MediaFileError?

    /// Opens a file and reads its header, as `EncodedVideoFormat.openReader` says.
    package convenience init(path: String) throws(MediaFileError) {
        try self.init(InputFile(path: path))
    }

    init(_ opened: consuming InputFile) throws(MediaFileError) {
        var file = opened
        do {
            (track, timestampScale) = try WebMTrack.readHeader(of: &file)
        } catch {
            throw Self.explainOpening(error, path: file.path, offset: file.offset)
        }
        self.file = file
    }

    private static func explainOpening(_ failure: EBMLFailure, path: String, offset: Int64) -> MediaFileError {
        let (code, reason): (MediaFileError.Code, String)
        switch failure {
        case .truncated: (code, reason) = (.truncated, "it ends before the first frame; nothing can be shown")
        case .damaged(let finding):
            (code, reason) = (.damaged, "it is damaged at byte \(offset): \(finding); get an intact copy")
        case .unsupported(let finding): (code, reason) = (.unsupported, finding)
        case .file(let error): return error
        }
        return MediaFileError(code, .open, path, reason)
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
            let error = explain(error)
            failure = error
            throw error
        }
    }

    private func explain(_ failure: EBMLFailure) -> MediaFileError {
        switch failure {
        case .truncated: .truncated(file.path, at: elementOffset, wholeFrames: frameCount)
        case .damaged(let finding): .damaged(file.path, at: file.offset, finding, wholeFrames: frameCount)
        case .unsupported(let finding): MediaFileError(.unsupported, .read, file.path, finding)
        case .file(let error): error
        }
    }

    private func readFrame() throws(EBMLFailure) -> StoredFrame? {
        guard nextFileOffset == nil else { return nil }
        elementOffset = file.offset
        while try !isAtNextFile(), let element = try file.readElement() {
            switch EBMLID(rawValue: element.id) {
            case .cluster:
                clusterTime = nil
            case .timestamp:
                let count = try file.fetchContent(of: element, limit: 8)
                guard let time = Int64(exactly: try file.unsignedInteger(in: 0..<count)) else {
                    throw .damaged("a time beyond all bounds")
                }
                clusterTime = time
                file.consume(count)
            case .blockGroup:
                break
            case .simpleBlock, .block:
                if let frame = try readBlock(element) { return frame }
            case .segment:
                nextFileOffset = elementOffset
                return nil
            default:
                try file.passOver(element)
            }
            elementOffset = file.offset
        }
        return nil
    }

    /// Whether the header of another file comes next.
    private func isAtNextFile() throws(EBMLFailure) -> Bool {
        guard try file.fetch(4), file.bigEndian(at: 0, count: 4) == UInt64(EBMLID.header.rawValue) else { return false }
        nextFileOffset = file.offset
        return true
    }

    /// The bytes by which the beginning of a file is known: identifier, length, and four of the contents.
    private static let longestBeginning = 16

    /// Finds another file that begins within the last bytes of the current frame, and goes on behind it.
    private func findStraddlingFile() throws(EBMLFailure) {
        let end = lentCount + Self.longestBeginning
        guard file.isPipe, lentCount > 0, try file.fetch(end) else { return }
        let begin = lentCount - Self.longestBeginning + 1
        guard let next = placeOfNextFile(from: begin, within: end), next < lentCount else { return }
        lentCount = next
    }

    /// Where another file begins at `begin` or later, within `count` unread bytes: a block's, if the program before a
    /// pipe was killed in it.
    private func placeOfNextFile(from begin: Int = 0, within count: Int) -> Int? {
        guard let place = file.firstPlace(of: Self.beginning, from: begin, within: count) else { return nil }
        // Four bytes may be a picture's. The length follows, and then the version, or the name of the format.
        let length = place + 4 < count ? file.byte(at: place + 4).leadingZeroBitCount + 1 : 9
        guard place + 8 + length <= count else { return nil }
        let first = file.bigEndian(at: place + 4 + length, count: 4)
        return [0x4286_8101, 0x4282_8477, 0x4282_886D].contains(first) ? place : nil
    }

    /// Reads a block: track, time relative to the cluster's, flags, picture (RFC 9559, section 10).
    ///
    /// - Returns: `nil` if it belongs to another track.
    private func readBlock(_ element: EBMLElement) throws(EBMLFailure) -> StoredFrame? {
        let count = try file.fetchContent(of: element, limit: largestFrame)
        if file.isPipe, let next = placeOfNextFile(within: count) {
            file.consume(next)
            return nil
        }
        let numberLength = count > 0 ? file.byte(at: 0).leadingZeroBitCount + 1 : 9
        let headerLength = numberLength + 3
        guard numberLength <= 8, count >= headerLength else { throw .damaged("a block of \(count) bytes") }
        guard file.variableInteger(at: 0, count: numberLength).map(UInt64.init) == track.number else {
            file.consume(count)
            return nil
        }
        guard file.byte(at: numberLength + 2) & 0x06 == 0 else {
            throw .unsupported("its blocks are laced, which video's never are; make it anew with ffmpeg -c copy")
        }
        guard let clusterTime else { throw .damaged("a block before its cluster's time") }
        let relative = Int64(Int16(truncatingIfNeeded: file.bigEndian(at: numberLength, count: 2)))
        let (units, overflow) = clusterTime.addingReportingOverflow(relative)
        let (nanoseconds, beyond) = units.multipliedReportingOverflow(by: timestampScale)
        guard !overflow, !beyond else { throw .damaged("a time beyond all bounds") }
        file.consume(headerLength)
        lentCount = count - headerLength
        frameCount += 1
        return StoredFrame(
            time: .nanoseconds(nanoseconds),
            isKeyframe: lentCount > 0 && file.byte(at: 0) & 1 == 0,
            size: DataSize(bytes: lentCount)
        )
    }

    /// Goes on with an appended file, as `EncodedVideoReader` says.
    package func beginNextFile() throws(MediaFileError) -> Bool {
        guard nextFileOffset != nil else { return false }
        do {
            (track, timestampScale) = try WebMTrack.readHeader(of: &file)
        } catch {
            throw Self.explainOpening(error, path: file.path, offset: file.offset)
        }
        (nextFileOffset, clusterTime, frameCount) = (nil, nil, 0)
        return true
    }

    /// Lends the compressed picture, as `EncodedVideoReader` says.
    package func withFrameBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try file.withBytes(lentCount, body)
    }
}

/// A video track as a WebM file's header describes it.
struct WebMTrack {
    /// The number in the track's blocks.
    var number: UInt64 = 0
    /// The size of its pictures.
    var dimensions = Dimensions(width: 0, height: 0)
    /// The codec of its pictures.
    var codec = StoredVideoCodec.vp8

    /// 1 MiB, in bytes; the header's elements take some hundreds of bytes.
    private static let headerLimit = 1 << 20

    /// Reads everything before the first cluster.
    ///
    /// - Returns: The first video track, and the unit of the file's times, in nanoseconds.
    static func readHeader(of file: inout InputFile) throws(EBMLFailure) -> (WebMTrack, timestampScale: Int64) {
        try readDocumentType(of: &file)
        var scale: Int64 = 1_000_000
        while let element = try file.readElement() {
            switch EBMLID(rawValue: element.id) {
            case .segment:
                continue
            case .info:
                let count = try file.fetchContent(of: element, limit: headerLimit)
                scale = try timestampScale(file, 0..<count) ?? scale
                file.consume(count)
            case .tracks:
                let count = try file.fetchContent(of: element, limit: headerLimit)
                let track = try firstVideo(file, 0..<count)
                file.consume(count)
                return (track, scale)
            case .cluster:
                throw .damaged("a cluster before the tracks")
            default:
                try file.passOver(element)
            }
        }
        throw .truncated
    }

    private static func readDocumentType(of file: inout InputFile) throws(EBMLFailure) {
        let isThere = try file.fetch(4)
        guard isThere, file.bigEndian(at: 0, count: 4) == UInt64(EBMLID.header.rawValue) else {
            throw .file(MediaFileError(.wrongFormat, .open, file.path, "it is not a WebM file; check the name"))
        }
        guard let header = try file.readElement() else { throw .truncated }
        let count = try file.fetchContent(of: header, limit: headerLimit)
        var type = "matroska"
        for (element, content) in try file.elements(in: 0..<count) where element.is(.documentType) {
            type = file.text(at: content.lowerBound, count: min(content.count, 32))
        }
        guard ["webm", "matroska"].contains(type) else {
            throw .file(MediaFileError(.wrongFormat, .open, file.path, "it is of the type \(type), not webm"))
        }
        file.consume(count)
    }

    private static func timestampScale(_ file: borrowing InputFile, _ range: Range<Int>) throws(EBMLFailure) -> Int64? {
        for (element, content) in try file.elements(in: range) where element.is(.timestampScale) {
            let value = try file.unsignedInteger(in: content)
            // The unit may be from a nanosecond to a second.
            guard (1...1_000_000_000).contains(value) else { throw .damaged("a clock unit of \(value) ns") }
            return Int64(value)
        }
        return nil
    }

    private static func firstVideo(_ file: borrowing InputFile, _ range: Range<Int>) throws(EBMLFailure) -> WebMTrack {
        for (element, content) in try file.elements(in: range) where element.is(.trackEntry) {
            if let track = try video(file, content) { return track }
        }
        throw .unsupported("it has no video track")
    }

    /// The track that an entry describes; `nil` if it is not video.
    private static func video(_ file: borrowing InputFile, _ range: Range<Int>) throws(EBMLFailure) -> WebMTrack? {
        var track = WebMTrack()
        var (type, codec, isEncoded) = (UInt64(0), "", false)
        for (element, content) in try file.elements(in: range) {
            switch EBMLID(rawValue: element.id) {
            case .trackNumber: track.number = try file.unsignedInteger(in: content)
            case .trackType: type = try file.unsignedInteger(in: content)
            case .codecID: codec = file.text(at: content.lowerBound, count: min(content.count, 32))
            case .contentEncodings: isEncoded = true
            case .video: track.dimensions = try dimensions(file, content)
            default: break
            }
        }
        guard type == 1 else { return nil }
        do throws(UnknownCodec) {
            track.codec = try StoredVideoCodec(named: codec, in: \.webmName)
        } catch {
            throw .unsupported("it holds \(error); convert it: ffmpeg -i FILE -c:v libvpx -b:v 2M -an NEW.webm")
        }
        guard !isEncoded else {
            throw .unsupported("its video is compressed or encrypted once more; make it anew with ffmpeg -c copy")
        }
        guard track.dimensions.isCodable else {
            throw .damaged("pictures of \(track.dimensions) pixels, which \(codec) cannot be")
        }
        return track
    }

    private static func dimensions(_ file: borrowing InputFile, _ range: Range<Int>) throws(EBMLFailure) -> Dimensions {
        var dimensions = Dimensions(width: 0, height: 0)
        for (element, content) in try file.elements(in: range) {
            // The value is clamped, so that an absurd number is reported as too large instead of overflowing.
            if element.is(.pixelWidth) {
                dimensions.width = Int(min(try file.unsignedInteger(in: content), 1 << 32))
            } else if element.is(.pixelHeight) {
                dimensions.height = Int(min(try file.unsignedInteger(in: content), 1 << 32))
            }
        }
        return dimensions
    }
}
