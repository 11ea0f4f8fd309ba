import MediaFiles
import RoomKit

/// Reads the pictures of a WebM or IVF file.
enum CompressedPictures {
    /// Decodes a file and passes the picture of every frame to `body`, in order.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - body: Called once for each frame, with `nil` for a frame that is not shown.
    /// - Returns: The size that the file states.
    /// - Throws: `MediaFileError`, or the error of opening a decoder.
    static func read(_ path: String, _ body: (VideoBuffer?) -> Void) throws -> Dimensions {
        let reader = try EncodedVideoFormat.openReader(path: path)
        guard let codec = TrackCodec.stored(reader.codec) else {
            throw MediaFileError(.unsupported, .open, path, "this program cannot decode its codec")
        }
        let decoder = try codec.makeDecoder()
        var buffer: VideoBuffer?
        var number = 0
        while let frame = try nextFrame(of: reader) {
            let timestamp = MonotonicInstant(nanoseconds: frame.time.wholeNanoseconds)
            number += 1
            do {
                let picture = try reader.withFrameBytes { bytes throws(DecodingFailure) in
                    try decoder.decode(bytes, timestamp: timestamp) { dimensions in
                        if let buffer, buffer.dimensions == dimensions { return buffer }
                        let new = VideoBuffer(dimensions: dimensions)
                        buffer = new
                        return new
                    }
                }
                body(picture?.buffer)
            } catch {
                throw MediaFileError(.damaged, .read, path, "frame \(number) is not decodable: \(error)")
            }
        }
        return reader.dimensions
    }

    /// Reads the next frame; a truncated last frame is not an error, because a dump may end anywhere.
    private static func nextFrame(of reader: any EncodedVideoReader) throws -> StoredFrame? {
        do {
            return try reader.nextFrame()
        } catch let error where error.code == .truncated {
            return nil
        }
    }
}
