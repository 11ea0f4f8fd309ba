import RoomKit

/// A monitor, as `devices --screens --json` lists it.
struct MonitorEvent: Encodable {
    var event = "monitor"
    /// The number that `--monitor` takes.
    var index: Int
    var name: String
    var primary: Bool
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    init(_ monitor: ScreenMonitor) {
        index = monitor.index
        name = monitor.name
        primary = monitor.isPrimary
        (x, y) = (monitor.column, monitor.row)
        (width, height) = (monitor.dimensions.width, monitor.dimensions.height)
    }

    /// The monitor as text for people.
    var words: String { "\(index)  monitor \(name)  \(width)x\(height) at \(x),\(y)\(primary ? "  (primary)" : "")" }
}

/// A window, as `devices --screens --json` lists it.
struct WindowEvent: Encodable {
    var event = "window"
    /// The number that `--window` takes, such as `0x1400003`.
    var id: String
    var title: String
    var width: Int
    var height: Int

    init(_ window: ScreenWindow) {
        id = window.name
        title = window.title
        (width, height) = (window.dimensions.width, window.dimensions.height)
    }

    /// The window as text for people.
    var words: String { "\(id)  window \"\(title)\"  \(width)x\(height)" }
}
