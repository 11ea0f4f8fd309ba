import CXCB
import MediaCore

/// Keeps other windows' pixels out of the picture of a captured window; confine to one thread.
///
/// The server begins the picture (XComposite) with a copy of what is on the screen there, other windows included: when
/// the window is redirected, when it is shown again, and when it gets another size. It paints the window's background, if
/// there is one, and asks the program for the rest (Expose). `settle` makes black what has not been painted by then. It
/// does so in the picture itself, so that nothing has to be known about it afterwards: the program paints over it.
///
/// At the redirect, what is kept is what could be seen of the window. Later, the server's own events tell which parts it
/// kept (it tells of no Expose there) and which were painted (DAMAGE). What counts is the order of these events, so each
/// drawing has to be an event of its own (`RawRectangles`). They are kept only from a new picture until `settle`.
///
/// At the redirect this is exact. Between a later new picture and `settle`, which is a tick at most, some parts count as
/// painted that are not: what lies between the parts that one request has drawn, because DAMAGE reports the area around
/// them; what other windows have uncovered; and what has appeared of windows inside the window where nothing covers it,
/// because only they are told of their Expose.
final class WindowPicture {
    private let connection: XConnection
    private let window: xcb_window_t
    private let damage: xcb_damage_damage_t
    /// Where the server tries to copy the window to, only to tell what cannot be seen of it.
    private let probe: xcb_pixmap_t
    /// The request that has redirected the window; `nil` before.
    private var redirect: UInt32?
    /// Whether an event has come that is no older than the redirect; all later ones are younger too.
    private var isPastRedirect = false
    /// Where the window lies in its parent.
    private var place: (x: Int16, y: Int16) = (0, 0)
    private var size: (width: UInt16, height: UInt16, border: UInt16) = (0, 0, 0)

    /// Whether the picture has begun since the last `settle`.
    private(set) var isNew = false
    /// What was copied from the screen and is perhaps not the window's.
    private var copied: [xcb_rectangle_t] = []
    /// What was drawn since.
    private var drawn: [xcb_rectangle_t] = []
    /// What the server asked the program to paint.
    private var exposed: [xcb_rectangle_t] = []
    /// What was drawn after that.
    private var painted: [xcb_rectangle_t] = []
    /// How many reports of damage are still to come at most that tell of a move and not of a drawing.
    private var reportsOfMove = 0

    /// The picture of a window that is not redirected yet, and whose events are not selected yet.
    init(_ connection: XConnection, window: xcb_window_t) throws(XFailure) {
        self.connection = connection
        self.window = window
        damage = connection.makeIdentifier()
        probe = connection.makeIdentifier()
        var mask =
            XCB_EVENT_MASK_STRUCTURE_NOTIFY.rawValue | XCB_EVENT_MASK_VISIBILITY_CHANGE.rawValue
            | XCB_EVENT_MASK_EXPOSURE.rawValue
        unsafe xcb_change_window_attributes(connection.handle, window, XCB_CW_EVENT_MASK.rawValue, &mask)
        let level = UInt8(XCB_DAMAGE_REPORT_LEVEL_RAW_RECTANGLES.rawValue)
        try connection.check(unsafe xcb_damage_create_checked(connection.handle, damage, window, level))
    }

    /// Whether the window has the size that the events have told last.
    func hasSize(of geometry: xcb_get_geometry_reply_t) -> Bool {
        size == (geometry.width, geometry.height, geometry.border_width)
    }

    /// Gives the window a picture of its own, if it has none yet; call it while the server is grabbed.
    func redirectOnce() throws(XFailure) {
        guard redirect == nil else { return }
        let geometry = try connection.geometry(of: window)
        (size, place) = ((geometry.width, geometry.height, geometry.border_width), (geometry.x, geometry.y))
        let (handle, context) = (unsafe connection.handle, connection.makeIdentifier())
        try connection.check(
            unsafe xcb_create_pixmap_checked(handle, geometry.depth, probe, window, size.width, size.height)
        )
        defer { unsafe xcb_free_pixmap(handle, probe) }
        // What cannot be copied because it is covered or outside the screen is told (GraphicsExpose).
        let values = [XCB_SUBWINDOW_MODE_INCLUDE_INFERIORS.rawValue, 1]
        let mask = XCB_GC_SUBWINDOW_MODE.rawValue | XCB_GC_GRAPHICS_EXPOSURES.rawValue
        unsafe xcb_create_gc(handle, context, probe, mask, values)
        defer { unsafe xcb_free_gc(handle, context) }
        // If it fails, nothing tells what is covered, and the window is not captured.
        try connection.check(
            unsafe xcb_copy_area_checked(handle, window, probe, context, 0, 0, 0, 0, size.width, size.height)
        )
        let mode = UInt8(XCB_COMPOSITE_REDIRECT_AUTOMATIC.rawValue)
        let request = unsafe xcb_composite_redirect_window_checked(handle, window, mode)
        redirect = request.sequence
        begin(copied: [])
        try connection.check(request)
    }

