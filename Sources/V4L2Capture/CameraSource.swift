public import Capture
public import MediaCore
import Threading

/// A camera of this machine.
///
/// Frames are captured, converted and delivered on one thread of the source's own, which owns the device from the first
/// user's start to the last user's stop. A size that is asked for while capturing is taken up at once, by cropping and
/// scaling down what the camera was set to, and so is a rate, by leaving frames out; the camera itself is set to another
/// size or pixel format at the next start. Starts and failures are `CameraError`s. A source that is released while it
/// captures stops by itself. All members may be used from any thread.
public final class CameraSource: CoreCapturer {
    /// How long a camera that streams may deliver nothing before it counts as failed.
    ///
    /// Five seconds: more than the slowest rate that cameras fall to in the dark, and than a USB reset takes. At rates
    /// below 0.6 frames per second it is three frame intervals.
    public static let patience = Duration.seconds(5)

    /// The camera.
    public let device: CaptureDevice
    /// What does the capturing.
    public let core: CaptureCore
    /// Always `.camera`.
    public var kind: VideoSourceKind { .camera }

    /// A source of frames from `device`, which is opened by the first start.
    ///
    /// - Parameters:
    ///   - device: The camera.
    ///   - request: The wanted format; fields left open are filled from the sinks' `sourceRequirements`, then by
    ///     640x480 at 30 frames per second.
    ///   - makeConverter: Called on the capture thread at each start; the converter is used and released there.
    package convenience init(
        device: CaptureDevice,
        request: VideoFormatRequest = VideoFormatRequest(),
        makeConverter: @escaping @Sendable () -> any CapturedFrameConverter
    ) {
        self.init(device: device, request: request, system: KernelCameraSystem(), makeConverter: makeConverter)
    }

    init(
        device: CaptureDevice,
        request: VideoFormatRequest,
        system: any CameraSystem,
        patience: Duration = CameraSource.patience,
        makeConverter: @escaping @Sendable () -> any CapturedFrameConverter
    ) {
        let plan = CaptureLoop.Plan(device: device, system: system, patience: patience, makeConverter: makeConverter)
        self.device = device
        core = CaptureCore(threadName: "camera", makesSizes: true) { shortage in
            CameraError(
                .outOfResources,
                device: device.path,
                attempt: "open",
                status: shortage.status,
                explanation: "\(shortage)"
            )
        } body: { context in
            try CaptureLoop.run(plan, context)
        }
        core.requestOutputFormat(request)
    }

    deinit {
        // Not waited for: a driver may take seconds to close.
        core.abandon(waiting: false)
    }
}

// MARK: - What there is

extension CameraSource {
    /// All cameras that can be opened, by node number.
    ///
    /// Opens each node for a moment, which wakes some cameras. Metadata, output and codec nodes are left out.
    public static func devices() -> [CaptureDevice] {
        CameraDirectory(system: KernelCameraSystem()).devices()
    }

    /// The camera to take where none is named: the first of `devices()`.
    ///
    /// - Throws: `permissionDenied` if there are video nodes and this user may open none that is a camera;
    ///   `noSuchDevice` if there is no camera.
    public static func defaultDevice() throws(CameraError) -> CaptureDevice {
        try CameraDirectory(system: KernelCameraSystem()).firstDevice()
    }

    /// The camera that `text` names.
    ///
    /// A path (`/dev/video0`, or a link to it, as in `/dev/v4l/by-id`), a node number (`0`), or exactly a card's name,
    /// its bus, or the name of a link under `/dev/v4l`; else a part of one of these three, in whatever case, that only
    /// one camera has.
    ///
    /// - Throws: `noSuchDevice` (lists the cameras there are), `ambiguousDevice` (lists those that fit),
    ///   `permissionDenied`, `busy`, `notACamera`, `driverFailed`.
    public static func captureDevice(matching text: String) throws(CameraError) -> CaptureDevice {
        try CameraDirectory(system: KernelCameraSystem()).device(matching: text)
    }

    /// The formats that a camera offers and that we can read, by increasing dimensions, then rate.
    ///
    /// Where a driver gives ranges, these are the usual sizes and rates within, and both ends.
    ///
    /// - Throws: As `captureFormats(captureDevice:)`.
    public static func supportedFormats(captureDevice: CaptureDevice) throws(CameraError) -> [VideoFormat] {
        try captureFormats(captureDevice: captureDevice).flatMap { offer in
            offer.formats.filter { offer.decoding.canDecode($0.dimensions) }
        }.sortedByDimensions()
    }

    /// All that a camera offers, as its driver lists it, with what of it we can read.
    ///
    /// - Throws: `noSuchDevice`, `permissionDenied`, `busy`, `notACamera`, `deviceLost`, `driverFailed`.
    public static func captureFormats(captureDevice: CaptureDevice) throws(CameraError) -> [CaptureFormat] {
        try CameraDirectory(system: KernelCameraSystem()).formats(of: captureDevice.path)
    }
}
