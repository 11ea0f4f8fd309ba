import Glibc
package import MediaCore

/// Reads the raw pictures of a Y4M file, or of another program through standard input; confine to one thread.
///
/// A picture is read directly into its buffer's planes, in one system call for a thousand rows. The same call also
/// reads what a pipe already has of the line before the next picture. It never waits for a pipe longer than the picture
/// needs.
package final class Y4MReader: VideoFrameReader {
    /// The size of every picture.
    package var dimensions: Dimensions { header.dimensions }
    /// Pictures per second, as the file states it.
    package var frameRate: FrameRate { header.frameRate }

    private let file: OpenFile
    private let header: Y4MHeader
    private let start: Int64
    private let line: LineBuffer
    private var list = ScatterList()
    private var frameCount = 0
    private var offset: Int64
    private var failure: MediaFileError?
    /// Whether the last picture was looked for, because the one before had been cut off.
    private var isFoundAgain = false

    /// Opens a file and reads its header.
    ///
    /// - Parameters:
    ///   - path: `-` is standard input.
    ///   - isStopRequested: Called while the reader waits for a pipe's writer. Once it returns true, this and
    ///     `readFrame` throw `interrupted`. Without it they wait as long as necessary.
    /// - Throws: `notFound`, `notPermitted`, `wrongFormat`, `unsupported`, `damaged`, `truncated`, `systemFailure`,
    ///   `interrupted`.
    package convenience init(path: String, isStopRequested: (@Sendable () -> Bool)? = nil) throws(MediaFileError) {
        try self.init(OpenFile(reading: path, isStopRequested: isStopRequested))
    }

    init(_ file: consuming OpenFile) throws(MediaFileError) {
        self.file = file
        line = LineBuffer(limit: Y4MHeader.lineLimit)
        let path = self.file.path
        switch try line.readLine(from: self.file, .open, startingWith: Y4MHeader.signature) {
        case .whole: break
        case .end:
            let advice = path == "-" ? "nothing came; check the program before the pipe" : "it is empty; check the file"
            throw MediaFileError(.wrongFormat, .open, path, advice)
        case .other:
            throw MediaFileError(
                .wrongFormat,
                .open,
                path,
                "it is not a Y4M file; convert it: ffmpeg -i FILE -pix_fmt yuv420p NEW.y4m"
            )
        case .cut:
            throw MediaFileError(.truncated, .open, path, "it ends in its header, after \(line.count) bytes")
        case .tooLong:
            throw MediaFileError(.damaged, .open, path, "its header does not end within \(line.count) bytes")
        }
        do {
            header = try Y4MHeader(line: line.text)
        } catch {
            throw MediaFileError(error.code, .open, path, error.reason)
        }
        start = Int64(line.count)
        offset = start
        line.removeAll()
    }

    /// Reads the next picture into `buffer`, which has the size `dimensions`.
    ///
    /// - Returns: `false` at the end of the file.
    /// - Throws: A `MediaFileError`: `truncated` in the middle of a picture, `damaged`, `systemFailure`. Every later
    ///   call until `rewind` throws the same error.
    package func readFrame(into buffer: VideoBuffer) throws -> Bool {
        precondition(buffer.dimensions == dimensions, "a buffer of \(buffer.dimensions) for pictures of \(dimensions)")
        if let failure { throw failure }
        do {
            return try read(into: buffer)
        } catch {
            failure = error
            throw error
        }
    }

    private func read(into buffer: VideoBuffer) throws(MediaFileError) -> Bool {
        guard try readFrameLine() else { return false }
        let lineLength = line.count
        line.removeAll()
        let filled: Result<Void, MediaFileError> = buffer.withMutablePlanes { luma, chromaU, chromaV in
            list.removeAll()
            unsafe list.append(
                luma: luma.pointerToWriteTo,
                chromaU: chromaU.pointerToWriteTo,
                chromaV: chromaV.pointerToWriteTo,
                of: buffer
            )
            return Result { () throws(MediaFileError) in try fillList() }
        }
        try filled.get()
        frameCount += 1
        offset += Int64(lineLength + pictureLength)
        return true
    }

    /// Reads the line before a picture, and headers before that.
    ///
    /// - Returns: `false` at the end of the file.
    private func readFrameLine() throws(MediaFileError) -> Bool {
        while true {
            switch try line.readLine(from: file, .read, startingWith: Y4MHeader.frameSignature) {
            case .whole:
                isFoundAgain = false
                return true
            case .end: return false
            case .cut: throw .truncated(file.path, at: offset, wholeFrames: frameCount)
            case .other:
                if try readHeaderAgain() { continue }
                return try findNextPicture()
            case .tooLong:
                throw .damaged(file.path, at: offset, "a picture's first line does not end", wholeFrames: frameCount)
            }
        }
    }

    /// Passes over a header like the first one: the program before a pipe was started again, or a file was appended.
    ///
    /// - Returns: `false` if there is no header.
    private func readHeaderAgain() throws(MediaFileError) -> Bool {
        guard case .whole = try line.readLine(from: file, .read, startingWith: Y4MHeader.signature) else {
            return false
        }
        let next: Y4MHeader
        do {
            next = try Y4MHeader(line: line.text)
        } catch {
            throw MediaFileError(error.code, .read, file.path, error.reason)
        }
        guard next == header else {
            let change = "\(next.dimensions) at \(next.frameRate) instead of \(dimensions) at \(frameRate)"
            let words = "from byte \(offset) on, its pictures are \(change); give all of them one size and rate"
            throw MediaFileError(.unsupported, .read, file.path, words)
        }
        offset += Int64(line.count)
        line.removeAll()
        return true
    }

    /// Reads on up to the next picture of a pipe: the program before it was killed within a picture, and started again.
    ///
    /// The picture before has the beginning of the one and, behind a header, that of the other.
    ///
    /// - Returns: `false` at the end of the file.
    private func findNextPicture() throws(MediaFileError) -> Bool {
        guard !file.isRegular, !isFoundAgain else {
            throw .damaged(file.path, at: offset, "no picture begins here", wholeFrames: frameCount)
        }
        isFoundAgain = true
        return try line.readOn(to: Y4MHeader.frameLine, from: file, .read)
    }

    /// Whether the pipe holds bytes of the next picture beside the line before it.
    ///
    /// A program may write that line long before its picture.
    package var isNextFrameWaiting: Bool {
        line.count + file.waitingBytes > Y4MHeader.frameSignature.utf8CodeUnitCount + 1
    }

    private var pictureLength: Int {
        dimensions.area + 2 * ((dimensions.width + 1) / 2) * ((dimensions.height + 1) / 2)
    }

    /// Reads the picture, and the part of the line after it that is already there.
    private func fillList() throws(MediaFileError) {
        let ahead = Y4MHeader.frameSignature.utf8CodeUnitCount + 1
        unsafe line.appendUnused(ahead, to: &list)
        var left = pictureLength
        while left > 0 {
            let count = try file.read(into: &list, .read)
            guard count > 0 else { throw .truncated(file.path, at: offset, wholeFrames: frameCount) }
            left -= count
        }
        // The bytes read beyond the picture.
        line.count = -left
    }

    /// Goes back to the first picture.
    ///
    /// - Throws: A `MediaFileError`: `notRewindable` if the pictures come from a pipe.
    package func rewind() throws {
        guard file.isRegular, lseek(file.number, Int(start), SEEK_SET) == Int(start) else {
            throw MediaFileError(
                .notRewindable,
                .rewind,
                file.path,
                "it is a pipe, whose pictures come only once; store them in a file, and name that"
            )
        }
        line.removeAll()
        (frameCount, offset, failure) = (0, start, nil)
    }
}

