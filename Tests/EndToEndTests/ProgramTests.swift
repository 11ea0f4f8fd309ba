import FoundationEssentials
import Glibc
import MediaFiles
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import WebSockets

@testable import room_client

@Suite("The programs together", .timeLimit(.minutes(2)))
struct ProgramTests {
    let server: ServerProgram
    let directory: TemporaryDirectory

    init() async throws {
        server = try await ServerProgram()
        directory = try TemporaryDirectory()
    }

    private func verify(_ path: String) async throws -> (ending: Program.Ending, events: [JSONObject]) {
        let program = try Program("room-client", ["verify", path, "--json"])
        return (try await program.end(), try program.events())
    }

    /// What a command writes when the server tells how the network is.
    private func networkEvents(of command: [String]) async throws -> [JSONObject] {
        let server = try ScriptedServer { peer, text in
            ScriptedServer.welcome(peer, text)
            guard case .join? = try? ClientMessage(reading: text) else { return }
            let (theirs, track) = ("PA_theirs", "TR_theirs")
            let off = TrackSwitchedOff(participantId: theirs, trackId: track, reason: "network")
            peer.tell(.trackSwitchedOff(off))
            peer.tell(.trackSwitchedOn(TrackSwitchedOn(participantId: theirs, trackId: track)))
            for (participant, level) in [("PA_nobody", 3), ("PA_own", 2), (theirs, 1)] {
                peer.tell(.networkQuality(NetworkQuality(participantId: participant, level: level)))
            }
        }
        defer { server.stop() }
        let program = try Program("room-client", command + ["--url", server.url, "--room", "stage", "--json"])
        try await program.says("\"level\":1")
        #expect(try await end([program], with: SIGINT) == [.exit(0)])
        let events = try program.events()
        let levels = events.filter { $0.string("event") == "networkQualityChanged" }
        #expect(levels.map { $0.number("level") } == [2, 1])
        #expect(levels.map { $0.string("participantId") } == ["PA_own", "PA_theirs"])
        let switches = events.filter { $0.string("event")?.hasPrefix("trackSwitched") == true }
        #expect(switches.map { $0.string("reason") } == (command[0] == "subscribe" ? ["network", nil] : []))
        return levels + switches
    }

    @Test("Ctrl-C and SIGTERM end publisher, subscriber and server with a summary and 0", arguments: [SIGINT, SIGTERM])
    func signals(signal: Int32) async throws {
        let publisher = try await server.publisher(["--identity", "robot"])
        let subscriber = try await server.subscriber(["--dump", directory.path])
        let dump = try await recorded(20, in: directory.path)
        #expect(try await end([subscriber, publisher], with: signal) == [.exit(0), .exit(0)])
        #expect(subscriber.errors == "" && publisher.errors == "")
        #expect(publisher.lines.last?.contains("frames captured") == true, "\(publisher.text)")
        #expect(subscriber.text.contains("robot/pattern: "), "\(subscriber.text)")
        #expect(subscriber.text.contains("-> \(dump).webm"), "\(subscriber.text)")
        #expect(try await end([server.program], with: signal) == [.exit(0)])
        let (ending, events) = try await verify(directory.path)
        #expect(ending == .exit(0))
        #expect(try #require(events.last).number("frames") ?? 0 >= 20)
        #expect(try DumpReading("\(dump).webm").faults == [])
    }

