package import ArgumentParser

/// The options of everything that opens a window: which tracks it shows, and for how long.
package struct ViewingOptions: ParsableArguments {
    /// The participant whose tracks are shown, by identity or id; `nil` for all.
    @Option(help: "Only tracks of this participant (identity or id).")
    package var participant: String?

    /// The tracks that are shown, by name or id; `nil` for all.
    @Option(help: "Only tracks of this name or id.")
    package var track: String?

    /// After what time the window closes by itself; `nil` for never.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Close the window after this many seconds.", valueName: "seconds"),
        transform: { try Seconds.read($0) }
    )
    package var duration: Seconds?

    /// Whether the window begins as large as the screen.
    @Flag(help: "Begin with a window as large as the screen.")
    package var fullScreen = false

    /// Whether every track is received at its full size, however small its tile.
    @Flag(help: "Receive every track at its full size, however small its tile; hidden ones too.")
    package var fullSize = false

    /// Creates options to be filled in.
    package init() {}

    /// Checks the names.
    package func validate() throws {
        for (name, option) in [(participant, "--participant"), (track, "--track")] where name?.isEmpty == true {
            throw ValidationError("\(option) needs a name; leave it out to show everything.")
        }
    }

    /// Options as arguments of another program.
    package static func arguments(
        participant: String?,
        track: String?,
        duration: Seconds?,
        isFullScreen: Bool,
        atFullSize: Bool
    ) -> [String] {
        let seconds = duration.map { "\(Double($0.duration / .milliseconds(1)) / 1000)" }
        let values = [("--participant", participant), ("--track", track), ("--duration", seconds)]
        let arguments = values.flatMap { name, value in value.map { ["\(name)=\($0)"] } ?? [] }
        return arguments + (isFullScreen ? ["--full-screen"] : []) + (atFullSize ? ["--full-size"] : [])
    }
}
