public import MediaCore
public import V4L2Capture
import VideoProcessing

/// What is done to a camera's frames while they are converted, before any sink gets them.
public struct CameraTransform: Hashable, Sendable {
    /// Center-cropped to this size, after scaling and before turning; `nil` keeps the whole frame.
    ///
    /// Sides are brought down to even ones, and to what the frame has.
    public var crop: Dimensions?
    /// Turned clockwise.
    public var rotation = VideoRotation.none
    /// Mirrored, left for right, after turning.
    public var isMirrored = false

    /// Nothing is done.
    public init() {}
}

extension CameraSource {
    /// A source of frames from `device`, which is opened by the first start.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - request: The wanted format. The camera runs at its smallest size that covers the wanted one, or else at its
    ///     largest; frames are center-cropped and scaled down, never up. What is left open is 640x480 at 30 frames per
    ///     second, or the nearest that the camera has.
    ///   - transform: What is done to the frames in that size.
    public convenience init(
        device: CaptureDevice,
        request: VideoFormatRequest = VideoFormatRequest(),
        transform: CameraTransform = CameraTransform()
    ) {
        self.init(device: device, request: request) {
            Self.makeConverter(transform)
        }
    }

    private static func makeConverter(_ transform: CameraTransform) -> FrameConverter {
        do {
            return try FrameConverter(
                transform: FrameTransform(
                    crop: transform.crop,
                    rotation: transform.rotation,
                    isMirrored: transform.isMirrored
                )
            )
        } catch {
            preconditionFailure("no memory to convert pictures: \(error)")
        }
    }
}
