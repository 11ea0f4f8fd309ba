import Glibc

/// An open file and its name in errors; closed with its owner.
struct OpenFile: ~Copyable {
    /// The file as the caller named it.
    let path: String
    /// The descriptor.
    let number: Int32
    /// Whether the file is on a disk, so that it can be read again; standard input and output never count as such.
    let isRegular: Bool
    /// Whether it had a name in a directory when it was opened.
    private let hasName: Bool
    private let isOwned: Bool
    private let isStopRequested: (@Sendable () -> Bool)?

    /// How often a read that waits for a pipe's writer checks whether to stop, in milliseconds.
    ///
    /// This is soon enough for a caller that waits for the read to end, and too seldom to cost anything noticeable.
    private static let stopInterval: Int32 = 100

    /// Opens a file for reading; `-` is standard input.
    ///
    /// With `isStopRequested` a pipe is opened without waiting for its writer. A read that waits for the writer then
    /// ends with `interrupted` soon after `isStopRequested` has become true.
    init(reading path: String, isStopRequested: (@Sendable () -> Bool)? = nil) throws(MediaFileError) {
        guard path != "-" else {
            self.init(
                path: path,
                number: STDIN_FILENO,
                isRegular: false,
                isOwned: false,
                isStopRequested: isStopRequested
            )
            return
        }
        let waiting = isStopRequested == nil ? 0 : O_NONBLOCK
        let number = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | waiting)
        guard number >= 0 else { throw MediaFileError(.open, path, status: errno) }
        self.init(adopting: number, path: path, isStopRequested: isStopRequested)
    }

    /// Creates a file that must not exist yet; `-` is standard output.
    init(creating path: String) throws(MediaFileError) {
        guard path != "-" else {
            self.init(path: path, number: STDOUT_FILENO, isRegular: false, isOwned: false)
            return
        }
        let number = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw MediaFileError(.create, path, status: errno) }
        self.init(adopting: number, path: path)
    }

    /// Takes over `number`, an open descriptor.
    init(adopting number: Int32, path: String, isStopRequested: (@Sendable () -> Bool)? = nil) {
        var status = stat()
        let isRegular = unsafe fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        self.init(
            path: path,
            number: number,
            isRegular: isRegular,
            hasName: isRegular && status.st_nlink > 0,
            isOwned: true,
            isStopRequested: isStopRequested
        )
    }

    private init(
        path: String,
        number: Int32,
        isRegular: Bool,
        hasName: Bool = false,
        isOwned: Bool,
        isStopRequested: (@Sendable () -> Bool)? = nil
    ) {
        self.path = path
        self.number = number
        self.isRegular = isRegular
        self.hasName = hasName
        self.isOwned = isOwned
        self.isStopRequested = isStopRequested
    }

    deinit {
        if isOwned { _ = Glibc.close(number) }
    }

    /// Whether it has been removed since it was opened, so that nobody will ever read what is written to it.
    var isRemoved: Bool {
        guard hasName else { return false }
        var status = stat()
        return unsafe fstat(number, &status) == 0 && status.st_nlink == 0
    }

    /// Reads as much as there is into the rest of `list`; returns 0 at the end of the file.
    ///
    /// The filled part is removed from `list`.
    func read(
        into list: inout ScatterList,
        _ operation: MediaFileError.Operation
    ) throws(MediaFileError) -> Int {
        while true {
            try awaitData(operation)
            let count = unsafe list.withNextPieces { pieces, count in unsafe readv(number, pieces, count) }
            if count >= 0 {
                list.removeFirst(count)
                return count
            }
            try checkRetry(operation)
        }
    }

    /// Reads at most `count` bytes to `memory`; returns 0 at the end of the file.
    @unsafe func read(
        _ memory: UnsafeMutableRawPointer?,
        _ count: Int,
        _ operation: MediaFileError.Operation
    ) throws(MediaFileError) -> Int {
        while true {
            try awaitData(operation)
            let got = unsafe Glibc.read(number, memory, count)
            if got >= 0 { return got }
            try checkRetry(operation)
        }
    }

    /// The bytes that a pipe or a socket holds for the next read; 0 where the system does not say.
    var waitingBytes: Int {
        var count = Int32(0)
        return unsafe ioctl(number, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// Throws unless the read that has just failed may be tried again.
    private func checkRetry(_ operation: MediaFileError.Operation) throws(MediaFileError) {
        // EAGAIN: another reader of the pipe was faster.
        guard errno == EINTR || errno == EAGAIN && isStopRequested != nil else {
            throw MediaFileError(operation, path, status: errno)
        }
    }

    /// Waits until there is data, the end of the file, or a stop request.
    private func awaitData(_ operation: MediaFileError.Operation) throws(MediaFileError) {
        guard let isStopRequested, !isRegular else { return }
        var request = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        // A pipe that has had no writer yet is not at its end: it has no data, although a read would return 0.
        repeat {
            guard !isStopRequested() else {
                throw MediaFileError(.interrupted, operation, path, "it was no longer wanted")
            }
        } while unsafe poll(&request, 1, Self.stopInterval) <= 0
    }
}