    private func begin(copied: [xcb_rectangle_t]) {
        isNew = true
        self.copied = copied
        (drawn, exposed, painted, reportsOfMove) = ([], [], [], 0)
    }

    private func beginWhole() {
        begin(copied: [xcb_rectangle_t(x: 0, y: 0, width: size.width, height: size.height)])
    }

    // MARK: Events

    /// Notes what an event tells of the picture.
    ///
    /// - Returns: Whether the event was meant for this object alone.
    func note(_ event: UnsafeMutablePointer<xcb_generic_event_t>) -> Bool {
        let (type, number) = unsafe (event.pointee.response_type, event.pointee.full_sequence)
        let raw = UnsafeRawPointer(event)
        // The highest bit marks events that another client sent, which prove nothing.
        switch type {
        case UInt8(XCB_GRAPHICS_EXPOSURE):
            let part = unsafe raw.assumingMemoryBound(to: xcb_graphics_exposure_event_t.self).pointee
            guard part.drawable == probe else { return false }
            copied.append(Self.rectangle(part.x, part.y, part.width, part.height))
            return true
        case connection.extensions.damageEvent:
            let event = unsafe raw.assumingMemoryBound(to: xcb_damage_notify_event_t.self).pointee
            guard event.damage == damage else { return false }
            if isNew, isSinceRedirect(number) { noteDrawing(event.area, isLast: event.level & 0x80 == 0) }
            return true
        case UInt8(XCB_EXPOSE):
            let part = unsafe raw.assumingMemoryBound(to: xcb_expose_event_t.self).pointee
            guard isNew, isSinceRedirect(number) else { return true }
            exposed.append(Self.rectangle(part.x, part.y, part.width, part.height))
            return true
        case UInt8(XCB_CONFIGURE_NOTIFY):
            if isSinceRedirect(number) {
                noteShape(unsafe raw.assumingMemoryBound(to: xcb_configure_notify_event_t.self).pointee)
            }
        case UInt8(XCB_MAP_NOTIFY), UInt8(XCB_VISIBILITY_NOTIFY):
            // The redirect itself makes a covered window visible. Later, only one that was hidden becomes so.
            if isSinceRedirect(number), number != redirect { beginWhole() }
        default: break
        }
        return false
    }

    /// Whether an event is no older than the redirect.
    private func isSinceRedirect(_ number: UInt32) -> Bool {
        guard !isPastRedirect, let redirect else { return isPastRedirect }
        // Numbers wrap, so that only the first of these events can be told by its number.
        isPastRedirect = Int32(bitPattern: number &- redirect) >= 0
        return isPastRedirect
    }

    private static func rectangle(_ x: UInt16, _ y: UInt16, _ width: UInt16, _ height: UInt16) -> xcb_rectangle_t {
        xcb_rectangle_t(x: Int16(clamping: x), y: Int16(clamping: y), width: width, height: height)
    }

    private func noteShape(_ event: xcb_configure_notify_event_t) {
        let new = (event.width, event.height, event.border_width)
        if new != size {
            size = new
            beginWhole()
        } else if (event.x, event.y) != place {
            // The server reports what has become visible on the screen, and then the whole window. It reports nothing
            // of a window that was only raised.
            reportsOfMove = 2
        }
        place = (event.x, event.y)
    }

    private func noteDrawing(_ part: xcb_rectangle_t, isLast: Bool) {
        guard reportsOfMove == 0 else {
            let isWhole = part.width >= size.width && part.height >= size.height
            if isLast { reportsOfMove = isWhole ? 0 : reportsOfMove - 1 }
            return
        }
        // The server reports more than it draws of a border, which no program draws.
        let (column, row) = (Int(part.x), Int(part.y))
        let isInside = column + Int(part.width) <= Int(size.width) && row + Int(part.height) <= Int(size.height)
        guard column >= 0, row >= 0, isInside else { return }
        drawn.append(part)
        // What is reported before the Expose tells what has become visible, or is the background.
        if !exposed.isEmpty { painted.append(part) }
    }

