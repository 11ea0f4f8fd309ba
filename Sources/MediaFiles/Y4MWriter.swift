package import MediaCore

/// Writes raw pictures to a Y4M file, or to another program through standard output.
///
/// Y4M has a rate but no times, so the caller must write frames evenly. `rotation` is not applied. Confine to one
/// thread.
package final class Y4MWriter {
    private let header: Y4MHeader
    private var file: OutputFile

    /// Creates a file and writes its header.
    ///
    /// - Parameters:
    ///   - path: Must not exist yet; `-` is standard output.
    ///   - dimensions: The size of every picture.
    ///   - frameRate: The rate at which players show the pictures.
    /// - Throws: `fileExists`, `notFound`, `notPermitted`, `storageFull`, `readerGone`, `systemFailure`.
    package convenience init(path: String, dimensions: Dimensions, frameRate: FrameRate) throws(MediaFileError) {
        try self.init(OutputFile(creating: path), dimensions: dimensions, frameRate: frameRate)
    }

    init(_ file: consuming OutputFile, dimensions: Dimensions, frameRate: FrameRate) throws(MediaFileError) {
        header = Y4MHeader(dimensions: dimensions, frameRate: frameRate)
        self.file = file
        try self.file.append(Array(header.line.utf8).span)
    }

    /// Adds a picture, directly from its memory.
    ///
    /// - Throws: `wrongSize` if the picture has another size than the file; `storageFull`, `readerGone`,
    ///   `systemFailure`, with the file cut back to its last whole picture.
    package func write(_ frame: VideoFrame) throws(MediaFileError) {
        guard frame.dimensions == header.dimensions else {
            throw MediaFileError(
                .wrongSize,
                .write,
                file.path,
                "a picture of \(frame.dimensions) came for pictures of \(header.dimensions); begin another file"
            )
        }
        try frame.buffer.withPlanes { luma, chromaU, chromaV throws(MediaFileError) in
            try unsafe file.append { list in
                unsafe Y4MHeader.frameLine.withUnsafeBytes { unsafe list.append(readingFrom: $0) }
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

extension Span<UInt8> {
    /// The address of the bytes, for reading only; valid as long as the span is lent.
    var pointerToReadFrom: UnsafeMutableRawPointer? {
        unsafe withUnsafeBufferPointer { unsafe UnsafeMutableRawPointer(mutating: $0.baseAddress) }
    }
}
