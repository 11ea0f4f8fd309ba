import CXCB
public import MediaCore

/// A monitor of a display.
public struct ScreenMonitor: Hashable, Sendable {
    /// The number, from 0 in the server's order, which `ScreenTarget.monitor` takes.
    public let index: Int
    /// The name, as in `HDMI-1`.
    public let name: String
    /// Whether it is the primary monitor.
    public let isPrimary: Bool
    /// The column of the screen at its left side.
    public let column: Int
    /// The row of the screen at its upper side.
    public let row: Int
    /// The size in pixels.
    public let dimensions: Dimensions

    /// A monitor with the given properties.
    package init(index: Int, name: String, isPrimary: Bool, column: Int, row: Int, dimensions: Dimensions) {
        self.index = index
        self.name = name
        self.isPrimary = isPrimary
        self.column = column
        self.row = row
        self.dimensions = dimensions
    }
}

/// A window of a display.
public struct ScreenWindow: Hashable, Sendable {
    /// The number of the window on its display.
    public let identifier: UInt32
    /// The title; empty if it has none.
    public let title: String
    /// The size in pixels, without a frame.
    public let dimensions: Dimensions

    /// A window with the given properties.
    package init(identifier: UInt32, title: String, dimensions: Dimensions) {
        self.identifier = identifier
        self.title = title
        self.dimensions = dimensions
    }

    /// The number as X11 programs write it, as in `0x1400003`.
    public var name: String { "0x" + String(identifier, radix: 16) }
}

/// A rectangle of a screen, in pixels from the screen's upper left corner.
public struct ScreenRegion: Hashable, Sendable, CustomStringConvertible {
    /// The first column.
    public var column: Int
    /// The first row.
    public var row: Int
    /// The size; odd sides are rounded down to even ones in the picture.
    public var dimensions: Dimensions

    /// Creates a region of the given place and size.
    public init(column: Int, row: Int, dimensions: Dimensions) {
        self.column = column
        self.row = row
        self.dimensions = dimensions
    }

    /// The region as `640x480+100+50`.
    public var description: String { "\(dimensions)+\(column)+\(row)" }

    /// Whether all of it lies within a screen of `size`, and it is large enough for a picture.
    func fits(_ size: Dimensions) -> Bool {
        column >= 0 && row >= 0 && dimensions.width > 1 && dimensions.height > 1
            && column <= size.width - dimensions.width && row <= size.height - dimensions.height
    }
}

/// What a `ScreenSource` shows.
public enum ScreenTarget: Hashable, Sendable {
    /// The whole screen: all monitors of the display.
    case screen
    /// One monitor, by name (`HDMI-1`) or by number (`0`).
    case monitor(String)
    /// A rectangle of the screen, which must lie within it.
    ///
    /// If the screen becomes too small for it, the source fails with `regionOutside`.
    case region(ScreenRegion)
    /// One window, by number (`0x1400003`), by title, or by a part of a title that fits only one window.
    ///
    /// Other windows that cover the window are not shown. What they cover when the source starts is black until the
    /// window's program paints it. So is what the window gains when it grows or is shown again. The X server asks the
    /// program to paint both; what the program never paints stays black.
    case window(String)
}

/// Finds the monitors and windows of a display; confine to one thread.
struct ScreenDirectory {
    let connection: XConnection

    /// The monitors whose picture can be captured, in the server's order; none of Xwayland.
    func capturableMonitors() throws(XFailure) -> [ScreenMonitor] { try isXwayland() ? [] : monitors() }

