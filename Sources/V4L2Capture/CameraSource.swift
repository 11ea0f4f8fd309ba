public import Capture
public import MediaCore
import Threading

/// A camera of this machine.
///
/// Frames are captured, converted and delivered on one thread of the source's own. This thread owns the device from the
/// first user's start to the last user's stop; changes of cameras and
/// outages open and close devices on other threads.
///
/// A size requested while capturing takes effect at once: frames of the camera's current size are cropped and scaled
/// down. A rate requested while capturing also takes effect at once: frames are left out. The camera itself changes to
/// another size or pixel format at the next start, or by `selectCaptureDevice(_:format:)`. Starts and failures report
/// `CameraError`s. A source that is released while it captures stops by itself. All members may be used from any
/// thread.
///
/// Unless a size or a rate is requested, frames above 1920x1080 are scaled down and frames above 30 a second are left
/// out, with a warning (`CaptureEvent.warning`).
///
/// A camera that has worked and then gives no pictures, because it was unplugged, hangs or is refused, is an
/// interruption (`CaptureEvent.interrupted`) and not a failure. The source then delivers two slates a second of the
/// same size, and looks for the same camera until it is back, at any node. It fails after the outage limit, if one is
/// set. If a camera cannot be opened at the start, the start fails.
public final class CameraSource: VideoCapturer, CoreCapturer {
    /// How long a streaming camera may deliver nothing before it counts as failed.
    ///
    /// Five seconds is longer than the frame interval that cameras fall to in the dark, and longer than a USB reset. At
    /// rates below 0.6 frames per second, stated or measured, the limit is three frame intervals.
    public static let patience = Duration.seconds(5)

    /// The camera, with the path at which it was last opened.
    public var device: CaptureDevice { selection.device }
    /// The core that captures for this source.
    package let core: CaptureCore
    let selection: CameraSelection
    let system: any CameraSystem
    /// Always `.camera`.
    public var kind: VideoSourceKind { .camera }

    /// Creates a source of frames from `device`, which the first start opens.
    ///
    /// - Parameters:
    ///   - device: The camera.
    ///   - request: The wanted format. Fields that are `nil` are filled from the sinks' `sourceRequirements`, then by
    ///     640x480 at 30 frames per second.
    ///   - outageLimit: How long to wait for a camera that stops giving pictures; `nil` for ever, zero not at all.
    ///   - makeConverter: Called on the capture thread at each start; the converter is used and released there.
    package convenience init(
        device: CaptureDevice,
        request: VideoFormatRequest = VideoFormatRequest(),
        outageLimit: Duration? = nil,
        makeConverter: @escaping @Sendable () -> any CapturedFrameConverter
    ) {
        self.init(
            device: device,
            request: request,
            system: KernelCameraSystem(),
            outageLimit: outageLimit,
            makeConverter: makeConverter
        )
    }

    init(
        device: CaptureDevice,
        request: VideoFormatRequest,
        system: any CameraSystem,
        patience: Duration = CameraSource.patience,
        outageLimit: Duration? = nil,
        makeConverter: @escaping @Sendable () -> any CapturedFrameConverter
    ) {
        let selection = CameraSelection(device)
        let plan = CaptureLoop.Plan(
            selection: selection,
            system: system,
            patience: patience,
            outageLimit: outageLimit,
            makeConverter: makeConverter
        )
        self.selection = selection
        self.system = system
        core = CaptureCore(threadName: "camera", makesSizes: true) { shortage in
            CameraError(
                .outOfResources,
                device: selection.device.path,
                attempt: "open",
                status: shortage.status,
                explanation: "\(shortage)"
            )
        } body: { context in
            try CaptureLoop.run(plan, context)
        }
        core.setInitialRequest(request)
    }

    /// Captures from another camera, or in another format, as the same source: published tracks go on.
    ///
    /// While capturing, the new camera is opened on another thread and has a frame ready before the present one is
    /// closed, so that frames go on coming. If the bus has no bandwidth for both, if it is the same camera, or if two
    /// nodes of one device exclude each other, the present one is closed first. The size of the frames changes only if
    /// the new camera, or `format`, makes it so; a change of size makes one keyframe. Controls that were set are kept
    /// for the same camera only. While not capturing, the next start uses the camera.
    ///
    /// - Parameters:
    ///   - device: One of `CameraSource.devices()`.
    ///   - format: The requested format, which replaces all earlier requests; `nil` keeps them. `resetOutputFormat()`
    ///     takes it back.
    /// - Returns: The time between the last frame before the change and the first one after it; zero while not
    ///   capturing.
    /// - Throws: `CameraError`, if the camera cannot be used or gives no frame: the present one then goes on, in its
    ///   format. `CancellationError`, if capturing ends meanwhile, or another change follows before the first frame.
    @discardableResult
    public func selectCaptureDevice(_ device: CaptureDevice, format: VideoFormatRequest? = nil) async throws -> Duration
    {
        try await withCheckedThrowingContinuation { continuation in
            let change = CameraSelection.Change(device: device, request: format) { continuation.resume(with: $0) }
            guard !selection.ask(for: change) else { return }
            // A driver may take a second, and few threads serve all tasks of a program.
            do throws(ThreadShortage) {
                _ = try WorkerThread(name: "camera-select") { self.make(change) }
            } catch {
                make(change)
            }
        }
    }

