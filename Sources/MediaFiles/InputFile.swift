import Glibc

/// A file that is read front to back, through a reused window of bytes.
///
/// The window grows only as bytes arrive. A damaged file that only claims a large length costs no memory.
struct InputFile: ~Copyable {
    /// The file as the caller named it.
    var path: String { file.path }
    /// The offset of the first unread byte in the file.
    private(set) var offset: Int64 = 0
    /// The number of unread bytes that are in memory.
    var available: Int { end - start }

    /// Whether its bytes come only once, as those of a pipe.
    var isPipe: Bool { !file.isRegular }

    private let file: OpenFile
    private var window = [UInt8](repeating: 0, count: Self.windowSize)
    private var start = 0
    private var end = 0

    /// 64 KiB, in bytes: several frames at once, and few calls for a large one.
    private static let windowSize = 1 << 16

    /// Opens the file; `-` is standard input.
    ///
    /// With `isStopRequested`, opening and reading do not wait longer for a pipe's writer than `OpenFile` says.
    init(path: String, isStopRequested: (@Sendable () -> Bool)? = nil) throws(MediaFileError) {
        file = try OpenFile(reading: path, isStopRequested: isStopRequested)
    }

    /// Reads the next `count` bytes into memory.
    ///
    /// - Returns: `false` if the file ends before; the bytes that there are are then in memory.
    mutating func load(_ count: Int, _ operation: MediaFileError.Operation = .read) throws(MediaFileError) -> Bool {
        while available < count {
            if start + count > window.count { makeRoom(for: count) }
            let result = unsafe window.withUnsafeMutableBytes { bytes in
                let (start, count) = unsafe (bytes.baseAddress.map { unsafe $0 + end }, bytes.count - end)
                return Result { () throws(MediaFileError) in try unsafe file.read(start, count, operation) }
            }
            let got = try result.get()
            if got == 0 { return false }
            end += got
        }
        return true
    }

    private mutating func makeRoom(for count: Int) {
        unsafe window.withUnsafeMutableBytes { bytes in
            guard start > 0, let base = bytes.baseAddress else { return }
            unsafe memmove(base, base + start, end - start)
        }
        (start, end) = (0, end - start)
        guard end == window.count else { return }
        window.append(contentsOf: repeatElement(0, count: min(window.count, count - window.count)))
    }

    /// Skips `count` bytes that are in memory.
    mutating func consume(_ count: Int) {
        precondition(count <= available, "\(count) of \(available) bytes")
        start += count
        offset += Int64(count)
    }

    /// Skips `count` bytes, in memory or not.
    ///
    /// - Returns: `false` if the file ends before.
    mutating func skip(_ count: Int, _ operation: MediaFileError.Operation = .read) throws(MediaFileError) -> Bool {
        var left = count
        while left > 0 {
            guard try load(1, operation) else { return false }
            let step = min(left, available)
            consume(step)
            left -= step
        }
        return true
    }

    /// The unread byte `index` bytes on, which must be in memory.
    func byte(at index: Int) -> UInt8 {
        precondition(index < available, "byte \(index) of \(available)")
        return window[start + index]
    }

    /// The number in `count` unread bytes from `index` on, most significant byte first.
    func bigEndian(at index: Int, count: Int) -> UInt64 {
        var value: UInt64 = 0
        for place in 0..<count { value = value << 8 | UInt64(byte(at: index + place)) }
        return value
    }

    /// The number in `count` unread bytes from `index` on, least significant byte first.
    func littleEndian(at index: Int, count: Int) -> UInt64 {
        var value: UInt64 = 0
        for place in (0..<count).reversed() { value = value << 8 | UInt64(byte(at: index + place)) }
        return value
    }

    /// Where `pattern` begins for the first time at `begin` or later, within `count` unread bytes that are in memory.
    func firstPlace(of pattern: [UInt8], from begin: Int = 0, within count: Int) -> Int? {
        withBytes(count) { bytes in
            unsafe bytes.withUnsafeBytes { bytes -> Int? in
                guard let start = bytes.baseAddress, let first = pattern.first else { return nil }
                var place = max(0, begin)
                while place + pattern.count <= bytes.count {
                    let left = bytes.count - place - pattern.count + 1
                    guard let found = unsafe memchr(start + place, Int32(first), left) else { return nil }
                    place = unsafe start.distance(to: UnsafeRawPointer(found))
                    if unsafe memcmp(found, pattern, pattern.count) == 0 { return place }
                    place += 1
                }
                return nil
            }
        }
    }

    /// The text of `count` unread bytes from `index` on, up to a zero byte; what is not printable ASCII appears as `?`.
    func text(at index: Int, count: Int) -> String {
        var text = ""
        for place in 0..<count {
            let byte = byte(at: index + place)
            // EBML allows zero bytes at the end of a text (RFC 8794, section 7.4); GStreamer writes one.
            guard byte != 0 else { break }
            text.unicodeScalars.append((0x20..<0x7F).contains(byte) ? Unicode.Scalar(byte) : "?")
        }
        return text
    }

    /// Lends `count` unread bytes, which must be in memory.
    func withBytes<Result, Failure: Error>(
        _ count: Int,
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition(count <= available, "\(count) of \(available) bytes")
        return try unsafe body(window.span.extracting(start..<start + count).bytes)
    }
}
