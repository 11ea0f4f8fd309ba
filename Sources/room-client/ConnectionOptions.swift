import ArgumentParser
import Foundation
import RoomKit
import RoomProtocol

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
        try checkName(room, of: "--room")
        try checkName(identity, of: "--identity")
    }

    /// The options for `RoomClient.connect`.
    var connectOptions: ConnectOptions {
        var options = ConnectOptions(roomName: room)
        let environment = ProcessInfo.processInfo.environment
        // Many scripts set a variable to the empty string to say that it has no value.
        let variable = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let url { options.url = url }
        if let identity { options.identity = identity }
        options.accessToken = token ?? variable("ROOM_TOKEN")
        options.clientName = "room-client/\(roomKitVersion)"
        return options
    }
}

/// Checks a name against the rule of every server, so that an unusable one is refused before anything is connected.
func checkName(_ name: String?, of option: String) throws {
    guard let name, let problem = WireFormat.problem(withName: name) else { return }
    let advice = name.isEmpty ? "give a name, such as \(option) my-name" : "choose another name"
    throw ValidationError("The value of \(option) \(problem); \(advice).")
}
