import CXCB
import Glibc
import MediaCore
import TestSupport
import TestTools

@testable import ScreenCapture

/// A display of the test's own: an Xvfb, and a client of it that draws.
final class VirtualDisplay {
    /// The display's name, as in `:5`.
    let name: String
    /// The X server.
    var server: Program { screen.program }
    private let screen: XServer
    private let client: XConnection
    private let context: xcb_gcontext_t

    /// Starts a display with a screen of `size`, and with further options of Xvfb.
    ///
    /// - Throws: An error if the package `xvfb` is not installed; `make deps` installs it.
    init(_ size: Dimensions = Dimensions(width: 640, height: 480), options: [String] = []) async throws {
        let screen = try await XServer(size, options: options)
        self.screen = screen
        name = screen.display
        client = try XConnection(display: name)
        context = client.makeIdentifier()
        var noExposures: UInt32 = 0
        xcb_create_gc(client.handle, context, client.root, XCB_GC_GRAPHICS_EXPOSURES.rawValue, &noExposures)
    }

    /// Waits until the server has done everything that was asked of it.
    func sync() throws { _ = try client.geometry(of: client.root) }

    /// The root window.
    var root: xcb_window_t { client.root }

    // MARK: Windows

    /// Shows a window at a place of the screen or of another window.
    ///
    /// - Parameters:
    ///   - area: The place and size.
    ///   - title: The title.
    ///   - colour: The background, 0xRRGGBB, which the server paints; with `nil`, the window shows what was there before.
    ///   - border: The border's width in pixels.
    ///   - keepsContent: Whether what the window shows stays when it gets another size.
    ///   - parent: The window that it is in; `nil` for the screen.
    /// - Returns: The window.
    /// - Throws: An error if the server is gone.
    func makeWindow(
        _ area: PixelArea,
        title: String = "",
        colour: UInt32? = 0,
        border: Int = 0,
        keepsContent: Bool = false,
        in parent: xcb_window_t? = nil
    ) throws -> xcb_window_t {
        let window = client.makeIdentifier()
        // No window manager; the values lie in the order of the mask's bits.
        let gravity = keepsContent ? XCB_GRAVITY_NORTH_WEST.rawValue : XCB_GRAVITY_BIT_FORGET.rawValue
        let values: [UInt32] = [colour ?? XCB_BACK_PIXMAP_NONE.rawValue, 0xFF00FF, gravity, 1]
        let background = colour == nil ? XCB_CW_BACK_PIXMAP : XCB_CW_BACK_PIXEL
        let mask =
            background.rawValue | XCB_CW_BORDER_PIXEL.rawValue | XCB_CW_BIT_GRAVITY.rawValue
            | XCB_CW_OVERRIDE_REDIRECT.rawValue
        xcb_create_window(
            client.handle,
            UInt8(XCB_COPY_FROM_PARENT),
            window,
            parent ?? client.root,
            Int16(area.column),
            Int16(area.row),
            UInt16(area.dimensions.width),
            UInt16(area.dimensions.height),
            UInt16(border),
            UInt16(XCB_WINDOW_CLASS_INPUT_OUTPUT.rawValue),
            0,
            mask,
            values
        )
        set(XCB_ATOM_WM_NAME.rawValue, of: window, to: Array(title.utf8), type: XCB_ATOM_STRING.rawValue)
        xcb_map_window(client.handle, window)
        try sync()
        return window
    }

    /// Gives a window a title in the way of old programs, as plain bytes.
    func setTitle(_ bytes: [UInt8], of window: xcb_window_t) throws {
        set(XCB_ATOM_WM_NAME.rawValue, of: window, to: bytes, type: XCB_ATOM_STRING.rawValue)
        try sync()
    }

    /// Marks a program's window, as a window manager does.
    func mark(_ window: xcb_window_t) throws {
        let state = try client.atom("WM_STATE")
        set(state, of: window, to: [1], type: state)
        try sync()
    }

    private func set(_ property: xcb_atom_t, of window: xcb_window_t, to bytes: [UInt8], type: xcb_atom_t) {
        let mode = UInt8(XCB_PROP_MODE_REPLACE.rawValue)
        xcb_change_property(client.handle, mode, window, property, type, 8, UInt32(bytes.count), bytes)
    }

    /// Hides a window, as a window manager does that minimizes it.
    func hide(_ window: xcb_window_t) throws {
        xcb_unmap_window(client.handle, window)
        try sync()
    }