    @Test("With --json every line is an object with the keys that are promised")
    func json() async throws {
        let publisher = try await server.publisher(["--identity", "robot", "--json", "--verbose"])
        let subscriber = try await server.subscriber(["--json", "--verbose", "--dump", directory.path])
        _ = try await recorded(10, in: directory.path)
        try await subscriber.says("\"tracks\":[{\"")
        let viewer = try server.client("subscribe", ["--identity", "viewer", "--duration", "0.1"])
        #expect(try await viewer.end() == .exit(0))
        try await publisher.says("\"status\"")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        try await subscriber.says("trackUnsubscribed")
        try await subscriber.says("\"participantDisconnected\",\"participant\":\"robot\"")
        #expect(try await end([subscriber], with: SIGINT) == [.exit(0)])
        let published = try publisher.events()
        let received = try subscriber.events()
        #expect(published.map { $0.string("event") }.prefix(2) == ["connected", "published"])
        #expect(published.map { $0.string("event") }.suffix(2) == ["disconnected", "summary"])
        for event in published + received {
            #expect(event.string("time")?.hasSuffix("Z") == true && event.string("time")?.count == 24, "\(event)")
        }
        #expect(published.first?.string("participant") == "robot")
        #expect(published.first?.string("participantId")?.hasPrefix("PA_") == true)
        let irregular = ["status", "recordingEnded", "networkQualityChanged"]
        #expect(
            received.compactMap { $0.string("event") }.filter { !irregular.contains($0) } == [
                "connected", "trackSubscribed", "participantConnected", "participantDisconnected", "trackUnsubscribed",
                "participantDisconnected", "disconnected", "summary",
            ]
        )
        let joined = received.first { $0.string("event") == "participantConnected" }
        #expect(joined?.string("participant") == "viewer")
        #expect(received.first { $0.string("event") == "trackSubscribed" }?.string("participant") == "robot")
        let statuses = received.filter { $0.string("event") == "status" }
        #expect(statuses.allSatisfy { $0.number("interval") == 1 })
        let track = try #require(received.last?.objects("tracks").first)
        #expect(track.string("participant") == "robot" && track.string("track") == "pattern")
        #expect(track.string("clock") == "same-host")
        let (ending, verified) = try await verify(directory.path)
        #expect(ending == .exit(0))
        #expect(verified.map { $0.string("event") } == ["file", "summary"])
        for key in ["frames", "lost", "duplicated", "reordered", "torn", "notSent", "notInFile", "notInLog"] {
            for event in verified { #expect(event.number(key) != nil, "\(key)") }
        }
        #expect(verified.first?.number("frames") == track.number("framesRecorded"))
        let failed = try await verify(directory("none.webm"))
        #expect(failed.ending == .exit(66))
        let dump = try #require(directory.names.first { $0.hasSuffix(".frames.jsonl") })
        let log = try text(of: directory(dump)).split(separator: "\n").map { try JSONObject(reading: $0) }
        var device = DeviceEvent(
            CaptureDevice(path: "/dev/video0", name: "camera", busInfo: "usb", driver: "uvcvideo"),
            formats: []
        )
        device.formats = [
            DeviceEvent.Format(
                pixelFormat: "YUYV",
                description: "YUYV 4:2:2",
                decoding: "direct",
                supported: true,
                width: 640,
                height: 480,
                frameRates: [30]
            )
        ]
        let line = try JSONEncoder().encode(TimedEvent(event: device))
        var keys = JSONKeys()
        keys.add(try await networkEvents(of: ["connect", "--source", "pattern"]) + published, by: "connect")
        keys.add(try await networkEvents(of: ["subscribe"]) + received, by: "subscribe")
        keys.add(verified + failed.events, by: "verify")
        keys.add([try JSONObject(reading: String(decoding: line, as: UTF8.self))], by: "devices")
        keys.add(log, named: ".frames.jsonl")
        let documented = try JSONKeys.documented()
        for name in Set(keys.names).union(documented.names).sorted() {
            #expect(keys[name] == documented[name], "\(name) in docs/json.md")
        }
    }

    @Test("With --json an error is an object, too")
    func jsonErrors() async throws {
        let port = try SilentServer().port
        let client = try Program(
            "room-client",
            ["connect", "--url", "ws://127.0.0.1:\(port)", "--room", "r", "--source", "pattern", "--json"]
        )
        #expect(try await client.end() == .exit(69))
        let events = try client.events()
        #expect(events.map { $0.string("event") } == ["failure"])
        #expect(events.first?.string("code") == "serverUnavailable")
        let twin = try await server.publisher(["--identity", "twin", "--json"])
        let second = try await server.publisher(["--identity", "twin"])
        #expect(try await twin.end() == .exit(76))
        let disconnected = try #require(try twin.events().first { $0.string("event") == "disconnected" })
        #expect(disconnected.string("code") == "refused" && disconnected.number("serverCode") != nil)
        #expect(try await end([second], with: SIGINT) == [.exit(0)])
    }

