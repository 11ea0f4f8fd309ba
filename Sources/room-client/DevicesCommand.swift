import ArgumentParser
import RoomKit

/// `room-client devices`: what cameras there are.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the cameras of this machine, and what they offer.",
        discussion: """
            Examples:
              room-client devices
              room-client devices --formats

            \(ExitStatus.table)
            """
    )

    @Flag(help: "Also list formats, by increasing size.")
    var formats = false

    @Flag(help: "Write one JSON object a line instead of text for people.")
    var json = false

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            let devices = CameraSource.devices()
            if devices.isEmpty {
                try complainIfForbidden()
                if !json { Terminal.say("No cameras.") }
            }
            for device in devices {
                let formats = self.formats ? try CameraSource.captureFormats(captureDevice: device) : nil
                let event = DeviceEvent(device, formats: formats)
                reporter.report(event, event.words)
            }
        }
    }

    /// Cameras that this user may not open are not "none".
    private func complainIfForbidden() throws {
        do {
            _ = try CameraSource.defaultDevice()
        } catch let error where error.code == .permissionDenied {
            throw error
        } catch {
            return
        }
    }
}
