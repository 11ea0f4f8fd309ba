import Glibc

/// Reads files of the kernel, whose length is not known before.
///
/// Foundation takes the first short read of such a file for its end, which cuts `/proc/self/maps` after a page.
enum SystemFile {
    /// The most bytes that are read; the list of installed packages has some 2 MB.
    private static let longest = 1 << 24

    /// The text of a file; `nil` if it cannot be read.
    static func text(of path: String) -> String? {
        // Without O_NONBLOCK, opening a pipe waits for its writer.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < longest {
            let count = unsafe read(file, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? String(decoding: bytes, as: UTF8.self) : nil }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The lines of a file; none if it cannot be read.
    static func lines(of path: String) -> [Substring] { text(of: path)?.split(separator: "\n") ?? [] }

    /// The names in a folder, sorted; none if it cannot be read.
    static func names(in folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Whether there is something at `path`.
    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }
}
