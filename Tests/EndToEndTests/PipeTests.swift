import Glibc
import MediaCore
import RoomProtocol
import TestSupport
import TestTools
import Testing

@Suite("Programs that pipe pictures", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramPipeTests {
    let directory: TemporaryDirectory
    let server: ServerProgram

    init() async throws {
        directory = try TemporaryDirectory()
        server = try await ServerProgram()
    }

    /// A shell that runs a subscriber whose pictures go to `reader`; the subscriber's exit code goes to a file.
    private func pipeline(_ options: String, into reader: String) throws -> Program {
        let client = Program.path(of: "room-client")
        let common = "--url \(server.url) --room stage --dump -"
        let subscriber = "\(client) subscribe \(common) \(options) 2>\(directory("log"))"
        return try Program("sh", ["-c", "{ \(subscriber); echo $? >\(directory("code")); } | \(reader)"])
    }

    private func text(_ name: String) throws -> String {
        try TestTools.text(of: directory(name))
    }

    @Test("Pictures of one track go to a reader, and everything else to standard error", arguments: ["y4m", "raw"])
    func piped(format: String) async throws {
        let publishers = [
            try await server.publisher(),
            try await server.publisher(["--track-name", "other", "--size", "160x90"]),
        ]
        let input = format == "raw" ? "-f rawvideo -pixel_format yuv420p -video_size 320x180" : "-f yuv4mpegpipe"
        let count = "-count_frames -show_entries stream=width,height,nb_read_frames -of csv=p=0"
        let options = "--participant \(try await identity(of: publishers[0])) --format \(format) --duration 5 --json"
        let reader = try pipeline(options, into: "ffprobe -v error \(input) \(count) -")
        #expect(try await reader.end() == .exit(0))
        let fields = reader.text.split { $0 == "," || $0 == "\n" }.compactMap { Int($0) }
        #expect(fields.prefix(2) == [320, 180] && fields.last ?? 0 >= 2, "\(reader.text)")
        #expect(try text("code") == "0\n")
        let log = try text("log")
        #expect(log.contains("\"event\":\"trackSubscribed\"") && log.contains("pictures of 320x180 went to standard"))
        #expect(try await end(publishers, with: SIGINT) == [.exit(0), .exit(0)])
    }

    private func identity(of publisher: Program) async throws -> String {
        let words = try await eventual("it has joined") { publisher.text.firstRange(of: "Joined stage as ") }
        return String(publisher.text[words.upperBound...].prefix { $0 != "." && $0 != "\n" })
    }

    // What the pipe had no room for was lost in the middle of a line, and the program ended with 74.
    @Test("Events all arrive through a small pipe that another program made non-blocking, and that is read late")
    func nonBlocking() async throws {
        let publisher = try await server.publisher()
        // 1031 is F_SETPIPE_SZ (linux/fcntl.h).
        let shrink = "fcntl.fcntl(1, 1031, 4096); fcntl.fcntl(1, fcntl.F_SETFL, os.O_WRONLY | os.O_NONBLOCK)"
        let python = "import fcntl, os, sys; \(shrink); os.execv(sys.argv[1], sys.argv[1:])"
        let options = "--url \(server.url) --room stage --json --status-interval 0.1 --duration 6"
        let client = "python3 -c '\(python)' \(Program.path(of: "room-client")) subscribe \(options)"
        let subscriber = try Program("sh", ["-c", "{ \(client); echo $? >\(directory("code")); } | { sleep 2; cat; }"])
        #expect(try await subscriber.end() == .exit(0))
        #expect(try text("code") == "0\n" && subscriber.errors == "", "\(subscriber.errors)")
        let events = try subscriber.events()
        #expect(events.count > 10 && events.last?.string("event") == "summary")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    // The first kept the pipe, to which nothing more was written, without a word; two such tracks were tried in turn.
    @Test("If the first tracks cannot be decoded, another one goes to the pipe")
    func undecodable() async throws {
        let aliases: [String: UInt32] = ["TR_theirs": 7, "TR_bad": 8, "TR_good": 9]
        let scripted = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join(let join):
                var answer = ScriptedServer.joined(join)
                for id in ["TR_bad", "TR_good"] {
                    var other = ScriptedServer.theirTrack
                    (other.id, other.alias) = (id, aliases[id] ?? 0)
                    answer.participants[0].tracks.append(other)
                }
                peer.tell(.joined(answer))
            case .subscribe(let request):
                let alias = aliases[request.trackId] ?? 0
                peer.tell(.subscribed(Subscribed(trackId: request.trackId, alias: alias, catchUpThrough: nil)))
                guard alias < 9 else { return }
                // A keyframe of 7680x4320 pixels (RFC 6386, section 9.1).
                let header: [UInt8] = [0x10, 2, 0, 0x9D, 1, 0x2A, 0, 0x1E, 0xE0, 0x10]
                let large = header + [UInt8](repeating: 7, count: 100)
                for packet in makeVideoPackets(alias: alias, number: 0, payload: large) { peer.send(packet) }
            default: break
            }
        }
        defer { scripted.stop() }
        let client = Program.path(of: "room-client")
        let options = "--url \(scripted.url) --room stage --dump - --format raw"
        let size = testSize.width * testSize.height * 3 / 2
        let script = "\(client) subscribe \(options) 2>\(directory("log")) | head -c \(size) | wc -c"
        let reader = try Program("sh", ["-c", script])
        let peer = try await scripted.peer()
        try await eventually("the third is asked for") {
            peer.texts.contains { $0.contains("\"subscribe\"") && $0.contains("TR_good") }
        }
        var pattern = try EncodedPattern(alias: 9)
        // A busy machine shows some of them too late.
        for _ in 0..<600 where reader.isRunning {
            for packet in try pattern.next() { peer.send(packet) }
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(try await reader.end() == .exit(0))
        let log = try text("log")
        #expect(Int(reader.text.prefix { $0.isNumber }) == size, "\(reader.text), \(log)")
        #expect(peer.texts.count { $0.contains("\"subscribe\"") } == 3, "\(log)")
    }

    @Test("A reader that goes ends the subscriber cleanly")
    func readerGone() async throws {
        let publisher = try await server.publisher()
        let reader = try pipeline("--format y4m", into: "head -c 200000 >\(directory("some"))")
        #expect(try await reader.end() == .exit(0))
        #expect(try text("code") == "0\n")
        #expect(try text("log").contains("went to standard output"))
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    @Test("A reader that stops reading misses pictures, and neither the track nor the end waits for it")
    func stoppedReader() async throws {
        let publisher = try await server.publisher()
        // It ends after the subscriber, and reads nothing.
        let waiting = "while [ ! -s \(directory("code")) ]; do sleep 0.1; done"
        let reader = try pipeline("--format raw --duration 6 --json", into: "(\(waiting))")
        #expect(try await reader.end() == .exit(0))
        #expect(try text("code") == "0\n")
        let log = try text("log")
        let summary = try #require(log.split(separator: "\n").first { $0.contains("\"summary\"") })
        let track = try #require(JSONObject(reading: summary).objects("tracks").first)
        // The pipe has no room for the first picture.
        #expect(track.number("framesDecoded") ?? 0 > 20 && track.number("framesDropped") == 0)
        #expect(log.contains("incomplete"))
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }
}
