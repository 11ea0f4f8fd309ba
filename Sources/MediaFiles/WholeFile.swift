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

    /// The longest line that `readLines` takes, in bytes; a frame's line in a log has some hundreds.
    private static let longestLine = 1 << 20

    /// Reads a text file of any length, in pieces of whole lines; `-` is standard input.
    ///
    /// - Parameters:
    ///   - path: The file's path.
    ///   - pieceLength: How many bytes are read at once.
    ///   - body: Called with each piece, in order. Each ends with a line feed, except the last one if the file ends
    ///     without.
    /// - Throws: `notFound`, `notPermitted`, `damaged` for a line of more than a mebibyte, `systemFailure`, or what
    ///   `body` throws.
    package static func readLines(
        of path: String,
        pieceLength: Int = 1 << 18,
        _ body: (ArraySlice<UInt8>) throws(MediaFileError) -> Void
    ) throws(MediaFileError) {
        let file = try OpenFile(reading: path)
        var piece = [UInt8](repeating: 0, count: pieceLength)
        // The beginning of a line whose end has not been read yet.
        var begun: [UInt8] = []
        while true {
            let result = unsafe piece.withUnsafeMutableBytes { bytes in
                let (start, count) = (bytes.baseAddress, bytes.count)
                return Result { () throws(MediaFileError) in try unsafe file.read(start, count, .read) }
            }
            let read = piece[..<(try result.get())]
            guard !read.isEmpty else { break }
            guard let end = read.lastIndex(of: UInt8(ascii: "\n")) else {
                begun += read
                guard begun.count <= longestLine else {
                    throw MediaFileError(.damaged, .read, path, "a line is longer than 1 MiB; get an intact copy")
                }
                continue
            }
            try body(begun + read[...end])
            begun = Array(read[(end + 1)...])
        }
        if !begun.isEmpty { try body(begun[...]) }
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