    /// The monitors, in the server's order.
    func monitors() throws(XFailure) -> [ScreenMonitor] {
        guard connection.extensions.hasMonitors else {
            let missing = MissingExtension(name: "RANDR 1.5").description
            throw .explained(ScreenError(.serverFailed, target: "display \(connection.display)", missing))
        }
        let reply = try connection.reply(
            unsafe xcb_randr_get_monitors(connection.handle, connection.root, 1).sequence,
            as: xcb_randr_get_monitors_reply_t.self
        )
        var monitors: [ScreenMonitor] = []
        var iterator = unsafe xcb_randr_get_monitors_monitors_iterator(reply.pointer)
        while unsafe iterator.rem > 0 {
            let info = unsafe iterator.data.pointee
            monitors.append(
                ScreenMonitor(
                    index: monitors.count,
                    name: try connection.name(of: info.name),
                    isPrimary: info.primary != 0,
                    column: Int(info.x),
                    row: Int(info.y),
                    dimensions: Dimensions(width: Int(info.width), height: Int(info.height))
                )
            )
            unsafe xcb_randr_monitor_info_next(&iterator)
        }
        return monitors
    }

    /// The monitor that `text` names.
    ///
    /// - Throws: `noSuchMonitor`, as `explained`.
    func monitor(_ text: String, for target: String) throws(XFailure) -> ScreenMonitor {
        let monitors = try monitors()
        if let named = monitors.first(where: { $0.name == text }) ?? monitors.first(where: { "\($0.index)" == text }) {
            return named
        }
        let names = monitors.map { "\($0.index) (\($0.name))" }.joined(separator: ", ")
        let problem = "there is no such monitor; the display has \(names.isEmpty ? "none" : names)"
        throw .explained(ScreenError(.noSuchMonitor, target: target, problem))
    }

    /// The windows that a user would name: those that the window manager lists, or else all that are shown.
    func windows() throws(XFailure) -> [ScreenWindow] { try windows(areShown: true) }

    private func windows(areShown: Bool) throws(XFailure) -> [ScreenWindow] {
        let list = try connection.property(connection.atom("_NET_CLIENT_LIST"), of: connection.root)
        var identifiers = stride(from: 0, to: list.count & ~3, by: 4).map { offset in
            // Properties of 32 bits come in the byte order of this machine, which is little-endian.
            list[offset..<offset + 4].reversed().reduce(xcb_window_t(0)) { $0 << 8 | xcb_window_t($1) }
        }
        if identifiers.isEmpty {
            let marker = try connection.atom("WM_STATE")
            for window in try connection.tree(of: connection.root).children where try isShown(window) == areShown {
                identifiers += try programWindows(in: window, marker: marker)
            }
        }
        let names = (try connection.atom("_NET_WM_NAME"), try connection.atom("WM_NAME"))
        var windows: [ScreenWindow] = []
        for identifier in identifiers {
            // A window that was closed meanwhile is left out.
            if let window = try describe(identifier, names, isShown: areShown) { windows.append(window) }
        }
        return windows
    }

    /// Whether a window has a picture on the screen; `nil` if it never has, or was closed meanwhile.
    private func isShown(_ window: xcb_window_t) throws(XFailure) -> Bool? {
        do throws(XFailure) {
            let attributes = try connection.attributes(of: window)
            guard attributes._class == 1 else { return nil }
            return UInt32(attributes.map_state) == XCB_MAP_STATE_VIEWABLE.rawValue
        } catch .refused {
            return nil
        }
    }

    /// The programs' windows inside a window manager's frame; `frame` itself if it is no such frame.
    ///
    /// Window managers mark them by `WM_STATE` (ICCCM, 4.1.3.1). Without one, every window is searched in vain, so there
    /// is a bound to it; frames are some levels of few windows.
    private func programWindows(in frame: xcb_window_t, marker: xcb_atom_t) throws(XFailure) -> [xcb_window_t] {
        var level = [frame]
        for _ in 0..<Self.deepestFrame {
            var (found, next): ([xcb_window_t], [xcb_window_t]) = ([], [])
            for window in level {
                do throws(XFailure) {
                    let isMarked = try !connection.property(marker, of: window).isEmpty
                    if isMarked { found.append(window) } else { next += try connection.tree(of: window).children }
                } catch .refused {
                    // It was closed meanwhile.
                }
            }
            guard found.isEmpty else { return found }
            guard next.count <= Self.mostFrameParts else { break }
            level = next
        }
        return [frame]
    }

