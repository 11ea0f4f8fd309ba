import Glibc
import MediaCore
import RoomProtocol
import TestSupport
import TestTools
import Testing

/// What `subscribe` says of a track whose publisher pauses it.
@Suite("Programs tell a publisher's pause", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramPauseTests {
    private let pause = ServerMessage.trackDisabled(TrackDisabled(participantId: "PA_theirs", trackId: "TR_theirs"))
    private let end = ServerMessage.trackEnabled(TrackEnabled(participantId: "PA_theirs", trackId: "TR_theirs"))
    private let name = "\"pattern\" of theirs"

    // Nothing told a pause, and a frozen track that was paused was said to be frozen no longer.
    @Test("A pause and its end are told, and a freeze that a pause ends is not said to be over")
    func paused() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let program = try Program("room-client", ["subscribe", "--url", server.url, "--room", "stage"])
        try await program.says("Receiving \(name)")
        let peer = try await server.peer()
        var pattern = try EncodedPattern(alias: 7)
        try await eventually("it freezes: \(program.text)") {
            if program.text.contains("\(name) is frozen.") { return true }
            // What a busy machine shows too late is followed by more.
            for _ in 0..<12 {
                for packet in try pattern.next() { peer.send(packet) }
                try await Task.sleep(for: .milliseconds(33))
            }
            for _ in 0..<40 where !program.text.contains("\(name) is frozen.") {
                try await Task.sleep(for: .milliseconds(100))
            }
            return program.text.contains("\(name) is frozen.")
        }
        peer.tell(pause)
        try await program.says("\(name) is paused by its publisher.\n")
        let lines = program.text.split(separator: "\n")
        let frozen = try #require(lines.lastIndex(of: "\(name) is frozen."))
        #expect(lines.count >= frozen + 3, "\(program.text)")
        #expect(lines[frozen + 1].wholeMatch(of: /.* was frozen for [0-9.]+ s, until it was paused\./) != nil)
        peer.tell(end)
        try await program.says("\(name) goes on.\n")
        #expect(try await TestSupport.end([program], with: SIGINT) == [.exit(0)])
    }

    @Test("The status line marks a track that is paused, and one that is not sent")
    func statusLine() async throws {
        let server = try ScriptedServer { peer, text in
            guard case .join(let join)? = try? ClientMessage(reading: text) else { return }
            var track = ScriptedServer.theirTrack
            track.enabled = false
            var joined = ScriptedServer.joined(join)
            joined.participants = [ParticipantInfo(id: "PA_theirs", identity: "theirs", tracks: [track])]
            peer.tell(.joined(joined))
            peer.tell(.subscribed(Subscribed(trackId: "TR_theirs", alias: 7, catchUpThrough: nil)))
        }
        defer { server.stop() }
        let command = "\(Program.path(of: "room-client")) subscribe --url \(server.url) --room stage"
        let program = try Program("script", ["-qec", command, "/dev/null"])
        // It was paused before it was received.
        try await program.says("\(name) is paused by its publisher.")
        try await program.says("theirs/pattern  paused  ")
        let peer = try await server.peer()
        peer.tell(end)
        try await program.says("theirs/pattern  0 fps")
        peer.tell(
            .trackSwitchedOff(TrackSwitchedOff(participantId: "PA_theirs", trackId: "TR_theirs", reason: "network"))
        )
        try await program.says("theirs/pattern  not sent  ")
        peer.close()
        #expect(try await program.end() == .exit(69))
    }
}
