import ArgumentParser
import ClientCommandLine
import RoomKit

/// `room-client devices`: lists the cameras, or the monitors and windows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the cameras of this machine, their formats and controls, or its monitors and windows.",
        discussion: """
            A video node that this user may not open is listed with what to do about it.

            Examples:
              room-client devices
              room-client devices --formats
              room-client devices --controls --device 0
              room-client devices --device 0 --control auto_exposure=1,gain=default
              room-client devices --watch --json
              room-client devices --screens

            \(ExitStatus.pointer)
            """
    )

    @Flag(help: "Also list formats, by increasing size.")
    var formats = false

    @Flag(help: "Also list the controls that `connect --control` sets, with range, default and value.")
    var controls = false

    @Option(
        name: .customLong("control"),
        help: ArgumentHelp(
            "Set controls of --device, or of the first camera, and list what its driver made of them.",
            discussion: "Nothing is published. Values are those of `connect --control`.",
            valueName: "name=value"
        ),
        transform: { try ControlArguments.read($0) }
    )
    var settings: [ControlArguments] = []

    @Option(help: "List only this camera: path, number, name or bus.", transform: { try GivenText.read($0).text })
    var device: String?

    @Flag(help: "List the cameras, then report each one that is plugged in or unplugged, until Ctrl-C.")
    var watch = false

    @Flag(help: "List the monitors and windows of an X display instead of cameras.")
    var screens = false

    @Option(
        help: ArgumentHelp("The X display of --screens, such as :0; default $DISPLAY.", valueName: "display"),
        transform: { try GivenText.read($0).text }
    )
    var display: String?

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    func validate() throws {
        let cameraOptions = [
            ("--formats", formats), ("--controls", controls), ("--device", device != nil),
            ("--control", !settings.isEmpty),
        ]
        let cameraOption = cameraOptions.first { $0.1 }?.0
        if watch, let cameraOption {
            throw ValidationError("--watch lists all cameras and nothing else of them; leave \(cameraOption) out.")
        }
        if screens, let option = cameraOption ?? (watch ? "--watch" : nil) {
            throw ValidationError("--screens lists no cameras; leave \(option) out.")
        }
        guard display == nil || screens else {
            throw ValidationError("--display is for screens; leave it out, or add --screens.")
        }
    }

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            if watch { return await watch(reporter) }
            if screens { return try listScreens(to: reporter) }
            if !settings.isEmpty { return try set(reportingTo: reporter) }
            let named = try device.map { try CameraSource.captureDevice(matching: $0) }
            let survey = named.map { CameraSurvey(cameras: [$0]) } ?? CameraSource.survey()
            let count = try listing.report(survey, to: reporter)
            let absence = survey.cameras.isEmpty ? absence() : nil
            let summary = DevicesSummary(cameras: count, absence)
            if let error = summary.error { reporter.say(error) }
            reporter.reportSummary(summary, nil)
        }
    }

    private var listing: DeviceListing {
        DeviceListing(
            readFormats: formats ? { try CameraSource.captureFormats(captureDevice: $0) } : nil,
            readControls: controls ? { try CameraSource.controls(captureDevice: $0) } : nil
        )
    }

    /// Sets the controls that were given, and lists them as they are then, or all of them with `--controls`.
    private func set(reportingTo reporter: Reporter) throws {
        let device = try device.map { try CameraSource.captureDevice(matching: $0) } ?? CameraSource.defaultDevice()
        let made = try CameraSource.setControls(settings.flatMap(\.settings), captureDevice: device)
        var listing = listing
        if !controls { listing.readControls = { _ in made } }
        let count = try listing.report(CameraSurvey(cameras: [device]), to: reporter)
        reporter.reportSummary(DevicesSummary(cameras: count, nil), nil)
    }

    /// Reports cameras that come and go, until a signal ends the program.
    private func watch(_ reporter: Reporter) async {
        let stop = StopReasons()
        await stop.heedSignals(reportingTo: reporter)
        let survey = CameraSource.survey()
        for refusal in survey.refusals {
            let event = RefusedDeviceEvent(refusal)
            reporter.report(event, event.words)
        }
        if survey.cameras.isEmpty {
            let problem = survey.refusals.isEmpty ? "No cameras yet." : "No camera can be opened yet."
            reporter.say("\(problem) Ctrl-C ends the watch.")
        }
        let reports = Task {
            for await change in CameraSource.deviceChanges() {
                switch change {
                case .added(let device): report(device, "deviceAdded", "+", to: reporter)
                case .removed(let device): report(device, "deviceRemoved", "-", to: reporter)
                }
            }
        }
        _ = await stop.wait(for: nil)
        reports.cancel()
        await reports.value
    }

    private func report(_ device: CaptureDevice, _ name: String, _ sign: String, to reporter: Reporter) {
        var event = DeviceEvent(device)
        event.event = name
        reporter.report(event, "\(sign) \(event.words)")
    }

    private func listScreens(to reporter: Reporter) throws {
        let monitors = try ScreenSource.monitors(display: display)
        if monitors.isEmpty {
            reporter.say(
                "No monitors: none is switched on, or this display is Xwayland, which shows only the windows of X11 "
                    + "programs. There, name a window by --window, or log in to an X11 session for the whole screen."
            )
        }
        for monitor in monitors {
            let event = MonitorEvent(monitor)
            reporter.report(event, event.words)
        }
        let windows = try ScreenSource.windows(display: display)
        for window in windows {
            let event = WindowEvent(window)
            reporter.report(event, event.words)
        }
        reporter.reportSummary(DevicesSummary(monitors: monitors.count, windows: windows.count), nil)
    }

    /// Finds out why there is no camera.
    ///
    /// - Returns: The reason; `nil` if there is one by now.
    private func absence() -> CameraError? {
        do throws(CameraError) {
            _ = try CameraSource.defaultDevice()
            return nil
        } catch {
            return error
        }
    }
}
