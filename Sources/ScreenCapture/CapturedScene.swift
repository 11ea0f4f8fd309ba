import CXCB
import MediaCore

/// A pixel's position in a window, a pixmap or the screen.
struct PixelPlace: Hashable {
    var column: Int
    var row: Int
}

/// Where the pixels of a picture lie at present.
struct SceneLayout {
    /// The window or pixmap to fetch from.
    var drawable: xcb_drawable_t
    /// The size of the picture; both sides are even, so that nothing has to be scaled to be encoded.
    var dimensions: Dimensions
    /// The picture's upper left pixel in the drawable.
    var inDrawable: PixelPlace
    /// The picture's upper left pixel in the window whose damage is followed.
    var inWindow: PixelPlace
    /// The picture's upper left pixel on the screen.
    var onScreen: PixelPlace
    /// Whether the server has begun the picture anew since it was last located.
    var isNew = false
    /// Whether nothing in the picture waits to be painted by the window's program.
    var isPainted = true

    /// Whether the same part of the same window is shown in the same size.
    func looks(like other: SceneLayout) -> Bool {
        dimensions == other.dimensions && inDrawable == other.inDrawable && inWindow == other.inWindow
    }
}

/// The screen, a part of it, or the window that is captured; confine to one thread.
final class CapturedScene {
    private enum Kind {
        case screen
        case monitor(name: String)
        case region(ScreenRegion)
        case window
    }

    /// The window whose drawing and changes are followed: the root window or the captured one.
    let window: xcb_window_t
    /// The top-level window that the pointer must be in to be drawn; `nil` for a screen.
    private(set) var topLevel: xcb_window_t?
    private let name: String
    private let kind: Kind
    private let connection: XConnection
    private let directory: ScreenDirectory
    /// What the captured window's picture shows; `nil` for a screen.
    private let picture: WindowPicture?
    /// The present picture of the captured window, which keeps its size until it is named again.
    private var pixmap: xcb_pixmap_t?
    /// Where the window's pixels lay when its picture was last named.
    private var named: SceneLayout?
    /// Events that were taken while the window was located.
    private var earlier: XEvents = []

    /// Finds the target, which is called `name` in messages, and makes the server report its changes.
    init(_ target: ScreenTarget, _ name: String, _ connection: XConnection) throws(XFailure) {
        self.name = name
        self.connection = connection
        directory = ScreenDirectory(connection: connection)
        switch target {
        case .screen: (kind, window) = (.screen, connection.root)
        case .monitor(let text):
            kind = .monitor(name: try directory.monitor(text, for: name).name)
            window = connection.root
        case .region(let region): (kind, window) = (.region(region), connection.root)
        case .window(let text): (kind, window) = (.window, try directory.window(text, for: name))
        }
        if case .window = kind {
            picture = try Self.followWindow(window, name, connection)
        } else {
            picture = nil
            try Self.followScreen(name, connection)
        }
    }

    private static func followScreen(_ name: String, _ connection: XConnection) throws(XFailure) {
        guard try !ScreenDirectory(connection: connection).isXwayland() else {
            throw .explained(.wayland(target: name))
        }
        let root = try connection.geometry(of: connection.root)
        try check(depth: root.depth, visual: connection.rootVisual, name, connection)
        var mask = UInt32(XCB_EVENT_MASK_STRUCTURE_NOTIFY.rawValue)
        unsafe xcb_change_window_attributes(connection.handle, connection.root, XCB_CW_EVENT_MASK.rawValue, &mask)
        let changes =
            XCB_RANDR_NOTIFY_MASK_SCREEN_CHANGE.rawValue | XCB_RANDR_NOTIFY_MASK_CRTC_CHANGE.rawValue
            | XCB_RANDR_NOTIFY_MASK_OUTPUT_CHANGE.rawValue
        unsafe xcb_randr_select_input(connection.handle, connection.root, UInt16(changes))
    }

