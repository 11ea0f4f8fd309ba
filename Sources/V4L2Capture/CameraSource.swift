public import MediaCore
import Threading

/// A camera of this machine.
///
/// Frames are captured, converted and delivered on one thread of the source's own, which owns the device from start to
/// stop. A source that is released while it captures stops by itself. All members may be used from any thread.
public final class CameraSource: VideoCapturer, Sendable {
    /// How long a camera that streams may deliver nothing before it counts as failed.
    ///
    /// Five seconds: more than the slowest rate that cameras fall to in the dark, and than a USB reset takes.
    public static let patience = Duration.seconds(5)

    /// The camera.
    public let device: CaptureDevice
    private let system: any CameraSystem
    private let makeConverter: @Sendable () -> any CapturedFrameConverter
    private let patience: Duration
    private let state: CaptureState

    /// A source of pictures from `device`, which is opened by `startCapture()`.
    ///
    /// - Parameters:
    ///   - device: The camera.
    ///   - request: What pictures are to be; what is left open is filled from the sink's `sourceRequirements`,
    ///     then by 640x480 at 30 frames per second.
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
        self.device = device
        self.system = system
        self.makeConverter = makeConverter
        self.patience = patience
        self.state = CaptureState(request: request)
    }

    deinit {
        state.finishListeners()
        guard let run = state.run else { return }
        run.requestStop()
        // This may be the capture thread, when a sink held the last reference; so somebody else joins it.
        Task.detached { [state] in
            await run.waitForEnd()
            state.forget(run)
        }
    }

    /// Where frames go; kept alive by the source from start to stop only.
    ///
    /// May be changed while capturing; a frame that is under way still goes to the sink before. Frames that come while
    /// there is none are counted as `notWanted` and not converted.
    public var sink: (any VideoSink)? {
        get { state.sink }
        set { state.sink = newValue }
    }

    /// A camera's pictures are no screen's.
    public var isScreencast: Bool { false }

    /// What the camera was really set to, by its driver's word; `nil` until capture has started.
    ///
    /// Keeps its value after the end of capturing, until the next start.
    public var captureFormat: VideoFormat? { state.captureFormat }

    /// What has been captured and dropped since the last start; up to date at each frame.
    public var captureStatistics: CaptureStatistics { state.statistics }

    /// Why capturing ended by itself; `nil` while it goes on, and after it was stopped.
    public var failure: CameraError? { state.failure }

    /// The failures to come, each as capturing ends by itself.
    ///
    /// Every call makes a stream of its own, which holds the newest failure until it is taken, goes on after a new
    /// start, and ends when the source is released. A failure is sent once the device is closed and the counts are
    /// final; errors of `startCapture()` are thrown there and not sent.
    public func failures() -> AsyncStream<CameraError> { state.failures() }

    /// Asks for another output format.
    ///
    /// A frame rate is taken up at once, by leaving frames out, and so is a size, by cropping and scaling down what the
    /// camera was set to; the camera itself is set to another size or pixel format at the next start. What is left of
    /// the request, without the size, is passed on to the sink.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        state.merge(request)
        // Pictures that are cropped or turned besides must not be brought to the size a second time.
        let rest = VideoFormatRequest(frameRate: request.frameRate, pixelFormat: request.pixelFormat)
        state.sink?.onVideoFormatRequest(rest)
    }

    /// Opens the camera, sets it up, and begins to deliver frames.
    ///
    /// Returns once the camera streams. Starting twice does nothing; starting while a stop is under way waits for it.
    ///
    /// - Throws: `CameraError`.
    public func startCapture() async throws {
        while true {
            let plan = CaptureRun.Plan(
                path: device.path,
                system: system,
                patience: patience,
                makeConverter: makeConverter
            )
            switch state.claim(try CaptureRun(plan)) {
            case .launch(let run):
                run.launch(state)
                return try await run.waitForStart()
            case .share(let run):
                return try await run.waitForStart()
            case .outlast(let run):
                await run.waitForEnd()
                state.forget(run)
            }
        }
    }

    /// Stops delivering and closes the camera; no frame is delivered after it returns.
    ///
    /// Stopping twice does nothing.
    public func stopCapture() async {
        guard let run = state.run else { return }
        run.requestStop()
        await run.waitForEnd()
        state.forget(run)
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
