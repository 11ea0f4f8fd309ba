public import MediaCore
public import V4L2Capture
import VideoProcessing

/// What is done to a camera's pictures as they are converted, once, before anybody sees them.
public struct CameraTransform: Hashable, Sendable {
    /// Cut to this size around the middle, before turning; `nil` leaves the camera's size.
    ///
    /// Sides are brought down to even ones, and to what the picture has.
    public var crop: Dimensions?
    /// Turned clockwise.
    public var rotation = VideoRotation.none
    /// Mirrored, left for right, after turning.
    public var isMirrored = false

    /// Nothing is done.
    public init() {}
}

extension CameraSource {
    /// A source of pictures from `device`, which is opened by `startCapture()`.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - request: What the camera is to be set to; of a size that it does not have, the smallest that holds it. What
    ///     is left open is 640x480 at 30 frames per second, or the nearest the camera has.
    ///   - transform: What is done to the pictures.
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
