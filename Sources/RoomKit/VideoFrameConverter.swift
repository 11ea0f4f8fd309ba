public import MediaCore
import VideoProcessing

/// Converts pictures in the formats of cameras and image libraries into frames, for custom sources.
///
/// It accepts YUYV, UYVY, NV12, NV21, YU12, YV12, GREY, RGB3, BGR3, MJPG and JPEG. It reuses its buffers, so keep one
/// converter per source. Confine it to one thread.
public final class VideoFrameConverter {
    fileprivate let converter: FrameConverter

    /// Creates a converter that has no buffers yet.
    ///
    /// - Throws: `RoomError` of code `outOfResources` if there is no memory for a JPEG decoder.
    public init() throws(RoomError) {
        do {
            converter = try FrameConverter()
        } catch {
            throw RoomError(.outOfResources, "\(error)")
        }
    }

    /// Whether pictures of `pixelFormat` can be converted.
    public func accepts(_ pixelFormat: PixelFormat) -> Bool { converter.accepts(pixelFormat) }
}

extension VideoFrame {
    /// Creates a frame from a picture in another format.
    ///
    /// - Parameters:
    ///   - bytes: The picture; read during the call only.
    ///   - layout: The picture's format, size and memory layout.
    ///   - timestamp: When the picture was captured.
    ///   - converter: Does the conversion; call this on the converter's thread.
    /// - Throws: `DamagedPicture`, also for a format that the converter does not accept.
    public init(
        converting bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant,
        with converter: VideoFrameConverter
    ) throws(DamagedPicture) {
        self = try converter.converter.convert(bytes, layout: layout, timestamp: timestamp)
    }
}
