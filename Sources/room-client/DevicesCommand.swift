import ArgumentParser
import ClientCommandLine
import RoomKit

/// `room-client devices`: lists the cameras, or the monitors and windows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the cameras of this machine, their formats and controls, or its monitors and windows.",
        discussion: """
            Examples:
              room-client devices
              room-client devices --formats
              room-client devices --controls --device 0
              room-client devices --watch --json
              room-client devices --screens

            \(ExitStatus.pointer)
            """
    )

    @Flag(help: "Also list formats, by increasing size.")
    var formats = false

    @Flag(help: "Also list the controls that `connect --control` sets, with range, default and value.")
    var controls = false

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
        let isAboutCameras = formats || controls || device != nil
        guard !watch || !isAboutCameras else {
            throw ValidationError("--watch lists all cameras; leave --formats, --controls and --device out.")
        }
        guard !screens || !(isAboutCameras || watch) else {
            throw ValidationError("--screens lists no cameras; leave --formats, --controls, --device and --watch out.")
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
            let devices = try device.map { [try CameraSource.captureDevice(matching: $0)] } ?? CameraSource.devices()
            let absence = try devices.isEmpty ? absence() : nil
            let summary = DevicesSummary(cameras: devices.count, absence)
            if let error = summary.error { reporter.say(error) }
            for device in devices {
                let formats = self.formats ? try CameraSource.captureFormats(captureDevice: device) : nil
                let controls = self.controls ? try CameraSource.controls(captureDevice: device) : nil
                let event = DeviceEvent(device, formats: formats, controls: controls)
                reporter.report(event, event.words)
            }
            reporter.reportSummary(summary, nil)
        }
    }

    /// Reports cameras that come and go, until a signal ends the program.
    private func watch(_ reporter: Reporter) async {
        let stop = StopReasons()
        await stop.heedSignals(reportingTo: reporter)
        if CameraSource.devices().isEmpty { reporter.say("No cameras yet. Ctrl-C ends the watch.") }
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
    /// - Throws: `CameraError` if there are cameras but this user may not open them.
    private func absence() throws -> CameraError? {
        do throws(CameraError) {
            _ = try CameraSource.defaultDevice()
            return nil
        } catch {
            guard error.code == .noSuchDevice else { throw error }
            return error
        }
    }
}
