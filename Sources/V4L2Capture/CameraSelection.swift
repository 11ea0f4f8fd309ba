import MediaCore
import Threading

/// Which camera a source captures from, shared by its callers and its capture thread.
final class CameraSelection: Sendable {
    private struct State: Sendable {
        var device: CaptureDevice
    }

    private let state: Monitor<State>

    init(_ device: CaptureDevice) {
        state = Monitor(State(device: device))
    }

    /// The camera, with the path at which it was last opened.
    var device: CaptureDevice {
        get { state.withLock { $0.device } }
        set { state.withLock { $0.device = newValue } }
    }
}
