import Foundation
import MediaFiles
import RoomKit

/// The files of a dump: the video, and the log beside it.
enum DumpFiles {
    /// The path of the log beside the dump `path`.
    static func log(of path: String) -> String { "\((path as NSString).deletingPathExtension).frames.jsonl" }

    /// Reads the log beside the dump `path`, without an incomplete last line.
    ///
    /// - Returns: The lines in order; `nil` if there is no log.
    /// - Throws: `MediaFileError` if the log cannot be read, or is damaged.
    static func readLog(of path: String) throws(MediaFileError) -> [FrameLogEntry]? {
        let log = log(of: path)
        guard unsafe access(log, R_OK) == 0 else {
            if errno == ENOENT { return nil }
            throw MediaFileError(.open, log, status: errno)
        }
        guard isFile(log) else {
            throw MediaFileError(.notRegular, .open, log, "it is a pipe or a device; move it away to verify without it")
        }
        var entries: [FrameLogEntry] = []
        // Piece by piece: the log of some days is longer than a file that is read at once may be.
        try WholeFile.readLines(of: log) { lines throws(MediaFileError) in
            do {
                entries += try FrameLogEntry.read(String(decoding: lines, as: UTF8.self))
            } catch {
                throw MediaFileError(.damaged, .read, log, "a line is no frame's; move it away to verify without it")
            }
        }
        return entries
    }

    /// Whether two paths lead to the same file, under whatever names; `-` is standard input.
    ///
    /// - Returns: `false` also if one of the files does not exist.
    static func isSame(_ first: String, _ second: String) -> Bool {
        guard let one = status(of: first), let other = status(of: second) else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        let isFound = unsafe path == "-" ? fstat(STDIN_FILENO, &status) == 0 : stat(path, &status) == 0
        return isFound ? status : nil
    }

    /// Whether `path` can be read as a file, or reading it tells why not.
    ///
    /// A pipe makes its reader wait for a writer, and a device may never end.
    static func isFile(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return true }
        return [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }
}
