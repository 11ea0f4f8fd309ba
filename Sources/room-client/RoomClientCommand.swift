import ArgumentParser
import Glibc
import RoomKit

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

            \(ExitStatus.table)
            """,
        version: roomKitVersion,
        subcommands: [
            ConnectCommand.self, SubscribeCommand.self, ViewCommand.self, DevicesCommand.self, VerifyCommand.self,
            AdaptCommand.self,
        ]
    )

    /// Opens missing standard streams, then runs the program.
    ///
    /// If a standard stream is closed, a socket or file could get its descriptor number, and then the program's output.
    static func main() async {
        var number: Int32
        repeat { number = unsafe open("/dev/null", O_RDWR | O_CLOEXEC) } while (0...STDERR_FILENO).contains(number)
        close(number)
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            try checkCommand(arguments.first)
            var command = try await asyncParseAsRoot(arguments)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            end(with: error, isJSON: arguments.contains("--json"))
        }
    }

    /// Ends the program with a help screen, with a code alone, or with a sentence about unusable arguments.
    private static func end(with error: any Error, isJSON: Bool) -> Never {
        let code = exitCode(for: error)
        guard code == .validationFailure, !(error is ExitCode) else { exit(withError: error) }
        // The library's own text adds the option's help and usage. Its last line names the command for more.
        let problem = message(for: error)
        let advice = fullMessage(for: error, columns: 80).split(separator: "\n").last?.drop { $0 == " " } ?? ""
        let sentence = problem.last.map { ".?!".contains($0) } == true ? problem : "\(problem)."
        Reporter(isJSON: isJSON).reportFailure(FailureEvent(advice.isEmpty ? sentence : "\(sentence) \(advice)"))
        Glibc.exit(code.rawValue)
    }
}

extension RoomClientCommand {
    /// What other programs call the commands.
    private static let otherNames = [
        "publish": "connect", "join": "connect", "send": "connect", "stream": "connect", "pub": "connect",
        "receive": "subscribe", "record": "subscribe", "sub": "subscribe",
        "watch": "view", "play": "view", "show": "view", "window": "view",
        "list": "devices", "cameras": "devices", "check": "verify",
    ]

    /// Checks that the first argument, if it is not an option, is a command.
    ///
    /// The argument parser would complain about the first option that comes after it.
    private static func checkCommand(_ word: String?) throws {
        let commands = configuration.subcommands.compactMap { $0.configuration.commandName }
        guard let word, !word.hasPrefix("-"), !(commands + ["help"]).contains(word) else { return }
        let nearest = commands.min { distance(word, $0) < distance(word, $1) } ?? ""
        let meant = otherNames[word.lowercased()] ?? (distance(word, nearest) <= 2 ? nearest : nil)
        let advice = meant.map { "did you mean \($0)?" } ?? "say \(list(of: commands))."
        throw ValidationError("There is no command \"\(word)\"; \(advice)")
    }

    private static func list(of words: [String]) -> String {
        words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    }

    /// The number of characters to insert, remove or replace to get from one word to another (Levenshtein).
    private static func distance(_ first: String, _ second: String) -> Int {
        // A command is short. What is much longer is no slip of the finger.
        guard first.count <= 32 else { return .max }
        var row = Array(0...second.count)
        for (line, letter) in first.enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for (column, other) in second.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
            }
        }
        return row[second.count]
    }
}
