import Glibc

/// Files that are read or written in one piece, such as logs and drawings.
package enum WholeFile {
    /// The longest file that is read, in bytes: a log of some days.
    package static let longest = 1 << 30

    /// Reads all of a file; `-` is standard input.
    ///
    /// - Parameter path: The file's path.
    /// - Returns: The file's bytes.
    /// - Throws: `notFound`, `notPermitted`, `unsupported` for one that is longer than `longest`, `systemFailure`.
    package static func read(_ path: String) throws(MediaFileError) -> [UInt8] {
        let file = try OpenFile(reading: path)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { piece in
                unsafe Glibc.read(file.number, piece.baseAddress, piece.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw MediaFileError(.read, path, status: errno) }
            guard count > 0 else { return bytes }
            guard bytes.count + count <= longest else {
                throw MediaFileError(.unsupported, .read, path, "it is longer than 1 GiB")
            }
            bytes += piece[..<count]
        }
    }

    /// Writes a text as a file, in place of a regular file if there is one; `-` is standard output.
    ///
    /// The file appears under its name only when it is complete.
    ///
    /// - Parameters:
    ///   - text: The file's content.
    ///   - path: The file's path.
    /// - Throws: `notRegular`, `notFound`, `notPermitted`, `storageFull`, `systemFailure`.
    package static func write(_ text: String, to path: String) throws(MediaFileError) {
        let bytes = Array(text.utf8)
        guard path != "-" else {
            var output = try OutputFile(creating: path)
            return try output.append(bytes.span)
        }
        try CompleteFile.checkReplaceable(path)
        try CompleteFile.write(bytes.span, to: path, replacing: true)
    }
}