    /// Shows a window again.
    func show(_ window: xcb_window_t) throws {
        xcb_map_window(client.handle, window)
        try sync()
    }

    /// Closes a window.
    func close(_ window: xcb_window_t) throws {
        xcb_destroy_window(client.handle, window)
        try sync()
    }

    /// Moves a window.
    func move(_ window: xcb_window_t, column: Int, row: Int) throws {
        let values = [UInt32(bitPattern: Int32(column)), UInt32(bitPattern: Int32(row))]
        let mask = XCB_CONFIG_WINDOW_X.rawValue | XCB_CONFIG_WINDOW_Y.rawValue
        xcb_configure_window(client.handle, window, UInt16(mask), values)
        try sync()
    }

    /// Puts a window above the others.
    func raise(_ window: xcb_window_t) throws {
        let values = [XCB_STACK_MODE_ABOVE.rawValue]
        xcb_configure_window(client.handle, window, UInt16(XCB_CONFIG_WINDOW_STACK_MODE.rawValue), values)
        try sync()
    }

    /// Gives a window another size.
    func resize(_ window: xcb_window_t, _ size: Dimensions) throws {
        let values = [UInt32(size.width), UInt32(size.height)]
        let mask = XCB_CONFIG_WINDOW_WIDTH.rawValue | XCB_CONFIG_WINDOW_HEIGHT.rawValue
        xcb_configure_window(client.handle, window, UInt16(mask), values)
        try sync()
    }

    // MARK: Drawing

    /// Fills a part of a window with `colour` (0xRRGGBB).
    func fill(_ window: xcb_window_t, _ area: PixelArea, _ colour: UInt32) throws {
        var colour = colour
        xcb_change_gc(client.handle, context, XCB_GC_FOREGROUND.rawValue, &colour)
        var rectangle = xcb_rectangle_t(
            x: Int16(area.column),
            y: Int16(area.row),
            width: UInt16(area.dimensions.width),
            height: UInt16(area.dimensions.height)
        )
        xcb_poly_fill_rectangle(client.handle, window, context, 1, &rectangle)
        try sync()
    }

    /// Draws a picture into a window.
    func draw(_ drawing: Drawing, into window: xcb_window_t) throws {
        let (pixels, size) = (drawing.pixels, drawing.dimensions)
        let bytesPerRow = size.width * 4
        // A request has at most 256 KiB.
        let rows = 200_000 / bytesPerRow
        for row in stride(from: 0, to: size.height, by: rows) {
            let count = min(rows, size.height - row)
            pixels[(row * bytesPerRow)...].withUnsafeBufferPointer { bytes in
                _ = xcb_put_image(
                    client.handle,
                    UInt8(XCB_IMAGE_FORMAT_Z_PIXMAP.rawValue),
                    window,
                    context,
                    UInt16(size.width),
                    UInt16(count),
                    0,
                    Int16(row),
                    0,
                    24,
                    UInt32(count * bytesPerRow),
                    bytes.baseAddress
                )
            }
        }
        try sync()
    }

    /// Writes lines of text in black on white into a window, in the server's own font of 10 rows.
    ///
    /// - Throws: An error if the package `xfonts-base` is not installed; `make deps` installs it.
    func write(_ lines: [String], into window: xcb_window_t) throws {
        let font = client.makeIdentifier()
        do throws(XFailure) {
            try client.check(xcb_open_font_checked(client.handle, font, 4, "6x10"))
        } catch {
            throw TestFailure("the server has no font 6x10; make deps installs the package xfonts-base: \(error)")
        }
        let values = [0x000000, 0xFFFFFF, font]
        let mask = XCB_GC_FOREGROUND.rawValue | XCB_GC_BACKGROUND.rawValue | XCB_GC_FONT.rawValue
        xcb_change_gc(client.handle, context, mask, values)
        for (number, line) in lines.enumerated() {
            let (text, row) = (line.utf8.map(CChar.init), Int16(20 + 14 * number))
            xcb_image_text_8(client.handle, UInt8(text.count), window, context, 10, row, text)
        }
        try sync()
    }

    /// The bytes B G R X that a window shows, which nothing may cover.
    func pixels(of window: xcb_window_t, _ size: Dimensions) throws -> [UInt8] {
        let format = UInt8(XCB_IMAGE_FORMAT_Z_PIXMAP.rawValue)
        let (width, height) = (UInt16(size.width), UInt16(size.height))
        let image = try client.reply(
            xcb_get_image(client.handle, format, window, 0, 0, width, height, .max).sequence,
            as: xcb_get_image_reply_t.self
        )
        let count = Int(xcb_get_image_data_length(image.pointer))
        return Array(UnsafeBufferPointer(start: xcb_get_image_data(image.pointer), count: count))
    }

