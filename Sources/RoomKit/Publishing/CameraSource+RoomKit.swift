public import MediaCore
public import V4L2Capture
import VideoProcessing

/// Crops, turns and mirrors a camera's frames while they are converted, before any sink gets them.
public struct CameraTransform: Hashable, Sendable {
    /// The size to center-crop to, after scaling and before turning; `nil` keeps the whole frame.
    ///
    /// Sides are reduced to even numbers, and to the sides of the frame.
    public var crop: Dimensions?
    /// The clockwise rotation.
    public var rotation = VideoRotation.none
    /// Whether frames are mirrored, left to right, after turning.
    public var isMirrored = false
    /// Whether the frames are not turned and mirrored, but say how they must be (`VideoFrame.rotation`, `isMirrored`).
    ///
    /// Published tracks then turn them before encoding, or the subscribers do: see `VideoPublishOptions.orientation`.
    public var tagsOrientation = false

    /// Creates a transform that changes nothing.
    public init() {}
}

extension CameraSource {
    /// Creates a source of frames from `device`; the first start opens the device.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - request: The requested format. The camera runs at its smallest size that covers the requested one, or else
    ///     at its largest. Frames are center-cropped and scaled down, never up. Fields that are `nil` default to
    ///     640x480 at 30 frames per second, or the camera's nearest.
    ///   - outageLimit: How long to wait for a camera that worked and then gives no pictures. `nil` waits for ever;
    ///     zero makes the source fail at once, without a slate.
    ///   - transform: Crops, turns and mirrors the frames of that size.
    ///   - orientationTracker: Says how the camera is held; its turn is added to that of `transform`. While capturing,
    ///     a change takes effect with the next frame.
    public convenience init(
        device: CaptureDevice,
        request: VideoFormatRequest = VideoFormatRequest(),
        outageLimit: Duration? = nil,
        transform: CameraTransform = CameraTransform(),
        orientationTracker: (any OrientationTracker)? = nil
    ) {
        self.init(device: device, request: request, outageLimit: outageLimit) {
            Self.makeConverter(transform, orientationTracker)
        }
    }

    /// Creates a source of frames from `device` in one of its formats; the first start opens the device.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - format: One of `CameraSource.supportedFormats(captureDevice:)`; `nil` for the default.
    public convenience init(device: CaptureDevice, format: VideoFormat?) {
        self.init(device: device, request: format.map { VideoFormatRequest($0) } ?? VideoFormatRequest())
    }

    /// Creates a source of frames from `device` in the size of `preset`; the first start opens the device.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - preset: The size.
    ///   - frameRate: The requested rate; `nil` for 30 frames per second, or the camera's nearest.
    public convenience init(device: CaptureDevice, preset: VideoPreset, frameRate: FrameRate? = nil) {
        self.init(device: device, request: VideoFormatRequest(preset: preset, frameRate: frameRate))
    }

    /// The converter that applies `transform` and the turn of `orientationTracker`.
    static func makeConverter(
        _ transform: CameraTransform,
        _ orientationTracker: (any OrientationTracker)?
    ) -> any CapturedFrameConverter {
        do {
            let converter = try FrameConverter(
                transform: FrameTransform(
                    crop: transform.crop,
                    rotation: transform.rotation,
                    isMirrored: transform.isMirrored
                ),
                tagsOrientation: transform.tagsOrientation
            )
            return orientationTracker.map { OrientedConverter(converter, $0) } ?? converter
        } catch {
            preconditionFailure("no memory to convert pictures: \(error)")
        }
    }
}
