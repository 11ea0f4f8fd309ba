public import MediaCore
import VideoProcessing

/// Turns pictures in the formats of cameras and image libraries into frames, for custom sources.
///
/// Takes YUYV, UYVY, NV12, NV21, YU12, YV12, GREY, RGB3, BGR3, MJPG and JPEG. Its buffers are used again: keep one
/// converter for a source. Confine it to one thread.
public final class VideoFrameConverter {
    fileprivate let converter: FrameConverter

    /// A converter without buffers yet.
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
    /// A frame made of a picture in another format.
    ///
    /// - Parameters:
    ///   - bytes: The picture; read during the call only.
    ///   - layout: How the picture lies in `bytes`.
    ///   - timestamp: When the picture was captured.
    ///   - converter: Does the conversion; call it on the converter's thread.
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
