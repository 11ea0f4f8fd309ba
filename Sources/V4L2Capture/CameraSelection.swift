import MediaCore
import Threading

/// Which camera a source captures from, shared by its callers and its capture thread.
final class CameraSelection: Sendable {
    private struct State: Sendable {
        var device: CaptureDevice
        /// What was set, in this order.
        var settings: [ControlSetting] = []
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

    /// The controls to set whenever the camera is opened, in order.
    var settings: [ControlSetting] { state.withLock { $0.settings } }

    /// Keeps a setting, which replaces an earlier one of the same control.
    func keep(_ setting: ControlSetting) {
        state.withLock { state in
            state.settings.removeAll { $0.name == setting.name }
            state.settings.append(setting)
        }
    }
}
