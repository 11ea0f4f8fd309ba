import Glibc
import MediaCore
import MediaFiles
import SyntheticSources
import TestSupport
import TestTools
import Testing
import Threading
import WebSockets

@Suite("The programs together", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramTests {
    let server: ServerProgram
    let directory: TemporaryDirectory

    init() async throws {
        server = try await ServerProgram()
        directory = try TemporaryDirectory()
    }

    // SIGQUIT printed that the program had crashed, and did not end it. SIGHUP ended it without a summary.
    @Test(
        "Ctrl-C, SIGTERM, SIGQUIT and SIGHUP end publisher, subscriber and server with a summary and 0",
        arguments: [SIGINT, SIGTERM, SIGQUIT, SIGHUP]
    )
    func signals(signal: Int32) async throws {
        let publisher = try await server.publisher(["--identity", "robot"])
        let subscriber = try await server.subscriber(["--dump", directory.path])
        let dump = try await recorded(20, in: directory.path)
        #expect(try await end([subscriber, publisher], with: signal) == [.exit(0), .exit(0)])
        #expect(subscriber.errors == "" && publisher.errors == "")
        #expect(publisher.lines.last?.contains(" captured, ") == true, "\(publisher.text)")
        #expect(subscriber.text.contains("robot/pattern: "), "\(subscriber.text)")
        #expect(subscriber.text.contains("-> \(dump).webm"), "\(subscriber.text)")
        #expect(!(subscriber.text + publisher.text).contains(", 1 keyframes"), "\(subscriber.text)")
        #expect(try await end([server.program], with: signal) == [.exit(0)])
        let (ending, events, _) = try await verify(directory.path)
        #expect(ending == .exit(0))
        #expect(try #require(events.last).number("frames") ?? 0 >= 20)
        #expect(try DumpReading("\(dump).webm").faults == [])
    }

    @Test(
        "When the server is killed or leaves, both clients end with 69 and keep what they have",
        arguments: [SIGKILL, SIGTERM]
    )
    func serverGone(signal: Int32) async throws {
        let publisher = try await server.publisher()
        let subscriber = try await server.subscriber(["--dump", directory.path])
        let dump = try await recorded(10, in: directory.path)
        server.program.send(signal)
        #expect(try await publisher.end() == .exit(69))
        #expect(try await subscriber.end() == .exit(69))
        for program in [publisher, subscriber] {
            #expect(program.errors.hasPrefix("room-client: "), "\(program.errors)")
        }
        #expect(publisher.text.contains(" captured, "), "a summary all the same")
        #expect(try DumpReading("\(dump).webm").faults == [])
    }

    @Test("A second program of the same identity ends the first with 76")
    func duplicateIdentity() async throws {
        let first = try await server.publisher(["--identity", "twin"])
        let second = try await server.publisher(["--identity", "twin"])
        #expect(try await first.end() == .exit(76))
        #expect(first.errors.contains("identity \"twin\"") && first.errors.contains("--identity"), "\(first.errors)")
        #expect(try await end([second], with: SIGINT) == [.exit(0)])
    }

    // It was 76, after which the unit of the README does not start the client again.
    @Test("A client that a server refuses for now, because it is at its limit, ends with 69")
    func serverAtItsLimit() async throws {
        try store(Array("{\"maximumRooms\": 1}".utf8), at: directory("room.json"))
        let server = try await ServerProgram(["--config", directory("room.json")])
        let first = try await server.publisher()
        let second = try server.client("subscribe", ["--room", "other"])
        #expect(try await second.end() == .exit(69))
        #expect(second.errors.contains("the server has 1 room, its limit. Try again in a moment."), "\(second.errors)")
        #expect(try await end([first], with: SIGINT) == [.exit(0)])
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    @Test("A snapshot is the newest picture, with a dump or without")
    func snapshot() async throws {
        let publisher = try await server.publisher()
        let path = directory("now.png")
        let subscriber = try server.client("subscribe", ["--snapshot", path, "--duration", "5"])
        #expect(try await subscriber.end() == .exit(0))
        #expect(subscriber.errors == "room-client: The newest picture is in \(path).\n")
        let player = try Program(
            "ffprobe",
            ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path]
        )
        #expect(try await player.end() == .exit(0))
        #expect(player.text == "320,180\n")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    @Test("A snapshot is the newest picture at the end, and not the first one")
    func newestSnapshot() async throws {
        let publisher = try await server.publisher()
        let subscriber = try server.client("subscribe", ["--snapshot", directory("now.png"), "--duration", "6"])
        try await subscriber.says("Receiving")
        let begun = MonotonicClock.now
        #expect(try await subscriber.end() == .exit(0))
        let options = ["-v", "error", "-i", directory("now.png"), "-pix_fmt", "yuv420p", directory("now.y4m")]
        let reading = try Program("ffmpeg", options)
        #expect(try await reading.end() == .exit(0), "\(reading.errors)")
        let reader = try Y4MReader(path: directory("now.y4m"))
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        try #require(try reader.readFrame(into: buffer))
        guard case .value(let barcode) = Barcode.read(from: buffer) else { throw TestFailure("no barcode") }
        #expect(barcode.timestamp > begun + .seconds(1), "\(barcode.timestamp) \(begun)")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    @Test("A snapshot without a picture ends with 69 and a word, and leaves what is there")
    func noSnapshot() async throws {
        try store([1, 2], at: directory("old.png"))
        for name in ["new.png", "old.png"] {
            let subscriber = try server.client(
                "subscribe",
                ["--snapshot", directory(name), "--duration", "0.2", "--room", "nobody"]
            )
            #expect(try await subscriber.end() == .exit(69))
            #expect(subscriber.errors.contains("No picture came for \(directory(name))"), "\(subscriber.errors)")
            #expect(subscriber.text.contains("No track was received."), "a summary all the same")
        }
        #expect(directory.names == ["old.png"])
        #expect(try bytes(of: directory("old.png")) == [1, 2])
    }

    @Test("A publisher whose summary is lost ends with 74")
    func lostSummary() async throws {
        let client = Program.path(of: "room-client")
        let options = "--url \(server.url) --room r --source pattern --duration 0.2"
        let publisher = try Program("sh", ["-c", "exec \(client) connect \(options) > /dev/full"])
        #expect(try await publisher.end() == .exit(74))
        #expect(publisher.errors.contains("standard output"), "\(publisher.errors)")
    }

    @Test("A subscriber that waits for tracks is told after a second why there are none")
    func waiting() async throws {
        let early = try server.client("subscribe")
        try await early.says("Nobody publishes in stage yet; waiting.")
        let publisher = try await server.publisher(["--identity", "one"])
        try await early.says("Receiving")
        let picky = try server.client("subscribe", ["--track", "lefft"])
        try await picky.says("No track matches --track lefft yet; waiting. There are: one/pattern.")
        #expect(try await end([early, picky, publisher], with: SIGINT) == [.exit(0), .exit(0), .exit(0)])
        #expect(early.text.split(separator: "waiting.").count == 2, "once")
    }

    @Test("A duration ends publisher and subscriber by itself")
    func duration() async throws {
        let publisher = try server.client("connect", ["--source", "noise", "--duration", "0.5", "--json"])
        let subscriber = try server.client("subscribe", ["--duration", "0.5"])
        #expect(try await publisher.end() == .exit(0))
        #expect(try await subscriber.end() == .exit(0))
        let published = try publisher.events().first { $0.string("event") == "published" }
        #expect(published?.number("width") == 160, "noise of the usual size would hardly pass")
    }

    @Test("A program that ends takes its leave of the server, instead of being cut off")
    func leave() async throws {
        for _ in 0..<5 {
            let scripted = try ScriptedServer()
            let client = try Program(
                "room-client",
                ["subscribe", "--room", "stage", "--url", scripted.url, "--duration", "0.05"]
            )
            #expect(try await client.end() == .exit(0))
            let peer = try await scripted.peer()
            let closure = try await eventual("the connection ends") { peer.closure }
            #expect(closure == .byPeer(code: 1000, reason: "left"))
            #expect(peer.texts.last?.contains("\"leave\"") == true)
            scripted.stop()
        }
    }
}
