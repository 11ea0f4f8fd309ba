import Glibc

/// What is behind the name of a file to read; `-` is standard input.
package enum InputPath {
    /// Whether it can be opened and read without taking data from the next reader: true for a file on a disk, and if
    /// there is no file.
    package static func canBeOpenedAgain(_ path: String) -> Bool {
        guard path != "-" else { return false }
        guard let kind = kind(path) else { return true }
        return kind == S_IFREG || kind == S_IFDIR
    }

    /// Whether it is a file on a disk, also as standard input, and no pipe or socket of a running program.
    package static func isStored(_ path: String) -> Bool { kind(path) == S_IFREG }

    private static func kind(_ path: String) -> mode_t? {
        var status = stat()
        let result = unsafe path == "-" ? fstat(STDIN_FILENO, &status) : stat(path, &status)
        return result == 0 ? status.st_mode & S_IFMT : nil
    }
}
