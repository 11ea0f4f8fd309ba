import ArgumentParser
import Foundation
import RoomKit

/// The options of every command that joins a room: the server, the room and the identity.
struct ConnectionOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The server; default $ROOM_URL, else ws://127.0.0.1:8480.", valueName: "ws://host:port"))
    var url: String?

    @Option(help: "The room to join; the server creates it for its first participant.")
    var room: String

    @Option(help: "The name to join under; default this machine's name with four random characters.")
    var identity: String?

    @Option(help: "The access token; default $ROOM_TOKEN.")
    var token: String?

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    @Flag(help: "Also report who joins and leaves and, with --json, a status every second.")
    var verbose = false

    func validate() throws {
        guard !room.isEmpty else { throw ValidationError("--room needs a name, such as --room my-room.") }
        guard identity?.isEmpty != true else { throw ValidationError("--identity needs a name, or leave it out.") }
    }

    /// The options for `RoomClient.connect`.
    var connectOptions: ConnectOptions {
        var options = ConnectOptions(roomName: room)
        let environment = ProcessInfo.processInfo.environment
        // Many scripts set a variable to the empty string to say that it has no value.
        let variable = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let url = url ?? variable("ROOM_URL") { options.url = url }
        if let identity { options.identity = identity }
        options.accessToken = token ?? variable("ROOM_TOKEN")
        options.clientName = "room-client/\(roomKitVersion)"
        return options
    }
}
