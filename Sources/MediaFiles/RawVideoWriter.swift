import Glibc
package import MediaCore

/// Writes raw pictures of one size to a pipe or a new file, with or without the headers of Y4M.
///
/// A pipe's reader that is slow blocks the call. Calls may come from several threads, one at a time.
package final class RawVideoWriter: @unchecked Sendable {
    // `@unchecked Sendable`: the caller makes one call at a time, as stated above.

    /// The size of every picture.
    package let dimensions: Dimensions
    private let frameHeader: [UInt8]
    private var file: OutputFile

    /// Opens the output, and writes the header that a Y4M stream begins with.
    ///
    /// - Parameters:
    ///   - path: `-` for standard output, or a file, which must not exist yet.
    ///   - dimensions: The size of every picture.
    ///   - frameRate: The rate in the header of Y4M; `nil` for the planes alone, Y, U and V of each picture.
    /// - Throws: `fileExists`, `notFound`, `notPermitted`, `storageFull`, `readerGone`, `systemFailure`.
    package init(path: String, dimensions: Dimensions, frameRate: FrameRate?) throws(MediaFileError) {
        self.dimensions = dimensions
        file = try OutputFile(creating: path)
        frameHeader = frameRate == nil ? [] : Array("\(Y4MHeader.frameSignature)\n".utf8)
        guard let frameRate else { return }
        let header = Y4MHeader(dimensions: dimensions, frameRate: frameRate)
        try file.append(Array(header.line.utf8).span)
    }

    /// Adds a picture, directly from its memory; `rotation` is not applied.
    ///
    /// - Throws: `wrongSize` if the picture has another size than the others; `storageFull`, `readerGone`,
    ///   `systemFailure`.
    package func write(_ frame: VideoFrame) throws(MediaFileError) {
        guard frame.dimensions == dimensions else {
            throw MediaFileError(
                .wrongSize,
                .write,
                file.path,
                "a picture of \(frame.dimensions) came for pictures of \(dimensions); scale it first"
            )
        }
        try frame.buffer.withPlanes { luma, chromaU, chromaV throws(MediaFileError) in
            try unsafe file.append { list in
                unsafe frameHeader.withUnsafeBytes { unsafe list.append(readingFrom: $0) }
                unsafe list.append(
                    luma: luma.pointerToReadFrom,
                    chromaU: chromaU.pointerToReadFrom,
                    chromaV: chromaV.pointerToReadFrom,
                    of: frame.buffer
                )
            }
        }
    }
}
