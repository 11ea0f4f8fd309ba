import ArgumentParser
import Foundation
import Testing

@testable import room_client

/// The commands of the pages and of the help screens are ones that the program takes.
@Suite("Documented commands")
struct DocumentedCommandTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The arguments of each `room-client` command that is a line of code, or a cell of a table.
    private static func commands(in text: String) -> [[String]] {
        var pieces: [Substring] = []
        for line in text.replacing("\\\n", with: " ").split(separator: "\n") {
            if line.hasPrefix("|") {
                pieces += line.matches(of: /`(room-client [^`]+ -[^`]+)`/).map { $0.1 }
            } else {
                let code = line[..<(line.firstRange(of: "  #")?.lowerBound ?? line.endIndex)]
                pieces += code.split(separator: "|")
            }
        }
        return pieces.map { words(of: $0) }
            .filter { $0.first?.hasSuffix("room-client") == true }
            .map { Array($0.dropFirst()) }
    }

    /// Splits a command as a shell does, as far as the pages need it.
    private static func words(of command: Substring) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        for character in command {
            if character == "\"" {
                isQuoted.toggle()
                word = word ?? ""
            } else if character == " ", !isQuoted {
                if let word { words.append(word) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        return words + (word.map { [$0] } ?? [])
    }

    private func expectTaken(_ commands: [[String]], _ place: String) {
        for command in commands {
            // A preview needs a terminal, which a test has not.
            let arguments = command.filter { $0 != "--preview" }
            #expect(throws: Never.self, "\(place): \(command)") { _ = try RoomClientCommand.parseAsRoot(arguments) }
        }
    }

    @Test("On each page", arguments: [("README.md", 20), ("docs/parity.md", 5), ("docs/migration.md", 3)])
    func page(path: String, least: Int) throws {
        let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
        let commands = Self.commands(in: text)
        #expect(commands.count >= least, "\(commands)")
        expectTaken(commands, path)
    }

    @Test("On each help screen")
    func help() {
        for command in RoomClientCommand.configuration.subcommands {
            let examples = Self.commands(in: command.configuration.discussion)
            #expect(!examples.isEmpty, "\(command)")
            expectTaken(examples, "\(command)")
        }
    }
}
