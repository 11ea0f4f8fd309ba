import Glibc

/// An open file and the name that errors call it by; closed with its owner.
struct OpenFile: ~Copyable {
    /// The file as the caller named it.
    let path: String
    /// The descriptor.
    let number: Int32
    /// Whether the file lies on a disk, so that one can go back in it; standard input and output never count as such.
    let isRegular: Bool
    private let isOwned: Bool

    /// Opens a file for reading; `-` is standard input.
    init(reading path: String) throws(MediaFileError) {
        guard path != "-" else {
            self.init(path: path, number: STDIN_FILENO, isRegular: false, isOwned: false)
            return
        }
        let number = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw MediaFileError(.open, path, status: errno) }
        self.init(adopting: number, path: path)
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
    init(adopting number: Int32, path: String) {
        var status = stat()
        let isRegular = unsafe fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        self.init(path: path, number: number, isRegular: isRegular, isOwned: true)
    }

    private init(path: String, number: Int32, isRegular: Bool, isOwned: Bool) {
        self.path = path
        self.number = number
        self.isRegular = isRegular
        self.isOwned = isOwned
    }

    deinit {
        if isOwned { _ = Glibc.close(number) }
    }

    /// Reads into all of `list` that is left, as much as there is; 0 at the end of the file.
    ///
    /// What was read is taken off `list`.
    func read(
        into list: inout ScatterList,
        _ operation: MediaFileError.Operation
    ) throws(MediaFileError) -> Int {
        while true {
            let count = unsafe list.withNextPieces { pieces, count in unsafe readv(number, pieces, count) }
            if count >= 0 {
                list.removeFirst(count)
                return count
            }
            guard errno == EINTR else { throw MediaFileError(operation, path, status: errno) }
        }
    }
}
