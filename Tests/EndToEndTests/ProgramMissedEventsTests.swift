import Glibc
import MediaCore
import RoomProtocol
import TestSupport
import TestTools
import Testing

/// A program that follows a room gets more events at once than it has read.
@Suite("Programs make up for missed events", .enabled(if: Program.isAllowed), .timeLimit(.minutes(3)))
struct ProgramMissedEventsTests {
    private let server: ScriptedServer

    /// How many tracks follow each other during a flood.
    private let steps = 30

    init() throws {
        server = try ScriptedServer { peer, text in
            ScriptedServer.welcome(peer, text)
            guard case .subscribe(let request)? = try? ClientMessage(reading: text) else { return }
            let name = String(request.trackId.dropFirst(3))
            if name.hasPrefix("asked") { Self.subscribe(name, at: peer) }
        }
    }

    private static func publish(_ name: String, at peer: SocketPeer) {
        var track = ScriptedServer.theirTrack
        (track.id, track.name, track.alias) = ("TR_\(name)", name, alias(of: name))
        peer.tell(.trackPublished(TrackPublished(participantId: "PA_theirs", track: track)))
    }

    private static func subscribe(_ name: String, at peer: SocketPeer) {
        peer.tell(.subscribed(Subscribed(trackId: "TR_\(name)", alias: alias(of: name), catchUpThrough: nil)))
    }

    private static func withdraw(_ name: String, at peer: SocketPeer) {
        peer.tell(.trackUnpublished(TrackUnpublished(participantId: "PA_theirs", trackId: "TR_\(name)")))
    }

    private static func alias(of name: String) -> UInt32 {
        (name.hasPrefix("asked") ? 1000 : 100) + (name.split(separator: "-").last.flatMap { UInt32($0) } ?? 0)
    }

    /// Lets 6,000 events come at once.
    ///
    /// The program asks for each track, so that it reads one event while dozens come. Which events it misses is chance.
    /// So one track follows another all the time, and each is received; `body` adds something to each of these steps.
    private func flood(_ program: Int32, at peer: SocketPeer, step body: (Int) -> Void = { _ in }) async throws {
        kill(program, SIGSTOP)
        for step in 0..<steps {
            for number in 0..<100 {
                Self.publish("brief-\(number)", at: peer)
                Self.withdraw("brief-\(number)", at: peer)
            }
            Self.withdraw(step == 0 ? "theirs" : "next-\(step - 1)", at: peer)
            Self.publish("next-\(step)", at: peer)
            Self.subscribe("next-\(step)", at: peer)
            body(step)
        }
        try await Task.sleep(for: .milliseconds(500))
        kill(program, SIGCONT)
    }

    private func options(_ server: ScriptedServer) -> [String] {
        ["--url", server.url, "--room", "stage", "--participant", "theirs"]
    }

    // The recording of a track that was withdrawn meanwhile never ended, and one that came meanwhile was not recorded.
    @Test("subscribe ends the tracks that went meanwhile, and begins those that came")
    func subscribe() async throws {
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let dumping = ["--json", "--dump", directory.path]
        let program = try Program("room-client", ["subscribe"] + options(server) + dumping)
        try await program.says("trackSubscribed")
        let peer = try await server.peer()
        try await flood(program.identifier, at: peer) { step in
            if step % 3 == 0 { Self.publish("asked-\(step)", at: peer) }
        }
        try await program.says("were missed")
        let staying = (stride(from: 0, to: steps, by: 3).map { "asked-\($0)" } + ["next-\(steps - 1)"]).sorted()
        try await eventually("what came is received, and no more: \(program.text.suffix(2000))") {
            let gone = try events("trackUnsubscribed", of: program)
            let isEnded = try events("recordingEnded", of: program) == gone && gone.contains("pattern")
            return try isEnded && events("trackSubscribed", of: program) == (staying + gone).sorted()
        }
        #expect(try await end([program], with: SIGINT) == [.exit(0)])
    }

    /// The names of the tracks in the events of a kind, sorted.
    private func events(_ kind: String, of program: Program) throws -> [String] {
        // The last line may not be whole yet.
        let lines = program.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        let events = try lines.map { try JSONObject(reading: $0) }.filter { $0.string("event") == kind }
        return events.compactMap { $0.string("track") }.sorted()
    }

    // The tile of a track that was withdrawn meanwhile stayed, and one that came meanwhile had none.
    @Test("A window loses the tiles of the tracks that went meanwhile, and gains those that came")
    func window() async throws {
        defer { server.stop() }
        let theatre = try await WindowStage()
        let view = try theatre.run("room-view", options(server))
        // The title names the track that is alone.
        _ = try await theatre.control(["search", "--sync", "--name", "^theirs/pattern - stage$"])
        let peer = try await server.peer()
        try await flood(view.identifier, at: peer)
        _ = try await theatre.control(["search", "--sync", "--name", "^theirs/next-\(steps - 1) - stage$"])
        #expect(try await end([view], with: SIGTERM) == [.exit(0)])
        await theatre.close()
    }
}
