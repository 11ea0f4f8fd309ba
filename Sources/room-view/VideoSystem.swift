import CSDL
import ClientCommandLine
import Foundation

/// SDL's video, from its beginning to its end; confine to the main thread.
struct VideoSystem: ~Copyable {
    /// The drivers that SDL uses where there is no display: nobody would see their pictures.
    private static let unseen: Set<String> = ["offscreen", "dummy", "evdev"]

    /// Begins SDL's video.
    ///
    /// - Throws: `unavailable` if there is no display.
    init() throws(CommandFailure) {
        // Signals end the session, which ends the window.
        unsafe SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1")
        // Not by itself on a text console, whose keyboard SDL would switch off. SDL_VIDEODRIVER can say otherwise.
        unsafe SDL_SetHint(SDL_HINT_VIDEODRIVER, "x11,wayland")
        // SDL takes each window for a game's. This one should not switch a desktop's effects off.
        unsafe SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0")
        unsafe SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear")
        let isSeatMissing = Self.wouldCrashOnWayland
        if isSeatMissing { unsafe SDL_SetHintWithPriority(SDL_HINT_VIDEODRIVER, "x11", SDL_HINT_OVERRIDE) }
        guard SDL_Init(SDL_INIT_VIDEO) == 0 else {
            throw isSeatMissing ? Self.missingSeat : Self.noDisplay(": \(sdlError())")
        }
        RefusedFocus.ignore()
        // VP8 carries no colour matrix; ours is always this one. SDL would guess by the picture's size.
        SDL_SetYUVConversionMode(SDL_YUV_CONVERSION_BT601)
        let chosen = ProcessInfo.processInfo.environment["SDL_VIDEODRIVER"] ?? ""
        let driver = unsafe SDL_GetCurrentVideoDriver().map { unsafe String(cString: $0) } ?? ""
        guard chosen.isEmpty, Self.unseen.contains(driver) else { return }
        SDL_Quit()
        throw Self.noDisplay(".")
    }

    /// Whether `$WAYLAND_DISPLAY` is a compositor without any input device, as kiosks have.
    ///
    /// There SDL before 2.30 crashes when it begins (its issue 8898); Debian 12 has 2.26.
    private static var wouldCrashOnWayland: Bool {
        var version = SDL_version()
        unsafe SDL_GetVersion(&version)
        let drivers = ProcessInfo.processInfo.environment["SDL_VIDEODRIVER"] ?? "wayland"
        guard (version.major, version.minor) < (2, 30), drivers.contains("wayland") else { return false }
        return csdl_inspect_wayland() == csdl_compositor_without_seat
    }

    private static var missingSeat: CommandFailure {
        CommandFailure(
            .unavailable,
            "The Wayland compositor has no keyboard, pointer or touch screen, without which SDL before 2.30 opens no window. "
                + "Attach one, or set DISPLAY to an X server, such as Xwayland."
        )
    }

    deinit {
        SDL_Quit()
    }

    /// Opens the window.
    func makeWindow(title: String, isFullScreen: Bool) throws(CommandFailure) -> ViewWindow {
        try ViewWindow(title: title, isFullScreen: isFullScreen)
    }

    private static func noDisplay(_ reason: String) -> CommandFailure {
        CommandFailure(
            .unavailable,
            "There is no display for a window\(reason.hasSuffix(".") ? reason : reason + ".") "
                + "Set DISPLAY (such as :0) or WAYLAND_DISPLAY, or run room-view in a desktop session."
        )
    }
}

/// What SDL says about its last failure.
func sdlError() -> String {
    unsafe SDL_GetError().map { unsafe String(cString: $0) } ?? "SDL does not say why"
}
