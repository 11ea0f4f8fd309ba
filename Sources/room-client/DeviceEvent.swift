import Foundation
import RoomKit

/// A camera, as `devices --json` lists it.
struct DeviceEvent: Encodable {
    /// The frame rates that a camera offers in one pixel format and size.
    struct Format: Encodable {
        var pixelFormat: String
        var description: String
        /// `direct`, `libv4l` (converted, at a higher cost) or `unsupported`.
        var decoding: String
        var supported: Bool
        var width: Int
        var height: Int
        /// Frames per second, in increasing order.
        var frameRates: [Double]
    }

    /// A control, as `--control` sets it.
    struct Control: Encodable {
        var name: String
        var description: String
        /// `integer`, `boolean`, `menu`, `integerMenu`, `button` or `bitmask`.
        var type: String
        var minimum: Int64
        var maximum: Int64
        var step: Int64
        var `default`: Int64
        @Nullable var value: Int64?
        var readOnly: Bool
        var inactive: Bool
        var menu: [MenuEntry]
    }

    struct MenuEntry: Encodable {
        var value: Int64
        var name: String
    }

    /// `device`; with `--watch`, `deviceAdded` or `deviceRemoved`.
    var event = "device"
    /// The node's number, which `--device` takes.
    @Nullable var index: Int?
    var path: String
    var name: String
    var busInfo: String
    var driver: String
    @Nullable var serialNumber: String?
    var links: [String]
    var formats: [Format]?
    var controls: [Control]?
    /// Why formats or controls could not be read, and what to do.
    var error: String?
    var code: String?

    init(_ device: CaptureDevice, formats: [CaptureFormat]? = nil, controls: [CaptureControl]? = nil) {
        serialNumber = device.serialNumber
        self.controls = controls?.map(Self.describe)
        index = device.nodeNumber
        path = device.path
        name = device.name
        busInfo = device.busInfo
        driver = device.driver
        links = device.stableLinks
        self.formats = formats.map { $0.flatMap(Self.describe).sorted(by: Self.isSmaller) }
    }

    private static func describe(_ format: CaptureFormat) -> [Format] {
        Dictionary(grouping: format.formats, by: \.dimensions).map { dimensions, formats in
            Format(
                pixelFormat: format.pixelFormat.description,
                description: format.name,
                decoding: "\(format.decoding)",
                supported: format.decoding != .unsupported,
                width: dimensions.width,
                height: dimensions.height,
                frameRates: formats.map(\.frameRate.framesPerSecond).sorted()
            )
        }
    }

    private static func describe(_ control: CaptureControl) -> Control {
        var described = Control(
            name: control.name,
            description: control.label,
            type: control.kind.rawValue,
            minimum: control.range.lowerBound,
            maximum: control.range.upperBound,
            step: control.step,
            default: control.defaultValue,
            readOnly: control.isReadOnly,
            inactive: control.isInactive,
            menu: control.menu.map { MenuEntry(value: $0.value, name: $0.name) }
        )
        described.value = control.value
        return described
    }

    private static func isSmaller(_ lhs: Format, _ rhs: Format) -> Bool {
        (lhs.width * lhs.height, lhs.width, lhs.pixelFormat) < (rhs.width * rhs.height, rhs.width, rhs.pixelFormat)
    }

    /// The camera as text for people.
    var words: String {
        var lines = ["\(index.map(String.init) ?? "-")  \(path)  \(name)  (\(busInfo), \(driver))"]
        for link in links { lines.append("   \(link)") }
        for format in formats ?? [] {
            let rates = format.frameRates.map { String(format: "%g", $0) }.joined(separator: " ")
            let note = format.supported ? (format.decoding == "libv4l" ? "  (by libv4l)" : "") : "  (unsupported)"
            lines.append("   \(format.width)x\(format.height)  \(format.pixelFormat)  \(rates) fps\(note)")
        }
        for control in controls ?? [] { lines += words(of: control) }
        if let error { lines.append("   \(error)") }
        return lines.joined(separator: "\n")
    }

    private func words(of control: Control) -> [String] {
        var notes = control.type == "button" ? [] : ["default \(control.default)"]
        if control.readOnly { notes.append("read only") }
        if control.inactive { notes.append("overruled at present") }
        let value = control.value.map { " = \($0)" } ?? ""
        let range: String =
            switch control.type {
            case "boolean": "0 or 1"
            case "menu", "integerMenu", "button": control.type == "button" ? "button" : "menu"
            default: "\(control.minimum) to \(control.maximum)" + (control.step > 1 ? " step \(control.step)" : "")
            }
        let line = "   \(control.name)\(value)  (\(([range] + notes).joined(separator: ", ")))"
        return [line] + control.menu.map { "      \($0.value): \($0.name)" }
    }
}

/// The end of a list: how much there is.
struct DevicesSummary: Encodable {
    var event = "summary"
    /// `null` with `--screens`.
    @Nullable var cameras: Int?
    /// `null` without `--screens`.
    @Nullable var monitors: Int?
    @Nullable var windows: Int?
    /// Why there is no camera, and what to do.
    @Nullable var error: String?
    /// The kind of reason.
    @Nullable var code: String?

    init(cameras: Int, _ absence: CameraError?) {
        self.cameras = cameras
        error = absence.map { "No cameras: \($0.explanation)." }
        code = absence?.codeName
    }

    init(monitors: Int, windows: Int) {
        self.monitors = monitors
        self.windows = windows
    }
}
