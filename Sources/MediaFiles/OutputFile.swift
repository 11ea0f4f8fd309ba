import Glibc

/// A file that grows by whole blocks: a block that does not fit is removed, so that the file never ends inside one.
struct OutputFile: ~Copyable {
    /// The file as the caller named it.
    var path: String { file.path }
    /// The length of the file's whole blocks, in bytes.
    private(set) var length: Int64 = 0
    /// Whether what has been written can be changed.
    var isPatchable: Bool { file.isRegular }

    private let file: OpenFile
    private var list = ScatterList()

    /// Creates a file, which must not exist yet; `-` is standard output.
    init(creating path: String) throws(MediaFileError) {
        self.init(try OpenFile(creating: path))
    }

    /// Creates a writer for `file`, which must be empty or a pipe.
    init(_ file: consuming OpenFile) {
        self.file = file
    }

    /// Adds a block that consists of `head` and `body`, in one call to the system.
    mutating func append(_ head: Span<UInt8>, _ body: RawSpan = RawSpan()) throws(MediaFileError) {
        let outcome = unsafe head.withUnsafeBufferPointer { head in
            unsafe body.withUnsafeBytes { body in
                Swift.Result { () throws(MediaFileError) in
                    try unsafe append { list in
                        unsafe list.append(readingFrom: UnsafeRawBufferPointer(head))
                        unsafe list.append(readingFrom: body)
                    }
                }
            }
        }
        try outcome.get()
    }

    /// Adds a block that consists of the pieces that `fill` puts on the list.
    ///
    /// - Throws: `storageFull`, `readerGone`, `removed` and others; the file is then cut back to the whole blocks
    ///   before.
    @unsafe mutating func append(_ fill: (inout ScatterList) -> Void) throws(MediaFileError) {
        guard !file.isRemoved else { throw MediaFileError(removed: path) }
        list.removeAll()
        fill(&list)
        var written: Int64 = 0
        while !list.isEmpty {
            let count = unsafe list.withNextPieces { pieces, count in
                unsafe writeIgnoringPipeSignal(pieces, count)
            }
            if count > 0 {
                list.removeFirst(count)
                written += Int64(count)
            } else if count < 0, errno == EAGAIN {
                // Another program that shares a pipe may have made it non-blocking.
                var room = pollfd(fd: file.number, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&room, 1, -1)
            } else if count < 0, errno != EINTR {
                let status = errno
                takeBack()
                throw MediaFileError(.write, path, status: status)
            }
        }
        length += written
    }

    /// Replaces the bytes at `offset` by `bytes`.
    func patch(_ bytes: Span<UInt8>, at offset: Int64) throws(MediaFileError) {
        let status: Int32 = unsafe bytes.withUnsafeBufferPointer { bytes in
            var done = 0
            while done < bytes.count {
                guard let start = bytes.baseAddress else { break }
                let count = unsafe pwrite(file.number, start + done, bytes.count - done, Int(offset) + done)
                if count < 0, errno != EINTR { return errno }
                done += max(count, 0)
            }
            return 0
        }
        guard status == 0 else { throw MediaFileError(.finish, path, status: status) }
    }

    /// Removes a block that reached the file only in part.
    ///
    /// On a pipe this does nothing.
    private func takeBack() {
        guard file.isRegular else { return }
        _ = ftruncate(file.number, Int(length))
        _ = lseek(file.number, Int(length), SEEK_SET)
    }

    /// Writes without the signal that ends the program if a pipe has no reader.
    private func writeIgnoringPipeSignal(_ pieces: UnsafePointer<iovec>?, _ count: Int32) -> Int {
        guard !file.isRegular else { return unsafe writev(file.number, pieces, count) }
        var (pipeSignal, before, pending) = (sigset_t(), sigset_t(), sigset_t())
        unsafe sigemptyset(&pipeSignal)
        unsafe sigaddset(&pipeSignal, SIGPIPE)
        unsafe sigpending(&pending)
        let wasPending = unsafe sigismember(&pending, SIGPIPE) == 1
        unsafe pthread_sigmask(SIG_BLOCK, &pipeSignal, &before)
        let result = unsafe writev(file.number, pieces, count)
        let status = errno
        if result < 0, status == EPIPE, !wasPending {
            var now = timespec()
            unsafe sigtimedwait(&pipeSignal, nil, &now)
        }
        unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
        errno = status
        return result
    }
}
