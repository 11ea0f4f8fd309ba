import Glibc
import TestSupport
import TestTools
import Testing

@Suite("Programs that show pictures", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramShowingTests {
    let directory: TemporaryDirectory
    let server: ServerProgram

    init() async throws {
        directory = try TemporaryDirectory()
        server = try await ServerProgram()
    }

    /// Runs a command of the client in a terminal of its own, which answers no question.
    private func onTerminal(_ command: String) throws -> Program {
        let client = Program.path(of: "room-client")
        return try Program("script", ["-qec", "\(client) \(command) --url \(server.url) --room stage", "/dev/null"])
    }

    @Test("A preview takes the terminal over, draws half blocks with a status, and gives the terminal back")
    func preview() async throws {
        let publisher = try await server.publisher()
        let preview = try onTerminal("subscribe --preview --duration 5")
        #expect(try await preview.end() == .exit(0))
        let text = preview.text
        let begin = try #require(text.firstRange(of: "\u{1B}[?1049h"))
        let end = try #require(text.firstRange(of: "\u{1B}[?1049l"))
        let shown = text[begin.upperBound..<end.lowerBound]
        #expect(text[..<begin.lowerBound].contains("\u{1B}[c"), "the terminal is asked")
        #expect(shown.contains("\u{2580}\u{1B}[") && shown.contains("\u{1B}[38;2;") && shown.contains(" fps"))
        #expect(text[end.upperBound...].contains("frames received"), "the summary comes after the picture")
        #expect(try await self.end([publisher], with: SIGINT) == [.exit(0)])
    }

    @Test("A piped input is not asked about the terminal")
    func pipedInput() async throws {
        let publisher = try await server.publisher()
        let client = Program.path(of: "room-client")
        let options = "--source pattern --preview --duration 5 --url \(server.url) --room stage"
        let command = "\(client) connect \(options) </dev/null"
        let preview = try Program("script", ["-qec", command, "/dev/null"])
        #expect(try await preview.end() == .exit(0))
        #expect(!preview.text.contains("\u{1B}[c") && preview.text.contains("\u{2580}"))
        #expect(preview.text.contains("\u{1B}[?1049l"))
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    private func end(_ programs: [Program], with signal: Int32) async throws -> [Program.Ending] {
        try await TestSupport.end(programs, with: signal)
    }

    @Test("The end of the session gives the terminal back, and the error comes after")
    func previewError() async throws {
        let publisher = try await server.publisher()
        let preview = try onTerminal("subscribe --preview")
        try await preview.says("\u{2580}")
        server.program.send(SIGKILL)
        #expect(try await preview.end() == .exit(69))
        let end = try #require(preview.text.firstRange(of: "\u{1B}[?1049l"))
        #expect(preview.text[end.upperBound...].contains("room-client: "))
        _ = try await publisher.end()
    }
}
