import Capture
import MediaCore
import Threading

/// Which camera a source captures from and how it is set, shared by its callers and its capture thread.
final class CameraSelection: Sendable {
    /// A change that a caller asks for.
    struct Change: Sendable {
        var device: CaptureDevice
        /// The format to ask for; `nil` for that of before.
        var request: VideoFormatRequest?
        /// Takes the time without a frame, or why nothing changed; called once, on any thread.
        var answer: @Sendable (Result<Duration, any Error>) -> Void
    }

    private struct State: Sendable {
        var device: CaptureDevice
        /// What was set, in this order.
        var settings: [ControlSetting] = []
        var changes: [Change] = []
        /// Wakes the capture thread; `nil` while there is none.
        var signal: StopSignal?

        mutating func adopt(_ device: CaptureDevice, settings: [ControlSetting]) {
            if !device.isSameCamera(as: self.device) { self.settings = settings }
            self.device = device
        }
    }

    private let state: Monitor<State>

    init(_ device: CaptureDevice, settings: [ControlSetting] = []) {
        state = Monitor(State(device: device, settings: settings))
    }

    /// The camera, with the path at which it was last opened.
    var device: CaptureDevice {
        get { state.withLock { $0.device } }
        set { state.withLock { $0.device = newValue } }
    }

    /// The controls to set whenever the camera is opened, in order.
    var settings: [ControlSetting] { state.withLock { $0.settings } }

    /// Takes over where `camera` was found, unless another camera was selected meanwhile.
    ///
    /// - Returns: The controls to set, in order; none of another camera.
    func found(_ camera: CaptureDevice, as found: CaptureDevice) -> [ControlSetting] {
        state.withLock { state in
            guard state.device == camera else { return [] }
            state.device = found
            return state.settings
        }
    }

    /// Keeps a setting of `device`, which replaces an earlier one of the same control; does not keep actions.
    func keep(_ setting: ControlSetting, of device: CaptureDevice) {
        guard !setting.isAction else { return }
        state.withLock { state in
            guard device.isSameCamera(as: state.device) else { return }
            state.settings.removeAll { $0.name == setting.name }
            state.settings.append(setting)
        }
    }

    // MARK: Changes

    /// Hands a change to the capture thread; `false` if there is none.
    func ask(for change: Change) -> Bool {
        let signal = state.withLock { state -> StopSignal? in
            if state.signal != nil { state.changes.append(change) }
            return state.signal
        }
        signal?.wake()
        return signal != nil
    }

    /// The selection that `change` leads to; controls are kept for the same camera only.
    func target(of change: Change) -> CameraSelection {
        let present = device
        guard change.device.isSameCamera(as: present) else { return CameraSelection(change.device) }
        var same = change.device
        // The description may be older than the double.
        if present.sighting?.hasDouble == true { same.sighting = present.sighting }
        return CameraSelection(same, settings: settings)
    }

    /// The same camera and settings, apart from what callers change from now on.
    var copy: CameraSelection {
        let (device, settings) = state.withLock { ($0.device, $0.settings) }
        return CameraSelection(device, settings: settings)
    }

    /// Takes over the camera and the settings of `selection`; settings made of the same camera meanwhile stay.
    func adopt(_ selection: CameraSelection) {
        let (device, settings) = (selection.device, selection.settings)
        state.withLock { $0.adopt(device, settings: settings) }
    }

    /// Makes a change while there is no capture thread; `false` if there is one by now.
    func adopt(_ change: Change) -> Bool {
        state.withLock { state in
            guard state.signal == nil else { return false }
            state.adopt(change.device, settings: [])
            return true
        }
    }

    // MARK: On the capture thread

    /// Lets changes come from now on, each with a wake of `signal`.
    func begin(_ signal: StopSignal) {
        state.withLock { $0.signal = signal }
    }

    /// The oldest change that was not taken yet.
    func nextChange() -> Change? {
        state.withLock { $0.changes.isEmpty ? nil : $0.changes.removeFirst() }
    }

    /// Ends the run; changes that were not taken fail.
    func end() {
        let changes = state.withLock { state in
            state.signal = nil
            defer { state.changes = [] }
            return state.changes
        }
        for change in changes { change.answer(.failure(CancellationError())) }
    }
}
