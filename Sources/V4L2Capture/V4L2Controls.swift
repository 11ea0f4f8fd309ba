import CV4L2
import Glibc

// MARK: - Controls of a device

extension V4L2Device {
    /// The most controls and menu entries that are read; no known camera has more than 100.
    private static let mostControls = 512

    /// The controls that begin a movement; uvcvideo gives them no flag of an action.
    private static let movements: Set<UInt32> = [
        UInt32(V4L2_CID_PAN_RELATIVE), UInt32(V4L2_CID_TILT_RELATIVE), UInt32(V4L2_CID_FOCUS_RELATIVE),
        UInt32(V4L2_CID_ZOOM_RELATIVE), UInt32(V4L2_CID_ZOOM_CONTINUOUS), UInt32(V4L2_CID_IRIS_RELATIVE),
        UInt32(V4L2_CID_PAN_SPEED), UInt32(V4L2_CID_TILT_SPEED),
    ]

    /// All controls that hold a number or trigger something, in the driver's order.
    func controls() throws(SystemCallFailure) -> [CaptureControl] {
        var controls: [CaptureControl] = []
        var id: UInt32 = 0
        for _ in 0..<Self.mostControls {
            var answer = v4l2_query_ext_ctrl()
            answer.id = id | UInt32(V4L2_CTRL_FLAG_NEXT_CTRL)
            do {
                try call(cv4l2_QUERY_EXT_CTRL, &answer, to: "list the controls of")
            } catch {
                // `EINVAL` is the list's end; a device without controls does not have the call.
                guard [EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP].contains(error.status) else { throw error }
                break
            }
            // A driver that lists a control twice would never come to the end.
            guard answer.id > id else { break }
            id = answer.id
            if let control = describe(answer) { controls.append(control) }
        }
        return controls
    }

    private func describe(_ answer: v4l2_query_ext_ctrl) -> CaptureControl? {
        var answer = answer
        let isDisabled = answer.flags & UInt32(V4L2_CTRL_FLAG_DISABLED) != 0
        guard let kind = CaptureControl.Kind(type: answer.type), !isDisabled, answer.minimum <= answer.maximum else {
            return nil
        }
        let label = unsafe withUnsafeBytes(of: &answer.name) { unsafe driverText($0) }
        var control = CaptureControl(identifier: answer.id, label: label, kind: kind)
        control.range = answer.minimum...answer.maximum
        control.step = max(1, Int64(clamping: answer.step))
        control.defaultValue = answer.default_value
        control.isReadOnly = answer.flags & UInt32(V4L2_CTRL_FLAG_READ_ONLY) != 0
        control.isInactive = answer.flags & UInt32(V4L2_CTRL_FLAG_INACTIVE | V4L2_CTRL_FLAG_GRABBED) != 0
        // A volatile control has the flag for another reason: what is set is not kept by the driver's framework.
        let executes = UInt32(V4L2_CTRL_FLAG_EXECUTE_ON_WRITE)
        let isExecuted = answer.flags & (executes | UInt32(V4L2_CTRL_FLAG_VOLATILE)) == executes
        let isWriteOnly = answer.flags & UInt32(V4L2_CTRL_FLAG_WRITE_ONLY) != 0
        control.isAction = kind == .button || isWriteOnly || isExecuted || Self.movements.contains(answer.id)
        if kind == .menu || kind == .integerMenu { control.menu = menu(of: control) }
        if kind != .button, !isWriteOnly { control.value = value(of: control) }
        return control
    }

    /// The value of a control; `nil` if the driver does not tell it.
    private func value(of control: CaptureControl) -> Int64? {
        var exchange = v4l2_control()
        exchange.id = control.identifier
        do {
            try call(cv4l2_G_CTRL, &exchange, to: "read a control of")
        } catch {
            return nil
        }
        return control.kind == .bitmask ? Int64(UInt32(bitPattern: exchange.value)) : Int64(exchange.value)
    }

    private func menu(of control: CaptureControl) -> [CaptureControl.MenuEntry] {
        var entries: [CaptureControl.MenuEntry] = []
        let first = max(0, control.range.lowerBound)
        for index in first...max(first, min(control.range.upperBound, first + Int64(Self.mostControls))) {
            // A packed struct: control, index, then 32 bytes of name, or a number in 8 of them, and 4 reserved bytes.
            var exchange = InlineArray<11, UInt32>(repeating: 0)
            exchange[0] = control.identifier
            exchange[1] = UInt32(clamping: index)
            do {
                try call(cv4l2_QUERYMENU, &exchange, to: "list a menu of")
            } catch {
                continue
            }
            let name = unsafe withUnsafeBytes(of: &exchange) { bytes in
                unsafe control.kind == .integerMenu
                    ? "\(bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))"
                    : driverText(UnsafeRawBufferPointer(rebasing: bytes[8..<40]))
            }
            entries.append(CaptureControl.MenuEntry(value: index, name: name))
        }
        return entries
    }

    /// Sets a control; the driver changes a value to the nearest that it can do.
    func setControl(_ control: CaptureControl, to value: Int64) throws(SystemCallFailure) {
        var exchange = v4l2_control()
        exchange.id = control.identifier
        exchange.value = Int32(truncatingIfNeeded: value)
        try call(cv4l2_S_CTRL, &exchange, to: "set \(control.name) of")
    }
}

extension CaptureControl.Kind {
    /// The kind of a V4L2 type; `nil` for a heading, text, and what has no single value of 32 bits.
    fileprivate init?(type: UInt32) {
        switch type {
        case V4L2_CTRL_TYPE_INTEGER.rawValue: self = .integer
        case V4L2_CTRL_TYPE_BOOLEAN.rawValue: self = .boolean
        case V4L2_CTRL_TYPE_MENU.rawValue: self = .menu
        case V4L2_CTRL_TYPE_INTEGER_MENU.rawValue: self = .integerMenu
        case V4L2_CTRL_TYPE_BUTTON.rawValue: self = .button
        case V4L2_CTRL_TYPE_BITMASK.rawValue: self = .bitmask
        default: return nil
        }
    }
}