    /// Makes a change while there is no capture thread; if there is one by then, that makes it.
    private func make(_ change: CameraSelection.Change) {
        while !selection.ask(for: change) {
            do throws(CameraError) {
                _ = try CameraDirectory(system: system).open(change.device)
            } catch {
                return change.answer(.failure(error))
            }
            // Capturing may have begun meanwhile.
            guard selection.adopt(change) else { continue }
            if let request = change.request { core.replaceRequest(request) }
            return change.answer(.success(.zero))
        }
    }

    /// Captures from another camera, or in another format, such as one of `supportedFormats(captureDevice:)`.
    ///
    /// It is `selectCaptureDevice(_:format:)` with a request for all of `format`; `nil` keeps the earlier requests.
    @discardableResult
    // Otherwise `format: nil` would fit this function and the one with a request equally well.
    @_disfavoredOverload
    public func selectCaptureDevice(_ device: CaptureDevice, format: VideoFormat?) async throws -> Duration {
        try await selectCaptureDevice(device, format: format.map { VideoFormatRequest($0) })
    }

    deinit {
        // Do not wait: a driver may take seconds to close.
        core.abandon(waiting: false)
    }
}

// MARK: - Finding cameras

extension CameraSource {
    /// All cameras that can be opened, by node number.
    ///
    /// Opens each node briefly, which wakes some cameras. Metadata, output and codec nodes are left out, and so are those
    /// that deliver nothing until a program sets up a pipeline for them (`V4L2_CAP_IO_MC`).
    public static func devices() -> [CaptureDevice] {
        CameraDirectory(system: KernelCameraSystem()).devices()
    }

    /// The cameras that can be opened, and why each other video node cannot be.
    package static func survey() -> CameraSurvey {
        CameraDirectory(system: KernelCameraSystem()).survey()
    }

    /// The camera to use if none is named: the first of `devices()` with a format that we can read, or else the first.
    ///
    /// - Throws: `permissionDenied` if there are video nodes but this user cannot open one that is a camera;
    ///   `noSuchDevice` if there is no camera.
    public static func defaultDevice() throws(CameraError) -> CaptureDevice {
        try CameraDirectory(system: KernelCameraSystem()).firstDevice()
    }

    /// The camera that `text` names.
    ///
    /// `text` can be a path (`/dev/video0`, or a link to it, as in `/dev/v4l/by-id`) or a node number (`0`). It can
    /// also be the exact name of a card, its bus, or the name of a link under `/dev/v4l`. Otherwise it is a part of one
    /// of these three, in upper or lower case, that fits only one camera.
    ///
    /// - Throws: `noSuchDevice` (lists the cameras there are), `ambiguousDevice` (lists those that fit),
    ///   `permissionDenied`, `busy`, `notACamera`, `driverFailed`.
    public static func captureDevice(matching text: String) throws(CameraError) -> CaptureDevice {
        try CameraDirectory(system: KernelCameraSystem()).device(matching: text)
    }

    /// The formats that a camera offers and that we can read, ordered by dimensions, then rate.
    ///
    /// If a driver gives ranges, the list has the usual sizes and rates within them, and both ends.
    ///
    /// - Throws: The same errors as `captureFormats(captureDevice:)`.
    public static func supportedFormats(captureDevice: CaptureDevice) throws(CameraError) -> [VideoFormat] {
        try captureFormats(captureDevice: captureDevice).supportedFormats
    }

    /// All formats that a camera offers, as its driver lists them, and whether we can read each.
    ///
    /// - Throws: `noSuchDevice`, `permissionDenied`, `busy`, `notACamera`, `deviceLost`, `driverFailed`.
    public static func captureFormats(captureDevice: CaptureDevice) throws(CameraError) -> [CaptureFormat] {
        try CameraDirectory(system: KernelCameraSystem()).formats(of: captureDevice.path)
    }
}
