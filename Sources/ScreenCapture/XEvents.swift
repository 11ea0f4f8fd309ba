import CXCB
import Glibc

/// What the server told since the last look.
struct XEvents: OptionSet {
    let rawValue: UInt8

    /// Something was drawn in the captured window or on the screen.
    static let damaged = XEvents(rawValue: 1)
    /// The cursor has another shape.
    static let cursorChanged = XEvents(rawValue: 2)
    /// The screen, its monitors, or the window's size, place or visibility changed.
    static let layoutChanged = XEvents(rawValue: 4)
    /// The window was closed.
    static let destroyed = XEvents(rawValue: 8)
}

extension XConnection {
    /// Takes all events that have arrived; the end of `window` is told as `destroyed`.
    ///
    /// - Parameters:
    ///   - window: The captured window, or the root window.
    ///   - note: Called with each event in turn; returns whether the event is not to be looked at here.
    /// - Returns: What the events told.
    /// - Throws: `lost` if the connection is broken.
    func takeEvents(
        of window: xcb_window_t,
        _ note: (UnsafeMutablePointer<xcb_generic_event_t>) -> Bool
    ) throws(XFailure) -> XEvents {
        var events: XEvents = []
        unsafe xcb_flush(handle)
        while let event = unsafe xcb_poll_for_event(handle) {
            defer { unsafe free(event) }
            guard unsafe !note(event) else { continue }
            // The highest bit marks events that another client sent.
            switch unsafe event.pointee.response_type & 0x7F {
            case extensions.damageEvent: events.insert(.damaged)
            case extensions.cursorEvent: events.insert(.cursorChanged)
            case extensions.screenChangeEvent, extensions.screenChangeEvent + 1, UInt8(XCB_CONFIGURE_NOTIFY),
                UInt8(XCB_MAP_NOTIFY), UInt8(XCB_UNMAP_NOTIFY), UInt8(XCB_REPARENT_NOTIFY),
                UInt8(XCB_VISIBILITY_NOTIFY):
                events.insert(.layoutChanged)
            case UInt8(XCB_DESTROY_NOTIFY):
                let closed = unsafe UnsafeRawPointer(event).assumingMemoryBound(to: xcb_destroy_notify_event_t.self)
                if unsafe closed.pointee.window == window { events.insert(.destroyed) }
            default: break
            }
        }
        guard unsafe xcb_connection_has_error(handle) == 0 else { throw .lost }
        return events
    }
}
