import CSDL
import ClientCommandLine
import Foundation

/// SDL's video, from its beginning to its end; confine to the main thread.
struct VideoSystem: ~Copyable {
    /// The drivers that SDL uses where there is no display: nobody would see their pictures.
    private static let unseen: Set<String> = ["offscreen", "dummy", "evdev"]

    /// The variables of which Wayland needs one to find its compositor; without any it would print a line of its own.
    private static let waylandNames = ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XDG_RUNTIME_DIR"]

    /// Begins SDL's video.
    ///
    /// - Throws: `unavailable` if there is no display.
    init() throws(CommandFailure) {
        // Signals end the session, which ends the window.
        unsafe SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1")
        // SDL takes each window for a game's. This one should not switch a desktop's effects off.
        unsafe SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0")
        unsafe SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear")
        let environment = ProcessInfo.processInfo.environment
        let chosen = environment["SDL_VIDEODRIVER"] ?? ""
        try Self.begin(chosen, namesWayland: Self.waylandNames.contains { environment[$0] != nil })
        RefusedFocus.ignore()
        // VP8 carries no colour matrix; ours is always this one. SDL would guess by the picture's size.
        SDL_SetYUVConversionMode(SDL_YUV_CONVERSION_BT601)
        let driver = unsafe SDL_GetCurrentVideoDriver().map { unsafe String(cString: $0) } ?? ""
        guard chosen.isEmpty, Self.unseen.contains(driver) else { return }
        SDL_Quit()
        throw Self.noDisplay(".")
    }

    /// Begins with the drivers that `chosen` names, as `SDL_VIDEODRIVER` does, or else with X11, or else with Wayland.
    ///
    /// SDL does not choose by itself: on a text console it would switch the keyboard off.
    private static func begin(_ chosen: String, namesWayland: Bool) throws(CommandFailure) {
        if chosen.isEmpty {
            if begins(with: "x11") { return }
            guard namesWayland else { throw noDisplay(".") }
        }
        var drivers = chosen.isEmpty ? ["wayland"] : chosen.split(separator: ",").map { String($0) }
        if drivers.contains("wayland"), wouldCrashWithoutSeat, WaylandCompositor.lacksSeat {
            drivers.removeAll { $0 == "wayland" }
            guard !drivers.isEmpty else { throw missingSeat }
        }
        guard begins(with: drivers.joined(separator: ",")) else { throw noDisplay(": \(sdlError())") }
    }

    private static func begins(with drivers: String) -> Bool {
        unsafe SDL_SetHintWithPriority(SDL_HINT_VIDEODRIVER, drivers, SDL_HINT_OVERRIDE)
        return SDL_Init(SDL_INIT_VIDEO) == 0
    }

    /// Whether SDL crashes when it begins at a compositor without any input device, as kiosks have.
    ///
    /// It did before 2.30 (its issue 8898); Debian 12 has 2.26.
    private static var wouldCrashWithoutSeat: Bool {
        var version = SDL_version()
        unsafe SDL_GetVersion(&version)
        return (version.major, version.minor) < (2, 30)
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
