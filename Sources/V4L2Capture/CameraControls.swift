/// A control's name and the value that it was set to.
struct ControlSetting: Hashable, Sendable {
    var name: String
    var value: Int64
    /// Whether it did something once, and must not be done again when the camera is opened.
    var isAction = false
}

/// Reads and sets the controls of an open camera.
struct CameraControls {
    let device: V4L2Device
    let path: String
    let holder: () -> String?

    func all() throws(CameraError) -> [CaptureControl] {
        do {
            return try device.controls()
        } catch {
            throw CameraError(error, device: path, isOpen: true, holder: holder)
        }
    }

    /// Sets the control called `name` to what `text` names.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - text: A number, a menu's entry, or another word for a value.
    ///   - isDeferring: Whether a control that another one overrules is not set, as if the driver had refused it. Some
    ///     drivers take such a value, and put their own in its place when the automatic mode is turned off.
    /// - Returns: The value that this is.
    /// - Throws: `noSuchControl`, `controlOutOfRange`, `controlRefused`, or what the driver said.
    @discardableResult
    func set(_ name: String, to text: String, isDeferring: Bool = false) throws(CameraError) -> ControlSetting {
        let (control, value) = try resolve(name, text, in: all())
        if isDeferring, control.isInactive { throw overruled(name) }
        do {
            try device.setControl(control, to: value)
        } catch {
            guard control.isInactive else { throw CameraError(error, device: path, isOpen: true, holder: holder) }
            throw overruled(name, status: error.status)
        }
        return ControlSetting(name: name, value: value, isAction: control.isAction)
    }

    private func overruled(_ name: String, status: Int32? = nil) -> CameraError {
        let advice = "another control overrules it; turn the automatic mode off as well, as with auto_exposure=1"
        return error(.controlRefused, name, advice, status: status)
    }

    /// Sets several controls, in any order.
    ///
    /// If a control has two values, the last one counts.
    ///
    /// Nothing is set if one of them does not exist or does not take its value. A control that is overruled is set after
    /// all others, because one of them may overrule it no longer then.
    ///
    /// - Returns: What was set, in the order of `settings`, and the error of one that could not be.
    func set(
        _ settings: [(name: String, value: String)]
    ) throws(CameraError) -> (made: [ControlSetting], failure: CameraError?) {
        let controls = try all()
        for setting in settings { _ = try resolve(setting.name, setting.value, in: controls) }
        var made: [Int: ControlSetting] = [:]
        var left = settings.indices.filter { index in
            !settings[(index + 1)...].contains { $0.name == settings[index].name }
        }
        var failure: CameraError?
        for isLastAttempt in [false, true] where !left.isEmpty && failure == nil {
            var refused: [Int] = []
            for index in left where failure == nil {
                do throws(CameraError) {
                    let (name, value) = settings[index]
                    made[index] = try set(name, to: value, isDeferring: !isLastAttempt)
                } catch {
                    refused.append(index)
                    if isLastAttempt || error.code != .controlRefused { failure = error }
                }
            }
            left = refused
        }
        return (made.sorted { $0.key < $1.key }.map(\.value), failure)
    }

    /// Finds a control and the value that `text` means for it.
    private func resolve(
        _ name: String,
        _ text: String,
        in controls: [CaptureControl]
    ) throws(CameraError) -> (CaptureControl, Int64) {
        guard let control = controls.first(where: { $0.name == name }) else {
            let names = controls.map(\.name).joined(separator: ", ")
            throw error(
                .noSuchControl,
                name,
                names.isEmpty ? "the camera has no controls" : "the camera has no such control; it has: \(names)"
            )
        }
        guard let value = control.value(named: text) else {
            throw error(.controlOutOfRange, name, "it takes \(control.choices), not \"\(text)\"")
        }
        if let objection = control.objection(to: value) { throw error(.controlOutOfRange, name, objection) }
        return (control, value)
    }

    /// Sets the controls that were set before, in the same order; gives the errors of those that cannot be set.
    ///
    /// A control that is overruled is set after all others: the control that overrules it may have been set again later.
    func set(_ settings: [ControlSetting]) -> [CameraError] {
        let refused = settings.filter { refusal(of: $0, isDeferring: true) != nil }
        return refused.compactMap { refusal(of: $0, isDeferring: false) }
    }

    private func refusal(of setting: ControlSetting, isDeferring: Bool) -> CameraError? {
        do throws(CameraError) {
            try set(setting.name, to: "\(setting.value)", isDeferring: isDeferring)
            return nil
        } catch {
            return error
        }
    }

