import Glibc
import RoomKit
import RoomProtocol
import TestSupport
import Testing

/// A server that announces a participant's tracks together with the participant, as ours does not after a join.
@Suite("Tracks that come with their participant", .timeLimit(.minutes(2)))
struct AnnouncedTracksTests {
    /// Tells that a participant has come who has a track already.
    private func announce(to peer: SocketPeer) {
        var track = ScriptedServer.theirTrack
        (track.id, track.alias, track.name) = ("TR_late", 9, "late")
        let participant = ParticipantInfo(id: "PA_late", identity: "late", tracks: [track])
        peer.tell(.participantConnected(ParticipantConnected(participant: participant)))
    }

    // The room knew them, and no event told the application.
    @Test("The application is told each of them once, after the participant")
    func events() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        announce(to: peer)
        peer.tell(.trackDisabled(TrackDisabled(participantId: "PA_late", trackId: "TR_late")))
        _ = try await member.event("its pause") { if case .trackDisabled = $0 { true } else { nil } }
        let told = member.events.compactMap { event -> String? in
            switch event {
            case .participantConnected(let participant): participant.sid
            case .trackPublished(let track, let participant): "\(participant.sid) \(track.sid)"
            default: nil
            }
        }
        #expect(told == ["PA_late", "PA_late TR_late"])
        await member.room.disconnect()
    }

    @Test("A program that was asked for such a track requests it", .enabled(if: Program.isAllowed))
    func program() async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join(let join): peer.tell(.joined(ScriptedServer.joined(join)))
            case .subscribe(let request):
                peer.tell(.subscribed(Subscribed(trackId: request.trackId, alias: 9, catchUpThrough: nil)))
            default: break
            }
        }
        defer { server.stop() }
        let options = ["--url", server.url, "--room", "stage", "--participant", "late"]
        let program = try Program("room-client", ["subscribe"] + options)
        // It has looked at the tracks that were there before.
        try await program.says("No track matches --participant late yet")
        announce(to: try await server.peer())
        try await program.says("Receiving \"late\" of late")
        #expect(try await end([program], with: SIGINT) == [.exit(0)])
    }
}
