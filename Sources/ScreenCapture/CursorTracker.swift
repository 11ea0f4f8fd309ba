import CXCB
import MediaCore

/// The cursor's shape; a pure value.
struct CursorShape: Equatable {
    /// The size in pixels.
    var dimensions = Dimensions(width: 0, height: 0)
    /// The pixel of the shape that is at the pointer's position.
    var hotspot = PixelPlace(column: 0, row: 0)
    /// Rows of pixels: alpha in the highest byte, then red, green and blue, which are multiplied by alpha already.
    var pixels: [UInt32] = []

    /// Where the shape lies if the pointer is at a position; `nil` for an empty shape.
    func area(column: Int, row: Int) -> PixelArea? {
        guard dimensions.area > 0 else { return nil }
        return PixelArea(column: column - hotspot.column, row: row - hotspot.row, dimensions: dimensions)
    }

    /// Draws the shape, which lies at `place`, over pixels of `area` in the same coordinates.
    ///
    /// `target` has the rows of the area without gaps. Each pixel is four bytes: blue, green, red and one more.
    func draw(at place: PixelArea, over target: UnsafeMutableRawBufferPointer, of area: PixelArea) {
        guard let shared = place.intersection(area) else { return }
        precondition(target.count >= area.dimensions.area * 4, "\(target.count) bytes for \(area)")
        for row in shared.row..<shared.endRow {
            for column in shared.column..<shared.endColumn {
                let source = pixels[(row - place.row) * dimensions.width + column - place.column]
                let offset = 4 * ((row - area.row) * area.dimensions.width + column - area.column)
                let alpha = source >> 24
                guard alpha > 0 else { continue }
                for byte in 0..<3 {
                    let under = UInt32(unsafe target[offset + byte]) * (255 - alpha)
                    let over = source >> (8 * UInt32(byte)) & 0xFF
                    unsafe target[offset + byte] = UInt8(min(255, over + (under + 127) / 255))
                }
            }
        }
    }
}

/// Follows the pointer's position and shape; confine to one thread.
struct CursorTracker {
    private let connection: XConnection
    /// The shape; empty until the first update.
    private(set) var shape = CursorShape()
    private var isStale = true
    private var position = PixelPlace(column: 0, row: 0)
    private var window: xcb_window_t = 0
    /// Whether the pointer is on this screen of the display; its position is that on another one otherwise.
    private var isOnScreen = true

    /// A tracker that makes the server report other shapes.
    init(_ connection: XConnection) {
        self.connection = connection
        unsafe xcb_xfixes_select_cursor_input(
            connection.handle,
            connection.root,
            UInt32(XCB_XFIXES_CURSOR_NOTIFY_MASK_DISPLAY_CURSOR.rawValue)
        )
    }

    /// Asks for the pointer's position, and for its shape if that changed.
    mutating func update(shapeChanged: Bool) throws(XFailure) {
        let pointer = try connection.reply(
            unsafe xcb_query_pointer(connection.handle, connection.root).sequence,
            as: xcb_query_pointer_reply_t.self
        ).value
        position = PixelPlace(column: Int(pointer.root_x), row: Int(pointer.root_y))
        window = pointer.child
        isOnScreen = pointer.same_screen != 0
        guard isStale || shapeChanged else { return }
        let image = try connection.reply(
            unsafe xcb_xfixes_get_cursor_image(connection.handle).sequence,
            as: xcb_xfixes_get_cursor_image_reply_t.self
        )
        isStale = false
        let value = image.value
        let size = Dimensions(width: Int(value.width), height: Int(value.height))
        let count = unsafe Int(xcb_xfixes_get_cursor_image_cursor_image_length(image.pointer))
        guard let pixels = unsafe xcb_xfixes_get_cursor_image_cursor_image(image.pointer), count >= size.area else {
            shape = CursorShape()
            return
        }
        shape = CursorShape(
            dimensions: size,
            hotspot: PixelPlace(column: Int(value.xhot), row: Int(value.yhot)),
            pixels: unsafe Array(UnsafeBufferPointer(start: pixels, count: size.area))
        )
    }

    /// Where the cursor lies in a picture whose upper left pixel is at `origin` on the screen; `nil` if it is not
    /// drawn.
    ///
    /// It is drawn only while the pointer is in the top-level window `ancestor`, or in any window if that is `nil`.
    func area(from origin: PixelPlace, in ancestor: xcb_window_t?) -> PixelArea? {
        guard isOnScreen, ancestor ?? window == window else { return nil }
        return shape.area(column: position.column - origin.column, row: position.row - origin.row)
    }
}