/// The bytes of a line that is being read, in memory of its own at a fixed address.
@safe private final class LineBuffer {
    enum Outcome {
        /// The line is complete, up to its line feed.
        case whole
        /// The file had ended before the line.
        case end
        /// The file ends in the line.
        case cut
        /// It is not the expected line.
        case other
        /// There is no line feed within the limit.
        case tooLong
    }

    /// The number of bytes read.
    var count = 0

    private let limit: Int
    private let memory: UnsafeMutablePointer<UInt8>
    private var list = ScatterList()

    init(limit: Int) {
        self.limit = limit
        unsafe memory = .allocate(capacity: limit)
    }

    deinit {
        unsafe memory.deallocate()
    }

    func removeAll() {
        count = 0
    }

    /// The line without its line feed.
    var text: String {
        unsafe String(decoding: UnsafeBufferPointer(start: memory, count: max(count - 1, 0)), as: UTF8.self)
    }

    /// Lets a read continue into the first `count` bytes; the reader then sets `count`.
    @unsafe func appendUnused(_ count: Int, to list: inout ScatterList) {
        unsafe list.append(UnsafeMutableRawPointer(memory), count: min(count, limit))
    }

    /// Reads until the line is complete, and no further.
    func readLine(
        from file: borrowing OpenFile,
        _ operation: MediaFileError.Operation,
        startingWith signature: StaticString
    ) throws(MediaFileError) -> Outcome {
        let signatureLength = signature.utf8CodeUnitCount
        // Read the signature and the next byte, the line feed of most lines, at once; read the rest byte by byte.
        while count <= signatureLength {
            let got = try read(signatureLength + 1 - count, from: file, operation)
            if got == 0 { return count == 0 ? .end : matches(signature) ? .cut : .other }
        }
        guard matches(signature), (unsafe memory[signatureLength]) == 0x0A || (unsafe memory[signatureLength]) == 0x20
        else { return .other }
        while unsafe memory[count - 1] != 0x0A {
            guard count < limit else { return .tooLong }
            if try read(1, from: file, operation) == 0 { return .cut }
        }
        return .whole
    }

