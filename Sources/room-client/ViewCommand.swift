import ArgumentParser
import ClientCommandLine

/// `room-client view`: shows the tracks of a room in a window of `room-view`.
struct ViewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "view",
        abstract: "Show the tracks of a room in a window.",
        usage: "room-client view --room <room> [<options>]",
        discussion: """
            Examples:
              room-client view --room my-room
              room-client view --room my-room --participant robot-7 --full-screen

            It starts room-view, which it finds beside room-client or else in PATH. Keys: room-view --help

            \(ExitStatus.pointer)
            """
    )

    @OptionGroup var joining: JoiningOptions
    @OptionGroup var viewing: ViewingOptions

    func run() throws {
        let options = ViewingOptions.arguments(
            participant: viewing.participant,
            track: viewing.track,
            duration: viewing.duration,
            isFullScreen: viewing.fullScreen,
            atFullSize: viewing.fullSize
        )
        try WindowProgram.takeOver(with: joining.arguments + options)
    }
}
