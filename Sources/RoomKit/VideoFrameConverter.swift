public import MediaCore
import VideoProcessing

/// Converts pictures in the formats of cameras and image libraries into frames, for custom sources.
///
/// It accepts YUYV, YVYU, UYVY, NV12, NV21, NV16, YU12, YV12, 422P, GREY, RGB3, BGR3, BA24 (ARGB), AR24 (BGRA), AB24
/// (RGBA), XR24 (BGRX), XB24 (RGBX), MJPG and JPEG. It reuses its buffers, so keep one converter per source. Confine it to one thread.
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
    /// Creates a frame from a picture in another format, whose planes follow each other in one run of bytes.
    ///
    /// - Parameters:
    ///   - bytes: The picture; read during the call only.
    ///   - layout: The picture's format, size and memory layout.
    ///   - timestamp: When the picture was captured.
    ///   - converter: Does the conversion; call this on the converter's thread.
    /// - Throws: `InvalidPicture` if the format cannot be converted, the layout is impossible, bytes are missing, or a
    ///   JPEG picture is damaged.
    public init(
        converting bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant,
        with converter: VideoFrameConverter
    ) throws(InvalidPicture) {
        self = try converter.converter.convert(bytes, checking: layout, timestamp: timestamp)
    }

    /// Creates a frame from an uncompressed picture in another format, whose planes lie anywhere in memory.
    ///
    /// - Parameters:
    ///   - planes: The planes in the order of the format, such as Y, U and V; read during the call only.
    ///   - layout: The picture's format, size and strides.
    ///   - timestamp: When the picture was captured.
    ///   - converter: Does the conversion; call this on the converter's thread.
    /// - Throws: `InvalidPicture` if the format cannot be converted, the layout is impossible, or the number or the
    ///   length of the planes does not fit it.
    @unsafe public init(
        converting planes: [UnsafeRawBufferPointer],
        layout: CapturedLayout,
        timestamp: MonotonicInstant,
        with converter: VideoFrameConverter
    ) throws(InvalidPicture) {
        self = unsafe try converter.converter.convert(planes: planes, checking: layout, timestamp: timestamp)
    }
}
