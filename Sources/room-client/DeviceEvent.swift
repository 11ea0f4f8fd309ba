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

    var event = "device"
    /// The node's number, which `--device` takes.
    var index: Int?
    var path: String
    var name: String
    var busInfo: String
    var driver: String
    var links: [String]
    var formats: [Format]?

    init(_ device: CaptureDevice, formats: [CaptureFormat]?) {
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
        return lines.joined(separator: "\n")
    }
}
