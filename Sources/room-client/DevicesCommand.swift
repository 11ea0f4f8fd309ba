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

            \(ExitStatus.table)
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

    /// Throws if there are cameras but this user may not open them, so that the command does not say "No cameras".
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
