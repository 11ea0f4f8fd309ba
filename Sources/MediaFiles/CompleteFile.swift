import Glibc

/// Writes files that appear under their names only when they are complete.
package enum CompleteFile {
    /// Writes a file beside `path`, and gives it that name.
    ///
    /// - Parameters:
    ///   - content: The file's content.
    ///   - path: The file's path.
    ///   - replacing: Whether to replace a regular file with that name, for which the caller has checked it.
    /// - Throws: `fileExists` unless `replacing`; `notFound`, `notPermitted`, `storageFull`, `systemFailure`.
    static func write(_ content: Span<UInt8>, to path: String, replacing: Bool) throws(MediaFileError) {
        // A process that was killed may have left a file, and the next one in a container has the same number.
        let temporary = "\(path).\(String(UInt32.random(in: 0...UInt32.max), radix: 36)).part"
        do throws(MediaFileError) {
            var file = try OutputFile(creating: temporary)
            try file.append(content)
            try rename(temporary, to: path, replacing: replacing)
        } catch {
            if error.code != .fileExists || error.path != temporary { _ = unsafe unlink(temporary) }
            throw error.path == temporary ? MediaFileError(error, naming: path) : error
        }
    }

    /// Checks that a file can be written to `path`, in place of a regular file if there is one; creates nothing.
    ///
    /// - Throws: `notRegular`, `notFound`, `notPermitted`, `systemFailure`.
    package static func checkReplaceable(_ path: String) throws(MediaFileError) {
        var status = stat()
        // Do not follow a link: renaming would replace the link itself, even `/dev/stdout`.
        if unsafe lstat(path, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR { throw MediaFileError(.create, path, status: EISDIR) }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw MediaFileError(.notRegular, .create, path, "it is a link, a pipe or a device; name another")
            }
        } else if errno != ENOENT {
            throw MediaFileError(.create, path, status: errno)
        }
        let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "./"
        guard unsafe access("\(directory).", W_OK | X_OK) == 0 else {
            throw MediaFileError(.create, path, status: errno)
        }
    }

    /// Gives the complete file its name.
    ///
    /// If it must not replace another file, it uses a link, which fails if there is one.
    private static func rename(
        _ temporary: String,
        to path: String,
        replacing: Bool
    ) throws(MediaFileError) {
        if !replacing {
            if unsafe link(temporary, path) == 0 {
                _ = unsafe unlink(temporary)
                return
            }
            let status = errno
            guard [EPERM, EOPNOTSUPP, ENOSYS].contains(status) else {
                throw MediaFileError(.create, path, status: status)
            }
            // FAT and similar file systems have no links. There, a file that another program creates with the same name
            // at the same moment may be lost.
            if unsafe access(path, F_OK) == 0 { throw MediaFileError(.create, path, status: EEXIST) }
        }
        guard unsafe Glibc.rename(temporary, path) == 0 else {
            throw MediaFileError(.create, path, status: errno)
        }
    }
}
