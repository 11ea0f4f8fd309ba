import ArgumentParser
import RoomKit

/// `room-client devices`: lists the cameras, or the monitors and windows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the cameras of this machine and their formats, or its monitors and windows.",
        discussion: """
            Examples:
              room-client devices
              room-client devices --formats
              room-client devices --screens

            \(ExitStatus.pointer)
            """
    )

    @Flag(help: "Also list formats, by increasing size.")
    var formats = false

    @Flag(help: "List the monitors and windows of an X display instead of cameras.")
    var screens = false

    @Option(help: ArgumentHelp("The X display of --screens, such as :0; default $DISPLAY.", valueName: "display"))
    var display: String?

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    func validate() throws {
        if screens, formats {
            throw ValidationError("--formats is for cameras; leave it out with --screens.")
        }
        if display != nil, !screens {
            throw ValidationError("--display is for screens; leave it out, or add --screens.")
        }
    }

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            if screens { return try listScreens(to: reporter) }
            let devices = CameraSource.devices()
            if devices.isEmpty { try reportAbsence(to: reporter) }
            for device in devices {
                let formats = self.formats ? try CameraSource.captureFormats(captureDevice: device) : nil
                let event = DeviceEvent(device, formats: formats)
                reporter.report(event, event.words)
            }
        }
    }

    private func listScreens(to reporter: Reporter) throws {
        for monitor in try ScreenSource.monitors(display: display) {
            let event = MonitorEvent(monitor)
            reporter.report(event, event.words)
        }
        for window in try ScreenSource.windows(display: display) {
            let event = WindowEvent(window)
            reporter.report(event, event.words)
        }
    }

    /// Says why there is no camera.
    ///
    /// - Throws: `CameraError` if there are cameras but this user may not open them.
    private func reportAbsence(to reporter: Reporter) throws {
        do throws(CameraError) {
            _ = try CameraSource.defaultDevice()
        } catch {
            guard error.code == .noSuchDevice else { throw error }
            reporter.say("No cameras: \(error.explanation).")
        }
    }
}