    private func error(
        _ code: CameraError.Code,
        _ name: String,
        _ explanation: String,
        status: Int32? = nil
    ) -> CameraError {
        CameraError(code, device: path, attempt: "set \(name) of", status: status, explanation: explanation)
    }
}

extension CameraSource {
    /// The controls of a camera, such as brightness, exposure and focus, in the driver's order.
    ///
    /// Opens the camera's node briefly. Controls that hold text are left out.
    ///
    /// - Throws: `noSuchDevice`, `permissionDenied`, `busy`, `notACamera`, `deviceLost`, `driverFailed`.
    public static func controls(captureDevice: CaptureDevice) throws(CameraError) -> [CaptureControl] {
        try open(captureDevice, of: KernelCameraSystem()).all()
    }

    /// The controls of the source's camera; see `controls(captureDevice:)`.
    ///
    /// They can be read while the camera captures.
    public var controls: [CaptureControl] {
        get throws(CameraError) { try Self.open(device, of: system).all() }
    }

    /// Sets a control of the source's camera, and keeps it: it is set again whenever the camera is opened, as after it
    /// was plugged in again.
    ///
    /// A control that does something once is not kept: a button, or a movement such as `pan_relative`.
    ///
    /// It takes effect at once, while capturing too. Controls that overrule others come first: `auto_exposure` before
    /// `exposure_time_absolute`; `setControls(_:)` takes them in any order.
    ///
    /// - Parameters:
    ///   - name: As in `CaptureControl.name`.
    ///   - value: Within the control's range, or the value of one of its menu's entries.
    /// - Throws: `noSuchControl` (lists those there are), `controlOutOfRange` (states the range), `controlRefused`, and
    ///   the errors of `controls(captureDevice:)`. The control is then not kept.
    public func setControl(_ name: String, to value: Int64) throws(CameraError) {
        try setControl(name, to: "\(value)")
    }

    /// Sets a control to a number, to the entry of a menu with that name, to `true` or `false`, or to `default`.
    ///
    /// A number may be hexadecimal, such as `0x1f`.
    ///
    /// - Throws: The same errors as `setControl(_:to:)` with a number.
    public func setControl(_ name: String, to text: String) throws(CameraError) {
        let device = device
        selection.keep(try Self.open(device, of: system).set(name, to: text), of: device)
    }

    /// Sets several controls as `setControl(_:to:)` does, in whatever order they come.
    ///
    /// A control that another one of them overrules at first is set after it: `exposure_time_absolute` may come before
    /// `auto_exposure`. If a control has two values, the last one counts.
    ///
    /// - Throws: The same errors as `setControl(_:to:)`. If a control does not exist or does not take its value, none is
    ///   set. If the camera refuses one, those that were set stay, and are kept.
    public func setControls(_ settings: [(name: String, value: String)]) throws(CameraError) {
        let device = device
        let (made, failure) = try Self.open(device, of: system).set(settings)
        for setting in made { selection.keep(setting, of: device) }
        if let failure { throw failure }
    }

    /// Sets controls of a camera that need not capture, in whatever order they come, as `v4l2-ctl -c` does.
    ///
    /// The camera's node is opened briefly. The driver keeps the values until the camera is unplugged, or another
    /// program sets others.
    ///
    /// - Returns: The controls that were set, in the same order, with the values that the driver made of them.
    /// - Throws: The same errors as `setControls(_:)` of a source.
    @discardableResult
    public static func setControls(
        _ settings: [(name: String, value: String)],
        captureDevice: CaptureDevice
    ) throws(CameraError) -> [CaptureControl] {
        try setControls(settings, captureDevice: captureDevice, system: KernelCameraSystem())
    }

    static func setControls(
        _ settings: [(name: String, value: String)],
        captureDevice: CaptureDevice,
        system: any CameraSystem
    ) throws(CameraError) -> [CaptureControl] {
        let controls = try open(captureDevice, of: system)
        let (made, failure) = try controls.set(settings)
        if let failure { throw failure }
        let present = try controls.all()
        return made.compactMap { setting in present.first { $0.name == setting.name } }
    }

    private static func open(_ device: CaptureDevice, of system: any CameraSystem) throws(CameraError) -> CameraControls
    {
        let (opened, path) = try CameraDirectory(system: system).open(device)
        return CameraControls(device: opened, path: path) { system.holder(of: path) }
    }
}
