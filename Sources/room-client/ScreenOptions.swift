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
            "Show one window, by number or title, without what covers it; devices --screens lists them.",
            valueName: "window"
        ),
        transform: { try GivenText.read($0).text }
    )
    var window: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Show a rectangle of the screen, such as 640x480+100+50: its size, and its place from the upper left corner.",
            valueName: "WxH+X+Y"
        ),
        transform: { try ScreenRegion.read($0) }
    )
    var region: ScreenRegion?

    @Flag(help: "Leave the cursor out of the picture of a screen.")
    var noCursor = false

    func validate() throws {
        let targets = [("--monitor", monitor != nil), ("--window", window != nil), ("--region", region != nil)]
        let given = targets.filter { $0.1 }.map(\.0)
        guard given.count < 2 else {
            throw ValidationError("\(given[0]) and \(given[1]) exclude each other; leave one of them out.")
        }
    }

    /// The first of these options that was given; `nil` if none was.
    var given: String? {
        let options = [
            ("--display", display != nil), ("--monitor", monitor != nil), ("--window", window != nil),
            ("--region", region != nil), ("--no-cursor", noCursor),
        ]
        return options.first { $0.1 }?.0
    }

    private var target: ScreenTarget {
        window.map { ScreenTarget.window($0) } ?? monitor.map { .monitor($0) } ?? region.map { .region($0) } ?? .screen
    }

    /// The source, which is not started.
    ///
    /// - Throws: `ScreenError` if it could not be started now.
    func makeSource(_ request: VideoFormatRequest) throws -> ScreenSource {
        try ScreenSource.check(target, display: display)
        return ScreenSource(target: target, display: display, showsCursor: !noCursor, request: request)
    }
}