    // MARK: Settling

    /// Makes black what was not painted since the picture has begun; call it while the server is grabbed, after all
    /// events have been noted.
    ///
    /// - Parameter pixmap: The picture, which has the window's border around it.
    /// - Returns: Whether everything was painted.
    /// - Throws: As `XConnection.reply`.
    func settle(_ pixmap: xcb_pixmap_t) throws(XFailure) -> Bool {
        guard isNew else { return true }
        isNew = false
        defer { (copied, drawn, exposed, painted) = ([], [], [], []) }
        guard !(copied.isEmpty && exposed.isEmpty) else { return true }
        let (black, unpainted) = (makeRegion(copied, without: drawn), makeRegion(exposed, without: painted))
        unsafe xcb_xfixes_union_region(connection.handle, black, unpainted, black)
        let (blackParts, unpaintedParts) = (try connection.parts(of: black), try connection.parts(of: unpainted))
        for region in [black, unpainted] { unsafe xcb_xfixes_destroy_region(connection.handle, region) }
        guard !blackParts.isEmpty else { return true }
        fill(pixmap, blackParts)
        // The background was painted over, too: the server paints it again, if there is one, and asks the program for
        // the rest, which may have painted it in a way that the reports do not show.
        for part in unpaintedParts {
            unsafe xcb_clear_area(connection.handle, 1, window, part.x, part.y, part.width, part.height)
        }
        return false
    }

    private func makeRegion(_ parts: [xcb_rectangle_t], without others: [xcb_rectangle_t]) -> xcb_xfixes_region_t {
        let (region, other) = (connection.makeIdentifier(), connection.makeIdentifier())
        unsafe xcb_xfixes_create_region(connection.handle, region, UInt32(parts.count), parts)
        unsafe xcb_xfixes_create_region(connection.handle, other, 0, nil)
        // A request holds some ten thousand rectangles.
        for start in stride(from: 0, to: others.count, by: 8192) {
            let some = Array(others[start..<min(start + 8192, others.count)])
            unsafe xcb_xfixes_set_region(connection.handle, other, UInt32(some.count), some)
            unsafe xcb_xfixes_subtract_region(connection.handle, region, other, region)
        }
        unsafe xcb_xfixes_destroy_region(connection.handle, other)
        return region
    }

    private func fill(_ pixmap: xcb_pixmap_t, _ parts: [xcb_rectangle_t]) {
        let context = connection.makeIdentifier()
        let values: [UInt32] = [0, 0]
        let mask = XCB_GC_FOREGROUND.rawValue | XCB_GC_GRAPHICS_EXPOSURES.rawValue
        unsafe xcb_create_gc(connection.handle, context, pixmap, mask, values)
        let border = Int16(clamping: size.border)
        let moved = parts.map { part in
            xcb_rectangle_t(x: part.x &+ border, y: part.y &+ border, width: part.width, height: part.height)
        }
        for start in stride(from: 0, to: moved.count, by: 8192) {
            let some = Array(moved[start..<min(start + 8192, moved.count)])
            unsafe xcb_poly_fill_rectangle(connection.handle, pixmap, context, UInt32(some.count), some)
        }
        unsafe xcb_free_gc(connection.handle, context)
    }
}

extension XConnection {
    /// The rectangles of a region.
    func parts(of region: xcb_xfixes_region_t) throws(XFailure) -> [xcb_rectangle_t] {
        let reply = try reply(
            unsafe xcb_xfixes_fetch_region(handle, region).sequence,
            as: xcb_xfixes_fetch_region_reply_t.self
        )
        let parts = unsafe UnsafeBufferPointer(
            start: xcb_xfixes_fetch_region_rectangles(reply.pointer),
            count: Int(xcb_xfixes_fetch_region_rectangles_length(reply.pointer))
        )
        return unsafe Array(parts)
    }

    /// Does something while the server serves no other client; keep it short.
    func grabbingServer<Result>(_ body: () throws(XFailure) -> Result) throws(XFailure) -> Result {
        unsafe xcb_grab_server(handle)
        defer {
            unsafe xcb_ungrab_server(handle)
            unsafe xcb_flush(handle)
        }
        return try body()
    }
}
