import CXCB
import MediaCore

/// Follows which parts of a window or the screen were drawn; confine to one thread.
struct DamageTracker {
    private let connection: XConnection
    private let damage: xcb_damage_damage_t
    private let region: xcb_xfixes_region_t

    /// A tracker of what is drawn in `window` and the windows inside it.
    init(_ connection: XConnection, window: xcb_window_t) throws(XFailure) {
        self.connection = connection
        damage = connection.makeIdentifier()
        region = connection.makeIdentifier()
        unsafe xcb_xfixes_create_region(connection.handle, region, 0, nil)
        // One event when the first thing is drawn, and then none until `collect` has taken it.
        let level = UInt8(XCB_DAMAGE_REPORT_LEVEL_NON_EMPTY.rawValue)
        try connection.check(unsafe xcb_damage_create_checked(connection.handle, damage, window, level))
    }

    /// Takes what was drawn since the last call, and adds it to `dirty`.
    ///
    /// The picture's upper left pixel is at `origin` in the window.
    func collect(into dirty: inout DirtyArea, from origin: PixelPlace) throws(XFailure) {
        unsafe xcb_damage_subtract(connection.handle, damage, 0, region)
        for rectangle in try connection.parts(of: region) {
            dirty.add(
                PixelArea(
                    column: Int(rectangle.x) - origin.column,
                    row: Int(rectangle.y) - origin.row,
                    dimensions: Dimensions(width: Int(rectangle.width), height: Int(rectangle.height))
                )
            )
        }
    }
}
