import CXCB
import Glibc
import MediaCore
import Threading

/// A connection to an X server; confine to one thread.
///
/// No call waits longer than `ScreenSource.patience` for the server to answer, and none goes on waiting when a stop is
/// requested. While an answer arrives, xcb waits for its end, however long that takes; `cut` ends that, too.
@safe final class XConnection {
    /// The display's name, as in `:0`.
    let display: String
    /// The root window of the display's screen.
    let root: xcb_window_t
    /// The extensions that the server has.
    let extensions: XExtensions
    /// xcb's handle, valid as long as this object.
    let handle: OpaquePointer
    private let isStopRequested: () -> Bool
    /// The connection's descriptor; `nil` once it is closed.
    private let line: Monitor<Int32?>
    private let screen: UnsafeMutablePointer<xcb_screen_t>

    /// Connects to `display`.
    ///
    /// - Throws: `noAnswer`, `stopped`; as `explained` `invalidDisplay`, `displayUnreachable`, `outOfResources`, or
    ///   `serverFailed` if an extension is missing.
    init(display: String, isStopRequested: @escaping () -> Bool = { false }) throws(XFailure) {
        self.display = display
        self.isStopRequested = isStopRequested
        let opened = try Self.open(display, isStopRequested: isStopRequested)
        guard let handle = unsafe opened.handle else {
            throw .explained(ScreenError(.displayUnreachable, target: "display \(display)", "there is no memory left"))
        }
        let status = unsafe xcb_connection_has_error(handle)
        guard status == 0, let found = opened.extensions, let screen = unsafe Self.screen(opened.screen, of: handle)
        else {
            unsafe xcb_disconnect(handle)
            let isBadName = [XCB_CONN_CLOSED_PARSE_ERR, XCB_CONN_CLOSED_INVALID_SCREEN].contains(status)
            let code: ScreenError.Code = isBadName ? .invalidDisplay : .displayUnreachable
            throw .explained(ScreenError(code, target: "display \(display)", Self.explain(status)))
        }
        unsafe self.handle = handle
        unsafe self.screen = screen
        line = Monitor(unsafe xcb_get_file_descriptor(handle))
        root = unsafe screen.pointee.root
        do throws(MissingExtension) {
            extensions = try found.get()
        } catch {
            line.withLock { $0 = nil }
            unsafe xcb_disconnect(handle)
            throw .explained(ScreenError(.serverFailed, target: "display \(display)", error.description))
        }
    }

    deinit {
        line.withLock { $0 = nil }
        unsafe xcb_disconnect(handle)
    }

    /// Ends the connection, so that every call fails; it may be called on any thread, also after the connection's end.
    var cut: @Sendable () -> Void {
        { [line] in line.withLock { descriptor in if let descriptor { shutdown(descriptor, Int32(SHUT_RDWR)) } } }
    }

    private static func screen(_ number: Int32, of handle: OpaquePointer) -> UnsafeMutablePointer<xcb_screen_t>? {
        var screens = unsafe xcb_setup_roots_iterator(xcb_get_setup(handle))
        for _ in 0..<number where unsafe screens.rem > 0 { unsafe xcb_screen_next(&screens) }
        return unsafe screens.rem > 0 ? screens.data : nil
    }

    private static func explain(_ status: Int32) -> String {
        switch status {
        case XCB_CONN_CLOSED_PARSE_ERR:
            "this is no name of a display; give one such as :0 or localhost:10.0"
        case XCB_CONN_CLOSED_INVALID_SCREEN: "the display has no such screen; leave the part after the point out"
        case XCB_CONN_CLOSED_MEM_INSUFFICIENT: "there is no memory left"
        default:
            "there is no X server, or it does not let this user in; check DISPLAY and XAUTHORITY, or run the program as "
                + "the user of the session"
        }
    }

    // MARK: Requests