    private static let (deepestFrame, mostFrameParts) = (4, 16)

    /// The text of a title: UTF-8, or else Latin-1, as old programs have it (ICCCM, `STRING`).
    private static func text(_ bytes: some Sequence<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private func describe(
        _ window: xcb_window_t,
        _ names: (modern: xcb_atom_t, plain: xcb_atom_t),
        isShown: Bool
    ) throws(XFailure) -> ScreenWindow? {
        do throws(XFailure) {
            guard try self.isShown(window) == isShown else { return nil }
            var title = try connection.property(names.modern, of: window)
            if title.isEmpty { title = try connection.property(names.plain, of: window) }
            let geometry = try connection.geometry(of: window)
            return ScreenWindow(
                identifier: window,
                title: Self.text(title.prefix { $0 != 0 }),
                dimensions: Dimensions(width: Int(geometry.width), height: Int(geometry.height))
            )
        } catch .refused {
            return nil
        }
    }

    /// The window that `text` names by its number, its title or a part of that.
    ///
    /// Where a window has that number, no title counts: any program can choose one.
    ///
    /// - Throws: `noSuchWindow`, `ambiguousWindow` or `windowHidden`, as `explained`.
    func window(_ text: String, for target: String) throws(XFailure) -> xcb_window_t {
        let isHexadecimal = text.hasPrefix("0x")
        let number = xcb_window_t(isHexadecimal ? String(text.dropFirst(2)) : text, radix: isHexadecimal ? 16 : 10)
        if let number, try isWindow(number) { return number }
        let windows = try windows()
        let found = Self.titled(text, in: windows)
        if found.count == 1 { return found[0].identifier }
        let list = (found.isEmpty ? windows : found).map { "\($0.name) \"\($0.title)\"" }.joined(separator: ", ")
        if !found.isEmpty {
            let problem = "several windows have it in their titles: \(list); give the number of one"
            throw .explained(ScreenError(.ambiguousWindow, target: target, problem))
        }
        guard Self.titled(text, in: try self.windows(areShown: false)).isEmpty else {
            throw .explained(.hidden(target, hasPicture: false))
        }
        if number != nil { throw .explained(.noSuchWindow(target)) }
        let others = windows.isEmpty ? "the display has no windows" : "there are \(list)"
        let problem = "no window has it in its title; \(others)"
        throw .explained(ScreenError(.noSuchWindow, target: target, problem))
    }

    /// Whether there is such a window of a program.
    private func isWindow(_ number: xcb_window_t) throws(XFailure) -> Bool {
        do throws(XFailure) {
            _ = try connection.attributes(of: number)
            return number != connection.root
        } catch .refused {
            return false
        }
    }

    /// The windows whose title is `text`, or else those that have it in their title, in whatever case.
    private static func titled(_ text: String, in windows: [ScreenWindow]) -> [ScreenWindow] {
        // An empty text is part of each title.
        guard !text.isEmpty else { return [] }
        let exact = windows.filter { $0.title == text }
        return exact.isEmpty ? windows.filter { $0.title.lowercased().contains(text.lowercased()) } : exact
    }

    /// The window directly on the screen that `window` is in.
    func topLevel(of window: xcb_window_t) throws(XFailure) -> xcb_window_t {
        var window = window
        while true {
            let parent = try connection.tree(of: window).parent
            guard parent != connection.root, parent != 0 else { return window }
            window = parent
        }
    }

    /// Whether the display is Xwayland's, on which only X11 programs' windows have pictures.
    func isXwayland() throws(XFailure) -> Bool {
        let name = "XWAYLAND"
        let answer = try connection.reply(
            unsafe xcb_query_extension(connection.handle, UInt16(name.utf8.count), name).sequence,
            as: xcb_query_extension_reply_t.self
        )
        // Older versions of Xwayland have no such extension, but give their outputs such names.
        if answer.value.present != 0 { return true }
        return try monitors().contains { $0.name.hasPrefix(name) }
    }
}
