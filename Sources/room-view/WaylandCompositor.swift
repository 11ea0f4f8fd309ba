import CSDL
import Foundation

/// The compositor that `$WAYLAND_DISPLAY` names.
enum WaylandCompositor {
    /// Whether it can be asked, and has no seat: no keyboard, no pointer and no touch screen.
    ///
    /// Waits until the compositor has answered.
    static var lacksSeat: Bool {
        let environment = ProcessInfo.processInfo.environment
        // This is one connection, which SDL needs.
        guard environment["WAYLAND_SOCKET"] == nil else { return false }
        // Without a folder for sockets the library would complain to the standard error.
        let isPath = environment["WAYLAND_DISPLAY"]?.hasPrefix("/") == true
        guard isPath || environment["XDG_RUNTIME_DIR"] != nil else { return false }
        guard let display = unsafe wl_display_connect(nil) else { return false }
        defer { unsafe wl_display_disconnect(display) }
        guard let registry = unsafe wl_display_get_registry(display) else { return false }
        defer { unsafe wl_registry_destroy(registry) }

        var hasSeat = false
        var listener = unsafe wl_registry_listener(
            global: { hasSeat, _, _, interface, _ in
                guard let interface = unsafe interface, unsafe strcmp(interface, "wl_seat") == 0 else { return }
                unsafe hasSeat?.assumingMemoryBound(to: Bool.self).pointee = true
            },
            global_remove: { _, _, _ in }
        )
        let isAnswered = unsafe withUnsafeMutablePointer(to: &hasSeat) { hasSeat in
            unsafe withUnsafePointer(to: &listener) { listener in
                unsafe wl_registry_add_listener(registry, listener, hasSeat) == 0 && wl_display_roundtrip(display) >= 0
            }
        }
        return isAnswered && !hasSeat
    }
}
