import MediaFiles
import RoomKit

/// Reads the pictures of a WebM or IVF file.
enum CompressedPictures {
    /// Decodes a file and passes the picture of every frame to `body`, in order.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - body: Called once for each frame, with its description, and with `nil` for the picture of a frame that is
    ///     not shown.
    /// - Returns: The size that the file states, and the part that was not read.
    /// - Throws: `MediaFileError`, or the error of opening a decoder.
    static func read(_ path: String, _ body: (VideoBuffer?, StoredFrame) -> Void) throws -> DumpExtent {
        let reader = try EncodedVideoFormat.openReader(path: path)
        guard let codec = TrackCodec.stored(reader.codec) else {
            throw MediaFileError(.unsupported, .open, path, "this program cannot decode its codec")
        }
        let decoder = try codec.makeDecoder()
        var buffer: VideoBuffer?
        var number = 0
        var unread: DumpExtent.Unread?
        func nextFrame() throws -> StoredFrame? {
            do throws(MediaFileError) {
                let frame = try reader.nextFrame()
                if frame == nil { unread = reader.nextFileOffset.map { .anotherFile($0) } }
                return frame
            } catch {
                unread = try .cutOff(by: error)
                return nil
            }
        }
        while let frame = try nextFrame() {
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
                body(picture?.buffer, frame)
            } catch {
                throw MediaFileError(.damaged, .read, path, "frame \(number) is not decodable: \(error)")
            }
        }
        return DumpExtent(dimensions: reader.dimensions, unread: unread)
    }
}
