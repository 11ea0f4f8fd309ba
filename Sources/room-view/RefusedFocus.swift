import CSDL
import Glibc
import Synchronization

/// Lets the program go on when the X server refuses the keyboard to a window that is hidden.
///
/// Where no window manager announces itself, SDL asks for the keyboard as soon as the window is shown. If the window
/// has been hidden by then, the server refuses that, and Xlib ends the program. The window gets the keyboard later, as
/// any window does.
enum RefusedFocus {
    /// X_SetInputFocus, of the core protocol of X11.
    private static let request: UInt8 = 42
    /// BadMatch: the window is not viewable.
    private static let refusal: UInt8 = 8
    private typealias Handler = @convention(c) (OpaquePointer?, UnsafeMutablePointer<XErrorEvent>?) -> Int32
    private typealias Setter = @convention(c) (Handler?) -> Handler?
    /// The handler before ours, which gets all other errors.
    private static let former = Atomic<UInt>(0)

    /// Ignores the refusal from now on; call it on the main thread, once SDL's video has begun.
    static func ignore() {
        // SDL has loaded the library if it draws with X11. Linked, it would be loaded for Wayland too.
        guard let library = unsafe dlopen("libX11.so.6", RTLD_LAZY | RTLD_NOLOAD),
            let symbol = unsafe dlsym(library, "XSetErrorHandler")
        else { return }
        let set = unsafe unsafeBitCast(symbol, to: Setter.self)
        let before = unsafe set { display, error in
            guard let error = unsafe error else { return 0 }
            let code = unsafe (error.pointee.request_code, error.pointee.error_code)
            if code == (RefusedFocus.request, RefusedFocus.refusal) { return 0 }
            let former = unsafe unsafeBitCast(RefusedFocus.former.load(ordering: .acquiring), to: Handler?.self)
            return unsafe former?(display, error) ?? 0
        }
        unsafe former.store(unsafeBitCast(before, to: UInt.self), ordering: .releasing)
    }
}