    /// Waits for the answer to a request, which is given by its cookie's sequence number.
    func reply<Value>(_ sequence: UInt32, as type: Value.Type) throws(XFailure) -> XReply<Value> {
        unsafe xcb_flush(handle)
        let deadline = MonotonicClock.now + ScreenSource.patience
        while true {
            var reply: UnsafeMutableRawPointer?
            var error: UnsafeMutablePointer<xcb_generic_error_t>?
            if unsafe xcb_poll_for_reply(handle, sequence, &reply, &error) != 0 {
                if let error = unsafe error {
                    defer { unsafe free(error) }
                    throw .refused(unsafe error.pointee.error_code)
                }
                guard let reply = unsafe reply else { throw .lost }
                return unsafe XReply(taking: reply)
            }
            try waitForData(until: deadline)
        }
    }

    /// Waits until the server has processed a request without an answer, which a `…_checked` function made.
    func check(_ cookie: xcb_void_cookie_t) throws(XFailure) {
        // xcb waits for ever. Once a later request is answered, it has nothing left to wait for.
        _ = try reply(unsafe xcb_get_input_focus(handle).sequence, as: xcb_get_input_focus_reply_t.self).value
        guard let error = unsafe xcb_request_check(handle, cookie) else { return }
        defer { unsafe free(error) }
        throw .refused(unsafe error.pointee.error_code)
    }

    private func waitForData(until deadline: MonotonicInstant) throws(XFailure) {
        if isStopRequested() { throw .stopped }
        let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
        guard left > 0 else { throw .noAnswer }
        var file = pollfd(fd: unsafe xcb_get_file_descriptor(handle), events: Int16(POLLIN), revents: 0)
        // A stop is noticed within 100 ms.
        _ = unsafe poll(&file, 1, Int32(clamping: min(100, (left + 999) / 1000)))
    }

    /// A new identifier for an object of the server.
    func makeIdentifier() -> UInt32 { unsafe xcb_generate_id(handle) }

    /// Whether the connection passes file descriptors on, as sockets of this machine do.
    var carriesDescriptors: Bool {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = unsafe withUnsafeMutableBytes(of: &address) { bytes in
            unsafe getsockname(
                xcb_get_file_descriptor(handle),
                bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                &length
            )
        }
        return status == 0 && Int32(address.ss_family) == AF_UNIX
    }

    // MARK: Pixels

    /// Whether pixels of `depth` bits in the given visual are four bytes: blue, green, red and one more.
    func isReadable(depth: UInt8, visual: xcb_visualid_t) -> Bool {
        guard let setup = unsafe xcb_get_setup(handle),
            unsafe UInt32(setup.pointee.image_byte_order) == XCB_IMAGE_ORDER_LSB_FIRST.rawValue
        else { return false }
        var formats = unsafe xcb_setup_pixmap_formats_iterator(setup)
        var hasFourBytes = false
        while unsafe formats.rem > 0 {
            let format = unsafe formats.data.pointee
            if format.depth == depth { hasFourBytes = format.bits_per_pixel == 32 }
            unsafe xcb_format_next(&formats)
        }
        guard hasFourBytes else { return false }
        var depths = unsafe xcb_screen_allowed_depths_iterator(screen)
        while unsafe depths.rem > 0 {
            var visuals = unsafe xcb_depth_visuals_iterator(depths.data)
            while unsafe visuals.rem > 0 {
                let type = unsafe visuals.data.pointee
                if type.visual_id == visual {
                    return type.red_mask == 0xFF0000 && type.green_mask == 0xFF00 && type.blue_mask == 0xFF
                }
                unsafe xcb_visualtype_next(&visuals)
            }
            unsafe xcb_depth_next(&depths)
        }
        return false
    }

    /// The root window's visual.
    var rootVisual: xcb_visualid_t { unsafe screen.pointee.root_visual }
}

/// The answer to a request, which is released with this value.
@safe struct XReply<Value>: ~Copyable {
    /// The answer; data of variable length follow it in memory.
    let pointer: UnsafeMutablePointer<Value>

    fileprivate init(taking reply: UnsafeMutableRawPointer) {
        unsafe pointer = reply.assumingMemoryBound(to: Value.self)
    }

    deinit {
        unsafe free(pointer)
    }

    /// The answer's fixed fields.
    var value: Value { unsafe pointer.pointee }
}
