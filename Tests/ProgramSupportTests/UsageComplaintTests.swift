import ArgumentParser
import ProgramSupport
import Testing

@Suite("What a program says about its arguments")
struct UsageComplaintTests {
    private struct Program: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "program", version: "1.0.0")
        @Option var size: Int
    }

    @Test("Arguments that cannot be used are a sentence; a help screen, a version and a code are none")
    func which() throws {
        func run(_ argument: String...) throws {
            var command = try Program.parseAsRoot(argument)
            try command.run()
        }
        let unusable = #expect(throws: (any Error).self) { try run("--size", "x") }
        let complaint = UsageComplaint.about(try #require(unusable), from: Program.self)
        #expect(complaint?.code == 64)
        #expect(complaint?.sentence.contains("'x' is invalid for '--size <size>'") == true)
        #expect(complaint?.sentence.hasSuffix("See 'program --help' for more information.") == true)
        for argument in ["--help", "--version"] {
            let error = #expect(throws: (any Error).self) { try run(argument) }
            #expect(UsageComplaint.about(try #require(error), from: Program.self) == nil)
        }
        #expect(UsageComplaint.about(ExitCode(64), from: Program.self) == nil)
        #expect(UsageComplaint.about(CancellationError(), from: Program.self) == nil)
    }

    // The parser suggests the nearest option, and --url was the nearest to --dump.
    @Test("A suggestion stays only if it is near")
    func suggestion() {
        let screen = "Error: no matter\nUsage: room-client …\n  See 'room-client view --help' for more information."
        let advice = "See 'room-client view --help' for more information."
        let cases = [
            ("Unknown option '--dump'. Did you mean '--url'?", "Unknown option '--dump'."),
            ("Unknown option '--sise'. Did you mean '--size'?", "Unknown option '--sise'. Did you mean '--size'?"),
            ("Unexpected argument 'x'", "Unexpected argument 'x'."),
        ]
        for (problem, sentence) in cases {
            #expect(UsageComplaint.sentence(problem: problem, screen: screen) == "\(sentence) \(advice)")
        }
    }
}
