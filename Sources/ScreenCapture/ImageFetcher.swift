import CXCB
import Glibc
import MediaCore

/// Fetches pixels from the server, through shared memory where the server can do that; confine to one thread.
///
/// The memory is a file without a name, whose descriptor the server gets. So nothing is left behind, even if the
/// program is killed. Over a network the pixels come in the server's answer (XGetImage).
@safe final class ImageFetcher {
    private let connection: XConnection
    private var segment: xcb_shm_seg_t?
    private var memory = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var sharesMemory: Bool

    /// A fetcher without memory, which uses shared memory if `sharesMemory` and if that is possible.
    init(_ connection: XConnection, sharesMemory: Bool) {
        self.connection = connection
        self.sharesMemory = sharesMemory && connection.extensions.takesMemoryFiles && connection.carriesDescriptors
    }

    deinit {
        unsafe munmap(memory.baseAddress, memory.count)
    }

    /// Whether pixels come through shared memory.
    var usesSharedMemory: Bool { segment != nil }

    /// Gets ready for areas of up to `dimensions`.
    func prepare(for dimensions: Dimensions) throws(XFailure) {
        let bytes = dimensions.area * 4
        guard sharesMemory, unsafe memory.count < bytes else { return }
        try release()
        let file = cxcb_memory_file()
        guard file >= 0 else { return sharesMemory = false }
        let address =
            ftruncate(file, bytes) == 0
            ? unsafe mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : nil
        guard let address = unsafe address, unsafe address != MAP_FAILED else {
            close(file)
            return sharesMemory = false
        }
        unsafe memory = UnsafeMutableRawBufferPointer(start: address, count: bytes)
        let segment = connection.makeIdentifier()
        do throws(XFailure) {
            // xcb closes the descriptor.
            try connection.check(unsafe xcb_shm_attach_fd_checked(connection.handle, segment, file, 0))
            self.segment = segment
        } catch .refused {
            sharesMemory = false
            try release()
        }
    }

    private func release() throws(XFailure) {
        if let segment { try connection.check(unsafe xcb_shm_detach_checked(connection.handle, segment)) }
        segment = nil
        if unsafe memory.baseAddress != nil { unsafe munmap(memory.baseAddress, memory.count) }
        unsafe memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Fetches an area of a window or pixmap, and lends its rows of four bytes a pixel, without gaps.
    ///
    /// `body` may change the pixels. It must not throw: see `VideoBuffer.withMutablePlanes`.
    ///
    /// - Throws: `refused` also if the area is not wholly inside, or if there is no such window any more.
    func fetch(
        _ area: PixelArea,
        of drawable: xcb_drawable_t,
        _ body: (UnsafeMutableRawBufferPointer) -> Void
    ) throws(XFailure) {
        let (x, y) = (Int16(clamping: area.column), Int16(clamping: area.row))
        let (width, height) = (UInt16(clamping: area.dimensions.width), UInt16(clamping: area.dimensions.height))
        let bytes = area.dimensions.area * 4
        let format = UInt8(XCB_IMAGE_FORMAT_Z_PIXMAP.rawValue)
        guard let segment, unsafe memory.count >= bytes else {
            let cookie = unsafe xcb_get_image(connection.handle, format, drawable, x, y, width, height, ~0)
            let reply = try connection.reply(cookie.sequence, as: xcb_get_image_reply_t.self)
            guard let data = unsafe xcb_get_image_data(reply.pointer),
                unsafe xcb_get_image_data_length(reply.pointer) >= bytes
            else { throw .refused(UInt8(XCB_MATCH)) }
            return unsafe body(UnsafeMutableRawBufferPointer(start: data, count: bytes))
        }
        let cookie = unsafe xcb_shm_get_image(
            connection.handle,
            drawable,
            x,
            y,
            width,
            height,
            ~0,
            format,
            segment,
            0
        )
        _ = try connection.reply(cookie.sequence, as: xcb_shm_get_image_reply_t.self).value
        unsafe body(UnsafeMutableRawBufferPointer(rebasing: memory[0..<bytes]))
    }
}
