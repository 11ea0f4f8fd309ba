public import MediaCore
public import V4L2Capture
import VideoProcessing

/// What is done to a camera's pictures as they are converted, once, before anybody sees them.
public struct CameraTransform: Hashable, Sendable {
    /// Cut to this size around the middle, before turning; `nil` leaves the size that was requested, or else the camera's.
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
    ///   - request: What pictures are to be. Of a size that the camera does not have it is set to the smallest that holds
    ///     it, or else the largest there is, and pictures are cut to the aspect ratio and scaled down, never up. What is
    ///     left open is 640x480 at 30 frames per second, or the nearest the camera has.
    ///   - transform: What is done to the pictures in that size.
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
