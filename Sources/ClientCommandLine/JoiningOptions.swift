package import ArgumentParser
import Foundation
package import RoomKit
import RoomProtocol

/// The options of everything that joins a room: the server, the room and the identity.
package struct JoiningOptions: ParsableArguments {
    /// The server's URL, if it was given.
    @Option(help: ArgumentHelp("The server; default $ROOM_URL, else ws://127.0.0.1:8480.", valueName: "ws://host:port"))
    package var url: String?

    /// The room's name.
    @Option(help: "The room to join; the server creates it for its first participant.")
    package var room: String

    /// The identity, if it was given.
    @Option(help: "The name to join under; default this machine's name with four random characters.")
    package var identity: String?

    /// The access token, if it was given.
    @Option(help: "The access token; default $ROOM_TOKEN.")
    package var token: String?

    /// Creates options to be filled in.
    package init() {}

    /// Checks the names.
    package func validate() throws {
        try checkName(room, of: "--room")
        try checkName(identity, of: "--identity")
    }

    /// The options for `RoomClient.connect` of the program with the given name.
    package func connectOptions(for program: String) -> ConnectOptions {
        Self.connectOptions(url: url, room: room, identity: identity, token: token, for: program)
    }

    /// The options for `RoomClient.connect` with values of these options; `nil` stands for their defaults.
    package static func connectOptions(
        url: String?,
        room: String,
        identity: String? = nil,
        token: String?,
        for program: String
    ) -> ConnectOptions {
        var options = ConnectOptions(roomName: room)
        let environment = ProcessInfo.processInfo.environment
        // Many scripts set a variable to the empty string to say that it has no value.
        let variable = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let url { options.url = url }
        if let identity { options.identity = identity }
        options.accessToken = token ?? variable("ROOM_TOKEN")
        options.clientName = "\(program)/\(roomKitVersion)"
        return options
    }

    /// What is wrong with a command line that lacks `--room`: an option that it misspells or does not have, if there is
    /// one, because that is often the room's.
    ///
    /// - Parameters:
    ///   - error: The error of reading `arguments`.
    ///   - arguments: The command line, without the program.
    ///   - position: Where an option can stand: behind the command.
    ///   - command: The program's main command.
    /// - Returns: The error to report.
    package static func clearest(
        _ error: any Error,
        of arguments: [String],
        at position: Int,
        for command: (some ParsableCommand).Type
    ) -> any Error {
        let isMissing = command.message(for: error).hasPrefix("Missing expected argument '--room")
        guard isMissing, position <= arguments.count else { return error }
        do {
            _ = try command.parseAsRoot(arguments[..<position] + ["--room", "room"] + arguments[position...])
            return error
        } catch let other {
            return command.message(for: other).hasPrefix("Unknown option") ? other : error
        }
    }

    /// The options as arguments of another program.
    package var arguments: [String] {
        let values = [("--url", url), ("--room", room), ("--identity", identity), ("--token", token)]
        return values.flatMap { name, value in value.map { ["\(name)=\($0)"] } ?? [] }
    }
}

/// Checks a name against the rule of every server, so that an unusable one is refused before anything is connected.
package func checkName(_ name: String?, of option: String) throws {
    guard let name, let problem = WireFormat.problem(withName: name) else { return }
    let advice = name.isEmpty ? "give a name, such as \(option) my-name" : "choose another name"
    throw ValidationError("The value of \(option) \(problem); \(advice).")
}
