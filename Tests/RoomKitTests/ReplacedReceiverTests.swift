import MediaCore
import RelayServer
import SyntheticSources
import TestTools
import Testing

@testable import RoomKit

@Suite("A receiver that another one has replaced", .timeLimit(.minutes(1)))
struct ReplacedReceiverTests {
    private func join(_ server: RelayServer, _ identity: String) async throws -> Room {
        var options = ConnectOptions(roomName: "lab", of: server)
        options.identity = identity
        return try await RoomClient.connect(options: options)
    }

    /// What decodes the packets of the only remote track now, and their alias.
    private func reception(_ room: Room) async throws -> (sid: String, receiver: VideoReceiver, alias: UInt32) {
        try await eventual("it is received") {
            guard let (sid, entry) = await room.remote.entries.first, let receiver = entry.receiver,
                let alias = entry.alias
            else { return nil }
            return (sid, receiver, alias)
        }
    }

    // Receivers were told apart by the alias of their packets, which a track keeps.
    @Test("Its failure does not end the reception that has begun since, and that of the present one does")
    func lateFailure() async throws {
        var serverOptions = RelayServer.Options()
        serverOptions.port = 0
        let server = try RelayServer(serverOptions)
        defer { server.stop() }
        let (robot, viewer) = (try await join(server, "robot"), try await join(server, "viewer"))
        let source = PatternSource(dimensions: Dimensions(width: 64, height: 48))
        try await robot.localParticipant.publish(LocalVideoTrack(source: source))
        let first = try await reception(viewer)
        let track = try #require(await viewer.remoteParticipants.first?.videoTracks.first)
        await viewer.unsubscribe(from: track)
        try await eventually("it is not received") { !track.isSubscribed }
        await viewer.subscribe(to: track)
        let second = try await reception(viewer)
        #expect(second.alias == first.alias && second.receiver !== first.receiver)
        let error = RoomError(.decodingFailed, "The track cannot be decoded.")
        await viewer.receptionFailed(of: first.sid, by: first.receiver, error)
        #expect(track.isSubscribed)
        await viewer.receptionFailed(of: first.sid, by: second.receiver, error)
        #expect(!track.isSubscribed)
        for room in [robot, viewer] { await room.disconnect() }
    }
}