    // The subscriber asked for keyframes without end, and said nothing.
    @Test("A track that cannot be received is reported, in words and in JSON")
    func undecodableTrack() async throws {
        let scripted = try ScriptedServer()
        defer { scripted.stop() }
        let client = try Program("room-client", ["subscribe", "--url", scripted.url, "--room", "stage", "--json"])
        try await client.says("trackSubscribed")
        let peer = try await scripted.peer()
        let payload: [UInt8] = [0x10, 2, 0, 0x9D, 1, 0x2A, 0x00, 0x1E, 0xE0, 0x10, 1, 2, 3]
        for packet in makeVideoPackets(alias: 7, number: 0, payload: payload) { peer.send(packet) }
        try await client.complains("\"pattern\" of theirs is not received")
        try await client.says("\"failure\"")
        let failure = try #require(try client.events().first { $0.string("event") == "failure" })
        #expect(failure.string("code") == "decodingFailed" && failure.string("track") == "pattern")
        #expect(failure.string("participant") == "theirs")
        #expect(try await end([client], with: SIGINT) == [.exit(0)])
    }

    @Test("Without a dump a track has the same keys, and null for what is not there")
    func nullKeys() async throws {
        let publisher = try await server.publisher()
        let subscriber = try await server.subscriber(["--json"])
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        let track = try #require(try subscriber.events().last?.objects("tracks").first)
        #expect(
            track.keys.joined(separator: " ")
                == "bytes clock clockErrorMs file firstFrameMs frameAgeMs frameHeight frameWidth framesDecoded "
                + "framesDropped framesDroppedByReason framesNotRecorded framesReceived framesRecorded framesRendered "
                + "freezeCount keyframes participant sizeChanges totalDecodeTime totalFreezesDuration track"
        )
        for key in ["file", "framesRecorded", "framesNotRecorded"] { #expect(track.fields[key] == .null, "\(key)") }
    }