    private static func followWindow(
        _ window: xcb_window_t,
        _ name: String,
        _ connection: XConnection
    ) throws(XFailure) -> WindowPicture {
        guard connection.extensions.hasComposite else {
            let missing = MissingExtension(name: "Composite").description
            throw .explained(ScreenError(.serverFailed, target: name, missing))
        }
        do throws(XFailure) {
            let geometry = try connection.geometry(of: window)
            let visual = try connection.attributes(of: window).visual
            try check(depth: geometry.depth, visual: visual, name, connection)
            return try WindowPicture(connection, window: window)
        } catch .refused {
            throw .explained(.noSuchWindow(name))
        }
    }

    private static func check(
        depth: UInt8,
        visual: xcb_visualid_t,
        _ name: String,
        _ connection: XConnection
    ) throws(XFailure) {
        guard connection.isReadable(depth: depth, visual: visual) else {
            let problem = "its pixels are not 32 bits of red, green and blue; run the display with a depth of 24"
            throw .explained(ScreenError(.unsupportedFormat, target: name, problem))
        }
    }

    /// Takes all events that have arrived.
    func takeEvents() throws(XFailure) -> XEvents {
        defer { earlier = [] }
        let picture = picture
        return try unsafe connection.takeEvents(of: window) { event in unsafe picture?.note(event) ?? false }.union(
            earlier
        )
    }

    /// Asks where the pixels lie at the start.
    ///
    /// - Returns: The place.
    /// - Throws: As `locate`, and `windowHidden`, as `explained`.
    func locateFirst() throws(XFailure) -> SceneLayout {
        guard let layout = try locate() else { throw .explained(.hidden(name, hasPicture: false)) }
        return layout
    }

    /// Asks where the pixels lie now.
    ///
    /// - Returns: `nil` if the window has no picture, because it is minimized or too small.
    /// - Throws: `windowClosed`, `monitorLost` or `regionOutside`, as `explained`.
    func locate() throws(XFailure) -> SceneLayout? {
        switch kind {
        case .screen: layout(of: PixelArea(whole: try screenSize()))
        case .monitor(let name): try locateMonitor(name)
        case .region(let region): try locate(region)
        case .window: try askingForWindow { () throws(XFailure) in try locateWindow() }
        }
    }

    private func screenSize() throws(XFailure) -> Dimensions {
        let root = try connection.geometry(of: window)
        return Dimensions(width: Int(root.width), height: Int(root.height))
    }

    private func locateMonitor(_ name: String) throws(XFailure) -> SceneLayout {
        // Monitors and screen are asked for one after the other, and may change in between.
        for _ in 0..<2 {
            guard let monitor = try directory.monitors().first(where: { $0.name == name }) else {
                let advice = "it was switched off or unplugged; choose another one, or start the source again"
                throw .explained(ScreenError(.monitorLost, target: self.name, advice))
            }
            // A monitor that was made with xrandr --setmonitor stays where it is when the screen becomes smaller.
            let area = PixelArea(column: monitor.column, row: monitor.row, dimensions: monitor.dimensions)
            let part = area.intersection(PixelArea(whole: try screenSize()))
            if let layout = part.flatMap({ layout(of: $0) }) { return layout }
        }
        let advice = "it lies beyond the screen, which is \(try screenSize()); move it or choose another one"
        throw .explained(ScreenError(.monitorLost, target: self.name, advice))
    }

    private func locate(_ region: ScreenRegion) throws(XFailure) -> SceneLayout? {
        let screen = try screenSize()
        guard region.fits(screen) else {
            let advice = "give one of 2x2 pixels or more that lies within the screen, which is \(screen)"
            throw .explained(ScreenError(.regionOutside, target: name, advice))
        }
        return layout(of: PixelArea(column: region.column, row: region.row, dimensions: region.dimensions))
    }

    /// Whether the window is hidden or shown now, against what `layout` says.
    ///
    /// No event tells when only a parent of the window is hidden, as some window managers hide the windows of other
    /// workspaces.
    func isOutdated(_ layout: SceneLayout?) throws(XFailure) -> Bool {
        guard case .window = kind else { return false }
        return try askingForWindow { () throws(XFailure) in try isShown() != (layout != nil) }
    }

