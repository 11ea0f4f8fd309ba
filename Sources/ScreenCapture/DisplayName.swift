import Glibc

/// What the environment says about the session that the program runs in.
struct SessionEnvironment: Equatable, Sendable {
    /// `DISPLAY`.
    var display: String?
    /// `WAYLAND_DISPLAY`.
    var waylandDisplay: String?
    /// `XDG_SESSION_TYPE`.
    var sessionType: String?

    /// The environment of this process.
    static var current: SessionEnvironment {
        SessionEnvironment(
            display: variable("DISPLAY"),
            waylandDisplay: variable("WAYLAND_DISPLAY"),
            sessionType: variable("XDG_SESSION_TYPE")
        )
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        let text = unsafe String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// Whether the variables are those of a Wayland session.
    var isWayland: Bool { waylandDisplay != nil || sessionType == "wayland" }

    /// The display to use: the one that is given, or else the environment's.
    ///
    /// - Throws: `noDisplay`; `waylandSession` if there is a Wayland session and no X display.
    func displayName(given: String?) throws(ScreenError) -> String {
        if let name = given ?? display { return name }
        if isWayland { throw .wayland(target: "the screen") }
        throw ScreenError(
            .noDisplay,
            target: "the screen",
            "no display is named: name one, such as :0, or set DISPLAY (a machine without a screen can run Xvfb)"
        )
    }
}

extension ScreenError {
    /// The error for a screen that only a Wayland compositor can see.
    static func wayland(target: String) -> ScreenError {
        ScreenError(
            .waylandSession,
            target: target,
            """
            this is a Wayland session, whose screen no X11 program can see; log in to an X11 session (\"Xorg\" in the login \
            screen's menu), or name a window of an X11 program by --window, or pipe a Wayland recorder's Y4M output into \
            --source live:-
            """
        )
    }
}
