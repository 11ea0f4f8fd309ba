import ArgumentParser
import RoomKit

/// `room-client devices`: lists the cameras.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the cameras of this machine and their formats.",
        discussion: """
            Examples:
              room-client devices
              room-client devices --formats

            \(ExitStatus.pointer)
            """
    )

    @Flag(help: "Also list formats, by increasing size.")
    var formats = false

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            let devices = CameraSource.devices()
            if devices.isEmpty { try reportAbsence(to: reporter) }
            for device in devices {
                let formats = self.formats ? try CameraSource.captureFormats(captureDevice: device) : nil
                let event = DeviceEvent(device, formats: formats)
                reporter.report(event, event.words)
            }
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
