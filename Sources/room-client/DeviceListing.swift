import RoomKit

/// What `devices` writes about the cameras and the refused nodes of a machine, one after the other.
struct DeviceListing {
    /// Reads the formats of a camera; `nil` if they are not listed.
    var readFormats: ((CaptureDevice) throws -> [CaptureFormat])?
    /// Reads the controls of a camera; `nil` if they are not listed.
    var readControls: ((CaptureDevice) throws -> [CaptureControl])?

    /// Reports each camera and each refused node; a camera whose details cannot be read stops no other.
    ///
    /// - Returns: The number of cameras.
    /// - Throws: The first error, if nothing could be listed although there is something.
    func report(_ survey: CameraSurvey, to reporter: Reporter) throws -> Int {
        var failures: [any Error] = []
        for device in survey.cameras {
            let event = event(of: device, failures: &failures)
            reporter.report(event, event.words)
        }
        for refusal in survey.refusals {
            let event = RefusedDeviceEvent(refusal)
            reporter.report(event, event.words)
        }
        if let failure = failure(in: survey, failures) { throw failure }
        return survey.cameras.count
    }

    /// The camera with what is listed of it; an error of reading it is added to `failures`.
    func event(of device: CaptureDevice, failures: inout [any Error]) -> DeviceEvent {
        do {
            return DeviceEvent(device, formats: try readFormats?(device), controls: try readControls?(device))
        } catch {
            failures.append(error)
            var event = DeviceEvent(device)
            event.error = "\(error)"
            event.code = codeName(of: error)
            return event
        }
    }

    /// The error with which the list ends; `nil` if something could be listed, or if there is nothing.
    func failure(in survey: CameraSurvey, _ failures: [any Error]) -> (any Error)? {
        guard failures.count == survey.cameras.count else { return nil }
        return failures.first ?? survey.refusals.first { $0.code == .permissionDenied } ?? survey.refusals.first
    }
}

/// A video node that cannot be opened; it may be a camera.
struct RefusedDeviceEvent: Encodable {
    var event = "deviceRefused"
    var path: String
    /// What is wrong and what to do.
    var error: String
    @Nullable var code: String?

    init(_ refusal: CameraError) {
        path = refusal.device
        error = "\(refusal)"
        code = refusal.codeName
        explanation = refusal.explanation
    }

    private var explanation: String
    private enum CodingKeys: CodingKey { case event, path, error, code }

    /// The node as text for people.
    var words: String { "-  \(path)  cannot be opened: \(explanation)" }
}
