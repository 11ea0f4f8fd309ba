import CXCB
import Glibc

/// The server's extensions, in the versions that capturing needs.
struct XExtensions {
    /// The number of the event that reports damage.
    let damageEvent: UInt8
    /// The number of the event that reports another cursor.
    let cursorEvent: UInt8
    /// The number of the event that reports another size of the screen; the next number reports other monitors.
    let screenChangeEvent: UInt8
    /// Whether the server lists its monitors (RANDR 1.5); it must for all but windows.
    let hasMonitors: Bool
    /// Whether windows can be captured.
    let hasComposite: Bool
    /// Whether the server takes shared memory as a file descriptor (MIT-SHM 1.2).
    let takesMemoryFiles: Bool

    /// Asks for the extensions.
    ///
    /// - Throws: `MissingExtension` for XFIXES, DAMAGE and RANDR.
    init(_ handle: OpaquePointer) throws(MissingExtension) {
        guard let fixes = unsafe cxcb_xfixes(handle), unsafe fixes.pointee.present != 0 else {
            throw MissingExtension(name: "XFIXES")
        }
        guard let damage = unsafe cxcb_damage(handle), unsafe damage.pointee.present != 0 else {
            throw MissingExtension(name: "DAMAGE")
        }
        guard let randr = unsafe cxcb_randr(handle), unsafe randr.pointee.present != 0 else {
            throw MissingExtension(name: "RANDR")
        }
        // A server takes requests of an extension only after it was told the version that the client knows.
        unsafe free(xcb_xfixes_query_version_reply(handle, xcb_xfixes_query_version(handle, 5, 0), nil))
        unsafe free(xcb_damage_query_version_reply(handle, xcb_damage_query_version(handle, 1, 1), nil))
        damageEvent = unsafe damage.pointee.first_event + UInt8(XCB_DAMAGE_NOTIFY)
        cursorEvent = unsafe fixes.pointee.first_event + UInt8(XCB_XFIXES_CURSOR_NOTIFY)
        screenChangeEvent = unsafe randr.pointee.first_event + UInt8(XCB_RANDR_SCREEN_CHANGE_NOTIFY)
        hasMonitors = unsafe Self.hasMonitors(handle)
        hasComposite = unsafe Self.hasNamedPixmaps(handle)
        takesMemoryFiles = unsafe Self.takesMemoryFiles(handle)
    }

    private static func hasMonitors(_ handle: OpaquePointer) -> Bool {
        let request = unsafe xcb_randr_query_version(handle, 1, 5)
        guard let version = unsafe xcb_randr_query_version_reply(handle, request, nil) else { return false }
        defer { unsafe free(version) }
        return unsafe (version.pointee.major_version, version.pointee.minor_version) >= (1, 5)
    }

    private static func hasNamedPixmaps(_ handle: OpaquePointer) -> Bool {
        guard let composite = unsafe cxcb_composite(handle), unsafe composite.pointee.present != 0,
            let version = unsafe xcb_composite_query_version_reply(
                handle,
                xcb_composite_query_version(handle, 0, 4),
                nil
            )
        else { return false }
        defer { unsafe free(version) }
        return unsafe (version.pointee.major_version, version.pointee.minor_version) >= (0, 2)
    }

    private static func takesMemoryFiles(_ handle: OpaquePointer) -> Bool {
        guard let memory = unsafe cxcb_shm(handle), unsafe memory.pointee.present != 0,
            let version = unsafe xcb_shm_query_version_reply(handle, xcb_shm_query_version(handle), nil)
        else { return false }
        defer { unsafe free(version) }
        return unsafe (version.pointee.major_version, version.pointee.minor_version) >= (1, 2)
    }
}

/// The server lacks an extension.
struct MissingExtension: Error {
    let name: String

    /// What is wrong and what to do.
    var description: String {
        "the X server lacks the extension \(name); use a server that has it, such as Xorg, Xvfb or Xvnc"
    }
}