    private func isShown() throws(XFailure) -> Bool {
        UInt32(try connection.attributes(of: window).map_state) == XCB_MAP_STATE_VIEWABLE.rawValue
    }

    private func askingForWindow<Answer>(_ body: () throws(XFailure) -> Answer) throws(XFailure) -> Answer {
        do throws(XFailure) {
            return try body()
        } catch .refused {
            throw closed
        }
    }

    /// The failure of a source whose window was closed.
    var closed: XFailure {
        .explained(ScreenError(.windowClosed, target: name, "the window was closed"))
    }

    private func layout(of area: PixelArea) -> SceneLayout? {
        let (width, height) = (area.dimensions.width, area.dimensions.height)
        guard width > 1, height > 1 else { return nil }
        // Pixels beyond the largest picture that can be coded are left out.
        let largest = Dimensions.largestCodable
        let place = PixelPlace(column: area.column, row: area.row)
        return SceneLayout(
            drawable: window,
            dimensions: Dimensions(width: min(width, largest.width) & ~1, height: min(height, largest.height) & ~1),
            inDrawable: place,
            inWindow: place,
            onScreen: place
        )
    }

    private func locateWindow() throws(XFailure) -> SceneLayout? {
        let isShown = try isShown()
        if isShown, let moved = try locateMovedWindow() { return moved }
        if let pixmap { unsafe xcb_free_pixmap(connection.handle, pixmap) }
        (pixmap, named) = (nil, nil)
        guard isShown else { return nil }
        let name = connection.makeIdentifier()
        guard let picture, let found = try take(picture, as: name) else { return nil }
        pixmap = name
        topLevel = try directory.topLevel(of: window)
        // The pixmap has the border around the window, and the size that the window had when it was named.
        let size = try connection.geometry(of: name)
        let (width, height) = (Int(size.width) - 2 * found.border, Int(size.height) - 2 * found.border)
        var layout = layout(of: PixelArea(whole: Dimensions(width: width, height: height)))
        layout?.drawable = name
        layout?.inDrawable = PixelPlace(column: found.border, row: found.border)
        layout?.onScreen = try connection.place(of: window)
        layout?.isNew = found.isNew
        layout?.isPainted = found.isPainted
        named = layout
        return layout
    }

    /// Where the pixels lie of a window that has kept its picture.
    ///
    /// To name the picture again, the server would be grabbed in each step of a window that is dragged.
    ///
    /// - Returns: `nil` if it has another picture, or perhaps.
    private func locateMovedWindow() throws(XFailure) -> SceneLayout? {
        guard var layout = named, let picture, !picture.isNew,
            picture.hasSize(of: try connection.geometry(of: window))
        else { return nil }
        topLevel = try directory.topLevel(of: window)
        layout.onScreen = try connection.place(of: window)
        (layout.isNew, layout.isPainted) = (false, true)
        return layout
    }

    /// Names the window's present picture, from which what is not the window's is taken out.
    ///
    /// - Returns: `nil` if the window was hidden meanwhile.
    private func take(
        _ picture: WindowPicture,
        as named: xcb_pixmap_t
    ) throws(XFailure) -> (border: Int, isNew: Bool, isPainted: Bool)? {
        do throws(XFailure) {
            // In between, the window could get another picture, or a window above it could be moved.
            return try connection.grabbingServer { () throws(XFailure) in
                try picture.redirectOnce()
                try connection.check(
                    unsafe xcb_composite_name_window_pixmap_checked(connection.handle, window, named)
                )
                earlier = try takeEvents()
                let isNew = picture.isNew
                let isPainted = try picture.settle(named)
                return (Int(try connection.geometry(of: window).border_width), isNew, isPainted)
            }
        } catch .refused(UInt8(XCB_MATCH)) {
            return nil
        }
    }
}
