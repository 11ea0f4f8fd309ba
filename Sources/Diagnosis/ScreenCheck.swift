import MediaCore
package import ScreenCapture

/// Says what is wrong with an X11 display.
package struct ScreenCheck: Sendable {
    /// What the display has, or why it cannot be used; `nil` if the X server has not answered.
    package var inspection: Result<DisplayInspection, ScreenError>?
    /// Whether a screen is wanted here, so that it is a problem if there is none.
    package var isWanted: Bool

    /// How long an X server may take.
    private static let limit = Duration.seconds(5)

    /// A check with the given facts.
    package init(_ inspection: Result<DisplayInspection, ScreenError>?, isWanted: Bool) {
        self.inspection = inspection
        self.isWanted = isWanted
    }

    /// Asks the X server of `display`; `nil` for that of the environment's `DISPLAY`.
    package static func of(display: String?, isWanted: Bool) async -> ScreenCheck {
        let inspection = await BlockingCall.run(within: limit) { () -> Result<DisplayInspection, ScreenError> in
            do throws(ScreenError) {
                return .success(try DisplayInspection(of: display))
            } catch {
                return .failure(error)
            }
        }
        return ScreenCheck(inspection, isWanted: isWanted)
    }

    /// What was found.
    package func findings() -> [Finding] {
        switch inspection {
        case .success(let display): findings(of: display)
        case .failure(let error): [finding(of: error)]
        case nil:
            [
                .problem(
                    .screen,
                    "noAnswer",
                    "the X server has not answered for \(Int(Self.limit.seconds)) s",
                    "look whether it is stopped or hangs, and start it again"
                )
            ]
        }
    }

    private func finding(of error: ScreenError) -> Finding {
        let code = error.code.name
        switch error.code {
        case .noDisplay:
            return .problem(
                if: isWanted,
                .screen,
                code,
                "no X display: DISPLAY is not set",
                "only --source screen needs one: give --display :0, or run Xvfb on a machine without a screen"
            )
        case .waylandSession:
            return .problem(
                if: isWanted,
                .screen,
                code,
                "a Wayland session, whose screen no X11 program can see",
                "log in to an X11 session (\"Xorg\"), or pipe a recorder: wf-recorder … | room-client connect "
                    + "--room … --source live:-"
            )
        case .invalidDisplay:
            let advice = "give a display such as :0 by --display, or set DISPLAY"
            return .problem(.screen, code, "\(error.target): \(error.explanation)", advice)
        case .displayUnreachable:
            return .problem(
                .screen,
                code,
                "\(error.target) cannot be reached",
                "check DISPLAY and XAUTHORITY, or run this as the user of the session"
            )
        default: return .problem(.screen, code, "\(error.target): \(error.explanation)", "see what the X server logs")
        }
    }

    private func findings(of display: DisplayInspection) -> [Finding] {
        let count = display.monitors == 1 ? "1 monitor" : "\(display.monitors) monitors"
        let isFast = display.hasSharedMemory && display.isLocal
        let extensions =
            ["RandR", "Damage", "XFixes"] + (display.hasComposite ? ["Composite"] : [])
            + (isFast ? ["MIT-SHM"] : [])
        let name = "\(display.display) \(display.dimensions), \(count)"
        var findings = [Finding.ok(.screen, "\(name): \(extensions.joined(separator: ", "))")]
        if display.isXwayland {
            findings = [
                .problem(
                    if: isWanted,
                    .screen,
                    "waylandSession",
                    "\(name) is Xwayland, which shows the windows of X11 programs alone",
                    "name such a window by --window, or log in to an X11 session (\"Xorg\") for the whole screen"
                )
            ]
        }
        if !display.isReadable {
            findings.append(
                .problem(
                    .screen,
                    "unsupportedFormat",
                    "\(display.display) does not store its pixels with eight bits for each colour, and 32 in all",
                    "start the X server with a depth of 24"
                )
            )
        }
        if !display.hasComposite {
            let advice = "start the X server with the extension Composite, or publish the whole screen"
            findings.append(.note(.screen, "noComposite", "\(display.display) cannot show single windows", advice))
        }
        if !isFast {
            let reason = display.isLocal ? "lacks MIT-SHM 1.2" : "is on another machine"
            findings.append(
                .note(
                    .screen,
                    "noSharedMemory",
                    "\(display.display) \(reason), so that pixels come through its socket",
                    "expect more CPU time; capture on the machine of the screen where you can"
                )
            )
        }
        return findings
    }
}
