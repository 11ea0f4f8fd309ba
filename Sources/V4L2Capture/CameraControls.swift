/// A control's name and the value that it was set to.
struct ControlSetting: Hashable, Sendable {
    var name: String
    var value: Int64
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

    /// Sets the control called `name` to what `text` names, and says to which value that is.
    @discardableResult
    func set(_ name: String, to text: String) throws(CameraError) -> ControlSetting {
        let controls = try all()
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
        do {
            try device.setControl(control, to: value)
        } catch {
            guard control.isInactive else { throw CameraError(error, device: path, isOpen: true, holder: holder) }
            throw self.error(
                .controlRefused,
                name,
                "another control overrules it; turn the automatic mode off first, as with auto_exposure=1",
                status: error.status
            )
        }
        return ControlSetting(name: name, value: value)
    }

    /// Sets the controls that were set before, in the same order; gives the errors of those that cannot be set.
    ///
    /// A refused control is tried once more after all others: the control that overrules it may have been set again
    /// later.
    func set(_ settings: [ControlSetting]) -> [CameraError] {
        let refused = settings.filter { refusal(of: $0) != nil }
        return refused.compactMap { refusal(of: $0) }
    }

    private func refusal(of setting: ControlSetting) -> CameraError? {
        do throws(CameraError) {
            try set(setting.name, to: "\(setting.value)")
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
    /// It takes effect at once, while capturing too. Controls that overrule others come first: `auto_exposure` before
    /// `exposure_time_absolute`.
    ///
    /// - Parameters:
    ///   - name: As in `CaptureControl.name`.
    ///   - value: Within the control's range, or the value of one of its menu's entries.
    /// - Throws: `noSuchControl` (lists those there are), `controlOutOfRange` (states the range), `controlRefused`, and
    ///   the errors of `controls(captureDevice:)`. The control is then not kept.
    public func setControl(_ name: String, to value: Int64) throws(CameraError) {
        try setControl(name, to: "\(value)")
    }

    /// Sets a control to a number, to the entry of a menu with that name, or to `true` or `false`.
    ///
    /// - Throws: The same errors as `setControl(_:to:)` with a number.
    public func setControl(_ name: String, to text: String) throws(CameraError) {
        let device = device
        selection.keep(try Self.open(device, of: system).set(name, to: text), of: device)
    }

    private static func open(_ device: CaptureDevice, of system: any CameraSystem) throws(CameraError) -> CameraControls
    {
        let (opened, path) = try CameraDirectory(system: system).open(device)
        return CameraControls(device: opened, path: path) { system.holder(of: path) }
    }
}
