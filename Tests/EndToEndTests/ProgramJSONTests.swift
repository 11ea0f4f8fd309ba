import FoundationEssentials
import Glibc
import RoomKit
import RoomProtocol
import TestSupport
import TestTools
import Testing

@testable import room_client

@Suite("The programs' JSON", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramJSONTests {
    let server: ServerProgram
    let directory: TemporaryDirectory

    init() async throws {
        server = try await ServerProgram()
        directory = try TemporaryDirectory()
    }

    @Test("While the server is silent, the publisher learns from the kernel what has come there all the same")
    func silentServer() async throws {
        let log = directory("silent.log")
        let publisher = try await server.publisher(["--json", "--verbose", "--adapt-log", log])
        let subscriber = try await server.subscriber(["--dump", directory("silent")])
        _ = try await recorded(10, in: directory("silent"))
        func counts() throws -> Int {
            try String(contentsOfFile: log, encoding: .utf8).components(separatedBy: " delivered ").count
        }
        let before = try counts()
        try await eventually("packets are counted in a silence") {
            server.program.send(SIGSTOP)
            try await Task.sleep(for: .milliseconds(300))
            server.program.send(SIGCONT)
            try await Task.sleep(for: .milliseconds(300))
            return try counts() >= before + 2
        }
        // A longer silence is told as what it is, and so is its end.
        let isInterrupted = { (isIt: Bool) in
            publisher.lines.last { $0.contains("\"status\"") }?.contains("\"interrupted\":\(isIt)") == true
        }
        server.program.send(SIGSTOP)
        defer { server.program.send(SIGCONT) }
        try await eventually("the publisher tells the interruption") { isInterrupted(true) }
        server.program.send(SIGCONT)
        try await eventually("the publisher tells its end") { isInterrupted(false) }
        #expect(try await end([publisher, subscriber], with: SIGINT) == [.exit(0), .exit(0)])
        let replay = try Program(Program.path(of: "room-client"), ["adapt", "replay", log, "--differences"])
        #expect(try await replay.end() == .exit(0))
    }

    // Viewers had a frozen picture for half a minute, and no word about it.
    @Test("Viewers hear that nothing more comes of a publisher whose machine does not answer, and that it is back")
    func silentPublisher() async throws {
        let publisher = try await server.publisher(["--identity", "robot"])
        let viewer = try await server.subscriber(["--json"])
        try await viewer.says("\"trackSubscribed\"")
        func levels() throws -> [Double] {
            try viewer.events().filter { $0.string("event") == "networkQualityChanged" }
                .filter { $0.string("participant") == "robot" }.compactMap { $0.number("level") }
        }
        try await Task.sleep(for: .seconds(1))
        #expect(try levels().allSatisfy { $0 > 0 })
        publisher.send(SIGSTOP)
        defer { publisher.send(SIGCONT) }
        try await eventually("the publisher is lost") { try levels().last == 0 }
        publisher.send(SIGCONT)
        // A busy machine has levels between 0 and 5.
        try await eventually("it is back") { try levels().last ?? 0 > 0 }
        #expect(try await end([publisher, viewer], with: SIGINT) == [.exit(0), .exit(0)])
    }

    @Test("With --json every line is an object with the keys that are promised")
    func json() async throws {
        let publisher = try await server.publisher([
            "--identity", "robot", "--json", "--verbose", "--adapt-log", directory("run.log"),
        ])
        let subscriber = try await server.subscriber(["--json", "--verbose", "--dump", directory("dumps")])
        _ = try await recorded(10, in: directory("dumps"))
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
        // These come as often, and when, the machine and the network make it so.
        let ownTime = [
            "status", "recordingEnded", "trackDimensionsChanged", "trackFrozen", "trackUnfrozen",
            "networkQualityChanged",
        ]
        #expect(
            received.compactMap { $0.string("event") }.filter { !ownTime.contains($0) } == [
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
        let verified = try await events(of: ["verify", directory("dumps"), "--plot", directory("dump.svg")])
        #expect(verified.map { $0.string("event") } == ["plot", "file", "summary"])
        for key in ["frames", "lost", "duplicated", "reordered", "torn", "notSent", "notInFile", "notInLog"] {
            for event in verified.dropFirst() { #expect(event.number(key) != nil, "\(key)") }
        }
        #expect(verified.last?.number("frames") == track.number("framesRecorded"))
        let failed = try await verify(directory("none.webm"))
        #expect(failed.ending == .exit(66))
        let dump = try #require(fileNames(in: directory("dumps")).first { $0.hasSuffix(".frames.jsonl") })
        let log = try text(of: directory("dumps/\(dump)")).split(separator: "\n").map { try JSONObject(reading: $0) }
        var keys = JSONKeys()
        keys.add(try await networkEvents(of: ["connect", "--source", "pattern"]) + published, by: "connect")
        keys.add(try await networkEvents(of: ["subscribe"]) + received, by: "subscribe")
        keys.add(verified + failed.events, by: "verify")
        keys.add(try DeviceEvents.cameras() + DeviceEvents.screens(), by: "devices")
        keys.add(try DeviceEvents.ofSources(), by: "connect")
        keys.add(try await ProgramDoctorTests.events(of: server), by: "doctor")
        keys.add(try await freezeEvents(), by: "subscribe")
        for command in ["connect", "subscribe"] { keys.add(try DeviceEvents.ofSizes(), by: command) }
        keys.add(try await events(of: ["adapt", "plot", directory("run.log")]), by: "adapt plot")
        keys.add(try await events(of: ["adapt", "replay", directory("run.log")]), by: "adapt replay")
        keys.add(log, named: ".frames.jsonl")
        let documented = try JSONKeys.documented()
        for name in Set(keys.names).union(documented.names).sorted() {
            #expect(keys[name] == documented[name], "\(name) in docs/json.md")
        }
    }

    /// What a command of the client writes that has to end with 0.
    private func events(of arguments: [String]) async throws -> [JSONObject] {
        let program = try Program("room-client", arguments + ["--json"])
        #expect(try await program.end() == .exit(0), "\(arguments): \(program.errors)")
        return try program.events()
    }

    /// What `subscribe` writes about a track whose publisher stands still for a time.
    private func freezeEvents() async throws -> [JSONObject] {
        let publisher = try await server.publisher(["--identity", "still"])
        let viewer = try await server.subscriber(["--json", "--participant", "still"])
        try await viewer.says("\"trackSubscribed\"")
        // Something must have been shown before it can freeze.
        try await Task.sleep(for: .seconds(1))
        publisher.send(SIGSTOP)
        defer { publisher.send(SIGCONT) }
        try await viewer.says("\"trackFrozen\"")
        publisher.send(SIGCONT)
        try await viewer.says("\"trackUnfrozen\"")
        #expect(try await end([publisher, viewer], with: SIGINT) == [.exit(0), .exit(0)])
        let events = try viewer.events().filter { ["trackFrozen", "trackUnfrozen"].contains($0.string("event")) }
        for event in events {
            #expect(event.string("participant") == "still" && event.string("track") == "pattern")
            #expect((event.number("frozenMs") ?? 0) >= 1500 || event.string("event") == "trackFrozen")
        }
        return events
    }

    /// What a command writes when the server tells how the network is, and that a publisher paused for a moment.
    private func networkEvents(of command: [String]) async throws -> [JSONObject] {
        let server = try ScriptedServer { peer, text in
            ScriptedServer.welcome(peer, text)
            guard case .join? = try? ClientMessage(reading: text) else { return }
            let (theirs, track) = ("PA_theirs", "TR_theirs")
            let off = TrackSwitchedOff(participantId: theirs, trackId: track, reason: "network")
            peer.tell(.trackSwitchedOff(off))
            peer.tell(.trackSwitchedOn(TrackSwitchedOn(participantId: theirs, trackId: track)))
            peer.tell(.trackDisabled(TrackDisabled(participantId: theirs, trackId: track)))
            peer.tell(.trackEnabled(TrackEnabled(participantId: theirs, trackId: track)))
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
        let pauses = events.filter { ["trackDisabled", "trackEnabled"].contains($0.string("event")) }
        #expect(
            pauses.map { $0.string("event") } == (command[0] == "subscribe" ? ["trackDisabled", "trackEnabled"] : [])
        )
        return levels + switches + pauses
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

    // The code was null unless the session failed.
    @Test("A failure of a camera, a screen, a clip or a recording has its code")
    func failureCodes() async throws {
        try store(Array("YUV4MPEG2 W16 H16 F30:1 C420mpeg2\n".utf8), at: directory("empty.y4m"))
        var header = Array("DKIF\0\0\u{20}\0VP80".utf8) + [UInt8](repeating: 0, count: 20)
        for (offset, byte) in [(12, 16), (14, 16), (16, 30), (20, 1)] { header[offset] = UInt8(byte) }
        try store(header, at: directory("empty.ivf"))
        let cases = [
            (["connect", "--device", directory("none")], "noSuchDevice"),
            (["connect", "--source", "screen", "--display", ":7654"], "displayUnreachable"),
            (["connect", "--source", "file:\(directory("none.y4m"))"], "notFound"),
            (["connect", "--source", "file:\(directory("empty.y4m"))"], "emptyClip"),
            (["connect", "--source", "vp8:\(directory("empty.ivf"))"], "noKeyframe"),
            (["subscribe", "--dump", "\(directory("empty.ivf"))/x"], "systemFailure"),
        ]
        for (command, code) in cases {
            let program = try server.client(command[0], command.dropFirst() + ["--json"])
            #expect(try await program.end() != .exit(0), "\(command)")
            let failure = try #require(try program.events().first { $0.string("event") == "failure" }, "\(command)")
            #expect(failure.string("code") == code, "\(failure)")
        }
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
        let keys = """
            bytes clock clockErrorMs file fileCount firstFrameMs frameAgeMs frameHeight frameWidth framesDecoded \
            framesDropped framesDroppedByReason framesNotRecorded framesReceived framesRecorded framesRendered \
            framesRepeated freezeCount keyframes lastFile participant sizeChanges totalDecodeTime totalFreezesDuration \
            track
            """
        #expect(track.keys.joined(separator: " ") == keys)
        for key in ["file", "framesRecorded", "framesNotRecorded"] { #expect(track.fields[key] == .null, "\(key)") }
    }
}