    @Test("A subscriber that is killed leaves a dump that plays up to then", arguments: ["webm", "ivf", "y4m"])
    func killed(format: String) async throws {
        let publisher = try await server.publisher()
        let subscriber = try await server.subscriber(["--dump", directory.path, "--format", format])
        let dump = try await recorded(15, in: directory.path)
        #expect(try await end([subscriber], with: SIGKILL) == [.signal(SIGKILL)])
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        let (ending, events) = try await verify("\(dump).\(format)")
        #expect(ending == .exit(0), "\(events)")
        #expect(try #require(events.last).number("frames") ?? 0 >= 15)
        let player =
            format == "ivf"
            ? try Program("vpxdec", ["--md5", "\(dump).ivf"])
            : try Program(
                "ffprobe",
                ["-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "\(dump).\(format)"]
            )
        #expect(try await player.end() == .exit(0), "\(player.errors)")
        if format != "ivf" {
            let count = Int(player.text.filter(\.isNumber)) ?? 0
            #expect(count >= 15, "\(player.text) \(player.errors)")
        }
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
        #expect(publisher.text.contains("frames captured"), "a summary all the same")
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

    @Test("All formats of dumps are written", arguments: TrackRecorder.Format.allCases)
    func formats(format: TrackRecorder.Format) async throws {
        let publisher = try await server.publisher(["--size", "160x90", "--identity", "robot"])
        let subscriber = try await server.subscriber(["--dump", directory("a/b"), "--format", format.rawValue])
        let dump = try await recorded(8, in: directory("a/b"))
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        let names = fileNames(in: directory("a/b"))
        if format == .png {
            #expect(names.filter { $0.hasSuffix(".png") }.count >= 8)
            #expect(subscriber.text.contains("-000001.png"))
            let first = "\(dump)-000001.png"
            let player = try Program(
                "ffprobe",
                ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", first]
            )
            #expect(try await player.end() == .exit(0))
            #expect(player.text == "160,90\n")
        } else {
            #expect(names.contains { $0.hasPrefix("robot-pattern-PA_") && $0.hasSuffix(".\(format.rawValue)") })
            let (ending, events) = try await verify("\(dump).\(format.rawValue)")
            #expect(ending == .exit(0))
            #expect(events.first?.number("unreadable") == 0)
        }
    }

    @Test("A snapshot is the newest picture, with a dump or without")
    func snapshot() async throws {
        let publisher = try await server.publisher()
        let path = directory("now.png")
        let subscriber = try server.client("subscribe", ["--snapshot", path, "--duration", "1"])
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

    @Test(
        "Names of any kind stay in the dump's directory, and their files can be verified",
        arguments: [
            "../../up", "/etc/x", "..", ".", "a/\u{301}b", "-rf", "a b", "\u{202E}x",
            String(repeating: "n", count: 128), String(repeating: "é", count: 64),
        ]
    )
    func names(name: String) async throws {
        let inner = directory("inner")
        let publisher = try await server.publisher(["--identity=\(name)", "--track-name=\(name)"])
        let subscriber = try await server.subscriber(["--dump", inner])
        let dump = try await recorded(3, in: inner)
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        #expect(subscriber.errors == "")
        #expect(directory.names == ["inner"])
        #expect(fileNames(in: inner).count == 2)
        #expect(fileNames(in: inner).allSatisfy { !$0.hasPrefix(".") && $0.utf8.count <= 255 })
        #expect(try await verify("\(dump).webm").ending == .exit(0))
    }

    @Test("Closing a program's output early does not stop its work", arguments: ["", "--json"])
    func closedOutput(option: String) async throws {
        let options = option.isEmpty ? [] : [option]
        let publisher = try server.client(
            "connect",
            ["--source", "pattern", "--size", "320x180"] + options,
            isOutputRead: false
        )
        let subscriber = try server.client("subscribe", ["--dump", directory.path] + options, isOutputRead: false)
        let dump = try await recorded(10, in: directory.path)
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        #expect(try DumpReading("\(dump).webm").faults == [])
    }

    @Test("Only what is asked for by name is received")
    func selection() async throws {
        let publishers = [
            try await server.publisher(["--identity", "one", "--track-name", "left"]),
            try await server.publisher(["--identity", "two", "--track-name", "left"]),
        ]
        let subscriber = try await server.subscriber([
            "--participant", "two", "--track", "left", "--dump", directory.path, "--json",
        ])
        _ = try await recorded(5, in: directory.path)
        #expect(try await end([subscriber] + publishers, with: SIGINT) == [.exit(0), .exit(0), .exit(0)])
        let tracks = try #require(try subscriber.events().last).objects("tracks")
        #expect(tracks.map { $0.string("participant") } == ["two"])
        #expect(publishers[0].text.contains(" 0 encoded"), "\(publishers[0].text)")
    }

    @Test("Who waits for tracks is told after a second why there are none")
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

    @Test(
        "A full disk ends a dump with 74 and a clear word; the dump plays, and others go on",
        .enabled(if: canMount, "only root can mount a small file system")
    )
    func fullDisk() async throws {
        let small = try SmallDisk(at: directory("small"), bytes: 256 << 10)
        let large = directory("large")
        let publisher = try await server.publisher(["--source", "noise", "--size", "320x180", "--max-bitrate", "3M"])
        let victim = try await server.subscriber(["--dump", small.path])
        let other = try await server.subscriber(["--dump", large])
        #expect(try await victim.end() == .exit(74))
        #expect(victim.errors.contains("space") || victim.errors.contains("full"), "\(victim.errors)")
        #expect(victim.errors.contains(small.path), "\(victim.errors)")
        #expect(victim.text.contains("frames received"), "a summary all the same")
        let lines = try bytes(of: try await recorded(1, in: large) + ".frames.jsonl").count { $0 == 10 }
        _ = try await recorded(lines + 20, in: large)
        #expect(try await end([other, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        let dump = try #require(fileNames(in: small.path).first { $0.hasSuffix(".webm") })
        let player = try Program(
            "ffprobe",
            ["-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "\(small.path)/\(dump)"]
        )
        #expect(try await player.end() == .exit(0))
        #expect(player.errors == "")
        #expect(try await verify("\(small.path)/\(dump)").ending == .exit(0))
    }
}

/// Whether file systems can be mounted.
private let canMount: Bool = {
    guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
    return (try? SmallDisk(at: directory("probe"), bytes: 65_536)) != nil
}()

/// A file system of few bytes, until the last reference goes.
private final class SmallDisk: Sendable {
    let path: String

    init(at path: String, bytes: Int) throws {
        self.path = path
        mkdir(path, 0o755)
        guard mount("none", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            throw TestFailure("no file system: errno \(errno)")
        }
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
    }
}