    // MARK: Pointer and screen

    /// Moves the pointer.
    func movePointer(column: Int, row: Int) throws {
        xcb_warp_pointer(client.handle, 0, client.root, 0, 0, 0, 0, Int16(column), Int16(row))
        try sync()
    }

    /// Gives a window a cursor: a square of 16 pixels of `colour` whose hotspot is the upper left pixel.
    func setCursor(of window: xcb_window_t, colour: UInt32) throws {
        let (pixmap, cursor, bits) = (client.makeIdentifier(), client.makeIdentifier(), client.makeIdentifier())
        xcb_create_pixmap(client.handle, 1, pixmap, client.root, 16, 16)
        var one: UInt32 = 1
        xcb_create_gc(client.handle, bits, pixmap, XCB_GC_FOREGROUND.rawValue, &one)
        var whole = xcb_rectangle_t(x: 0, y: 0, width: 16, height: 16)
        xcb_poly_fill_rectangle(client.handle, pixmap, bits, 1, &whole)
        let parts = [16, 8, 0].map { UInt16(colour >> UInt32($0) & 0xFF) * 257 }
        xcb_create_cursor(client.handle, cursor, pixmap, pixmap, parts[0], parts[1], parts[2], 0, 0, 0, 0, 0)
        var value = cursor
        xcb_change_window_attributes(client.handle, window, XCB_CW_CURSOR.rawValue, &value)
        try sync()
    }

    /// Has the server count a part of the screen as a monitor.
    func addMonitor(_ name: String, _ area: PixelArea) throws {
        guard let extensionData = cxcb_randr(client.handle) else { throw TestFailure("the server has no RANDR") }
        // `xcb_randr_set_monitor` of libxcb 1.15 sends a length of its own making. This is RRSetMonitor of RandR 1.5:
        // no outputs, not the primary monitor, place and size in pixels and in millimeters.
        let (width, height) = (UInt32(area.dimensions.width), UInt32(area.dimensions.height))
        var words: [UInt32] = [
            43 << 8, client.root, try client.atom(name), 0, UInt32(area.column) | UInt32(area.row) << 16,
            width | height << 16, 100, 100,
        ]
        var request = xcb_protocol_request_t()
        (request.count, request.opcode, request.isvoid) = (1, extensionData.pointee.major_opcode, 1)
        let sequence = words.withUnsafeMutableBytes { bytes in
            // xcb uses the two parts before the first one.
            var parts = [iovec(), iovec(), iovec(iov_base: bytes.baseAddress, iov_len: bytes.count), iovec()]
            return parts.withUnsafeMutableBufferPointer { parts in
                let flags = Int32(XCB_REQUEST_CHECKED.rawValue)
                return xcb_send_request(client.handle, flags, parts.baseAddress.map { $0 + 2 }, &request)
            }
        }
        try client.check(xcb_void_cookie_t(sequence: sequence))
    }

    /// Gives the screen another size, at most the one that it began with.
    func resizeScreen(_ size: Dimensions) throws {
        let resources = try client.reply(
            xcb_randr_get_screen_resources(client.handle, client.root).sequence,
            as: xcb_randr_get_screen_resources_reply_t.self
        )
        // A screen cannot become smaller than what its controllers show; without them, it can.
        let count = Int(xcb_randr_get_screen_resources_crtcs_length(resources.pointer))
        let controllers = UnsafeBufferPointer(
            start: xcb_randr_get_screen_resources_crtcs(resources.pointer),
            count: count
        )
        for crtc in controllers {
            let time = resources.value.config_timestamp
            let cookie = xcb_randr_set_crtc_config(client.handle, crtc, 0, time, 0, 0, 0, 1, 0, nil)
            _ = try client.reply(cookie.sequence, as: xcb_randr_set_crtc_config_reply_t.self).value
        }
        let (width, height) = (UInt16(size.width), UInt16(size.height))
        try client.check(xcb_randr_set_screen_size_checked(client.handle, client.root, width, height, 300, 200))
    }
}

/// The area at a place.
func area(_ column: Int, _ row: Int, _ width: Int, _ height: Int) -> PixelArea {
    PixelArea(column: column, row: row, dimensions: Dimensions(width: width, height: height))
}
