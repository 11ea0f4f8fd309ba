import ArgumentParser
import ClientCommandLine
import Glibc
import ProgramSupport
import RoomKit
import Wording

/// The room client's commands.
@main
struct RoomClientCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-client",
        abstract: "Publishes a camera to a room, and receives what others publish.",
        usage: "room-client <command> [<options>]",
        discussion: """
            In three terminals:

              room-server
              room-client connect --room my-room
              room-client subscribe --room my-room --dump out

            And to see it in a window: room-client view --room my-room

            If something does not work: room-client doctor

            \(ExitStatus.table)
            """,
        version: roomKitVersion,
        subcommands: [
            ConnectCommand.self, SubscribeCommand.self, ViewCommand.self, DevicesCommand.self, VerifyCommand.self,
            DoctorCommand.self, AdaptCommand.self,
        ]
    )

    /// Runs the program.
    static func main() async {
        StandardStreams.openMissing()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if let problem = RawArguments.problem { throw ValidationError(problem) }
            try checkCommands(arguments)
            try checkSources(arguments)
            var command = try await asyncParseAsRoot(arguments)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            let error = JoiningOptions.clearest(error, of: arguments, at: 1, for: self)
            end(with: error, isJSON: arguments.contains("--json"))
        }
    }

    /// Ends the program with a help screen, with a code alone, or with a sentence about unusable arguments.
    private static func end(with error: any Error, isJSON: Bool) -> Never {
        guard let complaint = UsageComplaint.about(error, from: self) else { exit(withError: error) }
        Reporter(isJSON: isJSON).reportFailure(FailureEvent(complaint.sentence))
        Glibc.exit(complaint.code)
    }
}

extension RoomClientCommand {
    /// What other programs call the commands.
    private static let otherNames = [
        "publish": "connect", "join": "connect", "send": "connect", "stream": "connect", "pub": "connect",
        "receive": "subscribe", "record": "subscribe", "sub": "subscribe",
        "watch": "view", "play": "view", "show": "view", "window": "view",
        "list": "devices", "cameras": "devices", "check": "verify",
        "diagnose": "doctor", "test": "doctor", "ping": "doctor", "speedtest": "doctor",
    ]

    /// Checks that the words before the first option are commands, also after `help`.
    ///
    /// The argument parser would complain about the first option that comes after them, and show some help for what
    /// comes after `help`.
    private static func checkCommands(_ arguments: [String]) throws {
        let words = arguments.prefix { !$0.hasPrefix("-") }.drop { $0 == "help" }
        var (known, command): ([String], any ParsableCommand.Type) = ([], self)
        for word in words {
            let commands = command.configuration.subcommands
            guard !commands.isEmpty else { return }
            guard let next = commands.first(where: { $0._commandName == word }) else {
                throw ValidationError(advice(on: word, after: known, of: commands.map { $0._commandName }))
            }
            (known, command) = (known + [word], next)
        }
    }

    /// Checks that there is one source at most: of several, the argument parser would take the last without a word.
    private static func checkSources(_ arguments: [String]) throws {
        guard arguments.count(where: { $0 == "--source" || $0.hasPrefix("--source=") }) > 1 else { return }
        throw ValidationError(
            arguments.first == "doctor"
                ? "--source is given more than once: doctor captures from one source; run it once for each."
                : "--source is given more than once: one program publishes one source; run another in the same room."
        )
    }

    /// The sentence about a word that is none of `commands`, which can follow the commands `known`.
    private static func advice(on word: String, after known: [String], of commands: [String]) -> String {
        let other = known.isEmpty ? otherNames[word.lowercased()] : nil
        let meant = other ?? Spelling.nearest(to: word, among: commands)
        let whole = { (last: String) in (known + [last]).joined(separator: " ") }
        let advice = meant.map { "did you mean \(whole($0))?" } ?? "say \(list(of: commands.map(whole)))."
        return "There is no command \"\(whole(word))\"; \(advice)"
    }

    private static func list(of words: [String]) -> String {
        words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    }
}
