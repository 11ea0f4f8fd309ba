import Glibc
import MediaCore
import TestSupport
import TestTools
import Testing

@Suite("The doctor", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramDoctorTests {
    /// What it writes with everything that this machine has: a server and a screen.
    static func events(of server: ServerProgram) async throws -> [JSONObject] {
        let screen = try await XServer(Dimensions(width: 320, height: 200))
        let arguments = ["--json", "--seconds", "5", "--source", "screen", "--display", screen.display]
        let program = try Program("room-client", ["doctor", "--url", server.url] + arguments)
        let ending = try await program.end()
        let events = try program.events()
        let problems = events.filter { $0.string("level") == "problem" }
        #expect(ending == .exit(problems.isEmpty ? 0 : 1), "\(events)")
        return events
    }

    @Test("It examines every part in order, and sums up")
    func everything() async throws {
        let server = try await ServerProgram()
        let events = try await Self.events(of: server)
        let parts = events.compactMap { $0.string("check") }
        var order: [String] = []
        for part in parts where order.last != part { order.append(part) }
        #expect(order == ["cameras", "screen", "libraries", "encoder", "limits", "server", "clock", "network"])
        let summary = try #require(events.last)
        #expect(summary.string("event") == "summary" && summary.fields["complete"] == .bool(true))
        #expect(summary.object("server")?.string("version")?.hasPrefix("room-server/") == true)
        #expect(summary.object("capture")?.number("width") == 320)
        #expect(summary.objects("encodings").count == 2 && summary.object("network")?.number("upBitrate") != nil)
    }

    @Test("A problem ends it with 1, and says what to do, within the columns of a terminal")
    func problem() async throws {
        let port = try SilentServer().port
        let program = try Program("room-client", ["doctor", "--url", "ws://127.0.0.1:\(port)", "--only", "server"])
        #expect(try await program.end() == .exit(1))
        #expect(program.lines.first == "problem server    nothing listens at 127.0.0.1:\(port)", "\(program.text)")
        #expect(program.lines[1].hasPrefix("                  -> start one: room-server"), "\(program.text)")
        #expect(program.lines.last == "1 problem." && program.lines.allSatisfy { $0.count <= 80 })
    }

    @Test("Ctrl-C ends it in the middle of a measurement, and it leaves the server")
    func interrupted() async throws {
        let server = try await ServerProgram()
        let arguments = ["--only", "server,network", "--seconds", "100"]
        let program = try Program("room-client", ["doctor", "--url", server.url] + arguments)
        try await program.says("room-server/")
        try await eventually("it publishes") { server.program.errors.contains(" published ") }
        #expect(try await end([program], with: SIGINT) == [.exit(0)])
        #expect(program.lines.last?.hasSuffix("Stopped before the end.") == true, "\(program.text)")
    }

    @Test(
        "Options that cannot be used are refused with what to do",
        arguments: [
            (["--only", "camera"], "cameras, screen"), (["--seconds", "4"], "5 to 120"),
            (["--source", "pattern"], "camera or screen"), (["--device", "0", "--source", "screen"], "--device"),
            (["--only", "server", "--skip", "server"], "nothing to look at"),
            (["--only", "server", "--device", "2"], "--device is for cameras"),
            (["--skip", "network", "--seconds", "9"], "--seconds is for network"),
            (["--source", "camera", "--source", "screen"], "doctor captures from one source"),
            (["--size", "16383x16383"], "more pixels than can be published"),
        ]
    )
    func mistakes(arguments: [String], advice: String) async throws {
        let program = try Program("room-client", ["doctor"] + arguments, areLeaksSought: false)
        #expect(try await program.end() == .exit(64))
        #expect(program.errors.contains(advice), "\(program.errors)")
    }
}
