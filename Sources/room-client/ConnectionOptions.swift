import ArgumentParser
import Foundation
import RoomKit

/// Where to connect and as whom: the options of every command that joins a room.
struct ConnectionOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The server; default $ROOM_URL, else ws://127.0.0.1:8480.", valueName: "ws://host:port"))
    var url: String?

    @Option(help: "The room to join; it comes into being with its first participant.")
    var room: String

    @Option(help: "Who joins; default this machine's name with four random characters.")
    var identity: String?

    @Option(help: "The access token; default $ROOM_TOKEN.")
    var token: String?

    @Flag(help: "Write one JSON object a line instead of text for people.")
    var json = false

    @Flag(help: "Also tell who joins and leaves and, with --json, how it goes each second.")
    var verbose = false

    func validate() throws {
        guard !room.isEmpty else { throw ValidationError("--room needs a name, such as --room my-room.") }
        guard identity?.isEmpty != true else { throw ValidationError("--identity needs a name, or leave it out.") }
    }

    /// What to connect with.
    var connectOptions: ConnectOptions {
        var options = ConnectOptions(roomName: room)
        let environment = ProcessInfo.processInfo.environment
        // An empty variable is how many a script says that there is none.
        let variable = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let url = url ?? variable("ROOM_URL") { options.url = url }
        if let identity { options.identity = identity }
        options.accessToken = token ?? variable("ROOM_TOKEN")
        options.clientName = "room-client/\(roomKitVersion)"
        return options
    }
}
