import ArgumentParser
import ClientCommandLine
import RoomKit

/// The options of `connect` for screens and windows.
struct ScreenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The X display of --source screen, such as :0; default $DISPLAY.", valueName: "display"),
        transform: { try GivenText.read($0).text }
    )
    var display: String?

    @Option(
        help: ArgumentHelp("Show one monitor, by name or number; default the whole screen.", valueName: "monitor"),
        transform: { try GivenText.read($0).text }
    )
    var monitor: String?

    @Option(
        help: ArgumentHelp(
            "Show one window, by number or title, and never what covers it; devices --screens lists them.",
            valueName: "window"
        ),
        transform: { try GivenText.read($0).text }
    )
    var window: String?

    @Flag(help: "Leave the cursor out of the picture of a screen.")
    var noCursor = false

    func validate() throws {
        if monitor != nil, window != nil {
            throw ValidationError("--monitor and --window exclude each other; leave one of them out.")
        }
    }

    /// The first of these options that was given; `nil` if none was.
    var given: String? {
        let options = [
            ("--display", display != nil), ("--monitor", monitor != nil), ("--window", window != nil),
            ("--no-cursor", noCursor),
        ]
        return options.first { $0.1 }?.0
    }

    private var target: ScreenTarget {
        window.map { ScreenTarget.window($0) } ?? monitor.map { .monitor($0) } ?? .screen
    }

    /// The source, which is not started.
    ///
    /// - Throws: `ScreenError` if it could not be started now.
    func makeSource(_ request: VideoFormatRequest) throws -> ScreenSource {
        try ScreenSource.check(target, display: display)
        return ScreenSource(target: target, display: display, showsCursor: !noCursor, request: request)
    }
}