    /// Reads up to the end of the next `pattern` and no further; the line is then that.
    ///
    /// As many bytes are read at once as the pattern can be away (Horspool's method).
    ///
    /// - Returns: `false` at the end of the file.
    func readOn(
        to pattern: [UInt8],
        from file: borrowing OpenFile,
        _ operation: MediaFileError.Operation
    ) throws(MediaFileError) -> Bool {
        var kept = unsafe Array(UnsafeBufferPointer(start: memory, count: count).suffix(pattern.count))
        while kept != pattern {
            let last = kept.count == pattern.count ? pattern.dropLast().lastIndex { $0 == kept.last } : nil
            let missing = pattern.count - kept.count
            let step = missing > 0 ? missing : pattern.count - 1 - (last ?? -1)
            count = 0
            while count < step {
                if try read(step - count, from: file, operation) == 0 { return false }
            }
            unsafe kept.append(contentsOf: UnsafeBufferPointer(start: memory, count: step))
            kept.removeFirst(max(0, kept.count - pattern.count))
        }
        return true
    }

    private func read(
        _ wanted: Int,
        from file: borrowing OpenFile,
        _ operation: MediaFileError.Operation
    ) throws(MediaFileError) -> Int {
        list.removeAll()
        unsafe list.append(memory + count, count: wanted)
        let got = try file.read(into: &list, operation)
        count += got
        return got
    }

    private func matches(_ signature: StaticString) -> Bool {
        let compared = min(count, signature.utf8CodeUnitCount)
        return unsafe memcmp(memory, signature.utf8Start, compared) == 0
    }
}

extension MutableSpan<UInt8> {
    /// The address of the bytes; valid as long as the span is lent.
    fileprivate var pointerToWriteTo: UnsafeMutableRawPointer? {
        mutating get {
            unsafe withUnsafeMutableBufferPointer { UnsafeMutableRawPointer($0.baseAddress) }
        }
    }
}
