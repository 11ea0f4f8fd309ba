import Glibc

/// The pieces of memory of one read or write; reused from call to call.
///
/// It holds pointers and no memory: the caller that adds a piece must keep it in place until the list is emptied.
@safe struct ScatterList: ~Copyable {
    private var pieces: [iovec] = unsafe []
    private var first = 0

    /// Linux takes at most 1,024 pieces a call (`UIO_MAXIOV`).
    private static let callLimit = 1024

    /// Whether no bytes are left to transfer.
    var isEmpty: Bool { unsafe first == pieces.count }

    /// Forgets all pieces, keeping the memory of the list itself.
    mutating func removeAll() {
        unsafe pieces.removeAll(keepingCapacity: true)
        first = 0
    }

    /// Adds `count` bytes at `start`.
    @unsafe mutating func append(_ start: UnsafeMutableRawPointer, count: Int) {
        guard count > 0 else { return }
        unsafe pieces.append(iovec(iov_base: start, iov_len: count))
    }

    /// Adds all of `bytes`, to be written from.
    @unsafe mutating func append(readingFrom bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        unsafe append(UnsafeMutableRawPointer(mutating: start), count: bytes.count)
    }

    /// Adds `rows` rows of `width` bytes, `stride` bytes apart; as one piece if there is nothing between them.
    @unsafe mutating func append(rowsAt start: UnsafeMutableRawPointer, width: Int, stride: Int, rows: Int) {
        guard width < stride else { return unsafe append(start, count: width * rows) }
        for row in 0..<rows { unsafe append(start + row * stride, count: width) }
    }

    /// Lends as many pieces as one system call takes.
    func withNextPieces<Result>(_ body: (UnsafePointer<iovec>?, Int32) -> Result) -> Result {
        unsafe pieces.withUnsafeBufferPointer { all in
            let next = unsafe UnsafeBufferPointer(rebasing: all[first...].prefix(Self.callLimit))
            return unsafe body(next.baseAddress, Int32(next.count))
        }
    }

    /// Removes the first `count` bytes after a call has transferred them.
    mutating func removeFirst(_ count: Int) {
        var left = count
        while unsafe first < pieces.count, left >= (unsafe pieces[first].iov_len) {
            left -= unsafe pieces[first].iov_len
            first += 1
        }
        guard left > 0 else { return }
        unsafe precondition(first < pieces.count, "\(count) bytes are more than were asked for")
        unsafe pieces[first].iov_base += left
        unsafe pieces[first].iov_len -= left
    }
}
