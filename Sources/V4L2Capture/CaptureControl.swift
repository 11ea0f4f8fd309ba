/// A setting of a camera, such as its exposure, its focus or the power-line frequency.
public struct CaptureControl: Hashable, Sendable {
    /// What values a control takes.
    public enum Kind: String, Hashable, Sendable {
        /// A number within a range.
        case integer
        /// 0 or 1.
        case boolean
        /// The number of one of the entries in `menu`.
        case menu
        /// As `menu`, with entries that are numbers themselves.
        case integerMenu
        /// No value: setting the control, to whatever value, triggers something.
        case button
        /// Bits, of which any may be set that is set in the largest value.
        case bitmask
    }

    /// An entry of a menu.
    public struct MenuEntry: Hashable, Sendable {
        /// The value that selects the entry.
        public var value: Int64
        /// The driver's name for the entry.
        public var name: String
    }

    /// V4L2's number for the control.
    let identifier: UInt32
    /// The name that `setControl` takes, spelled as by `v4l2-ctl`: as in `exposure_time_absolute`.
    public var name: String
    /// The driver's name for people.
    public var label: String
    /// What values the control takes.
    public var kind: Kind
    /// The smallest and the largest value.
    public var range: ClosedRange<Int64> = 0...0
    /// The step between values; the driver rounds others.
    public var step: Int64 = 1
    /// The value that the driver starts with.
    public var defaultValue: Int64 = 0
    /// The present value; `nil` if it cannot be read.
    public var value: Int64?
    /// The entries of a menu, by value; values between them are not allowed.
    public var menu: [MenuEntry] = []
    /// Whether the control cannot be set.
    public var isReadOnly = false
    /// Whether setting the control does something once, such as a movement, and is no state that lasts.
    var isAction = false
    /// Whether the control has no effect at present, because another control (as an automatic mode) overrules it.
    public var isInactive = false

    init(identifier: UInt32, label: String, kind: Kind) {
        self.identifier = identifier
        self.label = label
        self.kind = kind
        name = Self.name(for: label)
    }

    /// The name that `v4l2-ctl` makes of the driver's: small letters and digits, with an underscore for what is
    /// between.
    static func name(for label: String) -> String {
        var name = ""
        var isBetween = false
        for scalar in label.unicodeScalars {
            guard scalar.isASCII, scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) else {
                isBetween = true
                continue
            }
            if isBetween { name += "_" }
            isBetween = false
            name += scalar.properties.lowercaseMapping
        }
        return name
    }

    /// The value that `text` names; `nil` if it names none.
    ///
    /// It is a number, also a hexadecimal one (`0x1f`), the name of a menu's entry, `true` or `false`, or else `default`.
    func value(named text: String) -> Int64? {
        let lowercase = text.lowercased()
        if let number = Int64(text) ?? Self.hexadecimal(lowercase) { return number }
        let states: [String: Int64] = ["true": 1, "on": 1, "false": 0, "off": 0]
        if kind == .boolean, let state = states[lowercase] { return state }
        if let entry = menu.first(where: { $0.name.lowercased() == lowercase }) { return entry.value }
        return lowercase == "default" && kind != .button ? defaultValue : nil
    }

    private static func hexadecimal(_ text: String) -> Int64? {
        let isNegative = text.hasPrefix("-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        // Otherwise a second sign would be read.
        guard digits.hasPrefix("0x"), digits.dropFirst(2).allSatisfy(\.isHexDigit) else { return nil }
        return Int64((isNegative ? "-" : "") + digits.dropFirst(2), radix: 16)
    }

    /// Why the control cannot be set to `value`; `nil` if it can.
    func objection(to value: Int64) -> String? {
        if isReadOnly { return "it can only be read" }
        switch kind {
        case .button: return nil
        case .menu, .integerMenu: return menu.contains { $0.value == value } ? nil : "it takes \(choices), not \(value)"
        case .bitmask where value >= 0 && value & ~range.upperBound == 0: return nil
        case .integer, .boolean, .bitmask: return range.contains(value) ? nil : "it takes \(choices), not \(value)"
        }
    }

    /// The values that the control takes, for people.
    var choices: String {
        switch kind {
        case .button: "any value"
        case .boolean: "0 or 1"
        case .menu, .integerMenu: menu.map { "\($0.value) (\($0.name))" }.joined(separator: ", ")
        case .bitmask: "bits of \(range.upperBound)"
        case .integer: "\(range.lowerBound) to \(range.upperBound)" + (step > 1 ? " in steps of \(step)" : "")
        }
    }
}
