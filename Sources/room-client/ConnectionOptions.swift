import ArgumentParser
import ClientCommandLine
import RoomKit

/// The options of every command that joins a room: the server, the room and the identity, and how to report.
struct ConnectionOptions: ParsableArguments {
    @OptionGroup var joining: JoiningOptions

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    @Flag(help: "Also report who joins and leaves and, with --json, a status every second.")
    var verbose = false

    /// The options for `RoomClient.connect`.
    var connectOptions: ConnectOptions { joining.connectOptions(for: "room-client") }
}
