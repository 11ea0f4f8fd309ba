import MediaCore
import RoomProtocol
import Testing

@testable import RelayCore

extension Relay {
    /// Takes the connection from its participant, which stays, as when a session is to be resumed, and closes it.
    fileprivate mutating func detach(_ id: SlotID, at now: MonotonicInstant) {
        guard let participant = connections.hot[id.index].participant else { return }
        participants.hot[participant.index].connection = nil
        connections.hot[id.index].participant = nil
        connectionClosed(id, at: now)
    }
}

/// A participant is not its connection: it can be without one for a while.
@Suite("Relay: participants without a connection", .timeLimit(.minutes(1)))
struct RelayDetachedTests {
    private let bench = RelayBench()

    @Test("A subscriber without a connection keeps its place, costs nobody anything, and takes nothing")
    func subscriber() throws {
        let robot = bench.join("robot")
        let (absent, viewer) = (bench.join("absent"), bench.join("viewer"))
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 4, takers: [absent, viewer])
        bench.relay.detach(absent.id, at: bench.now)
        viewer.forgetMessages()
        let before = absent.packets.count
        bench.run(camera, frames: 40, takers: [absent, viewer])
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        bench.pull([absent, viewer])
        #expect(absent.packets.count == before && absent.close == nil)
        #expect(viewer.receiver(camera)?.wholeFrames.count == 44 && viewer.allProblems.isEmpty)
        // Nobody was told that the participant has gone.
        let track = camera.track.id
        let publisher = try #require(robot.joined?.participant.id)
        #expect(viewer.messages == [.trackDisabled(TrackDisabled(participantId: publisher, trackId: track))])
        #expect(robot.keyframeRequests == 0)
        let late = bench.join("late")
        #expect(late.joined?.participants.map(\.identity) == ["robot", "absent", "viewer"])
    }

    @Test("The tracks of a publisher without a connection stay, and requests to it are dropped")
    func publisher() throws {
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 4, takers: [viewer])
        bench.relay.detach(robot.id, at: bench.now)
        let late = bench.join("late")
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: late)
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
        bench.advance(.seconds(10))
        bench.pull([viewer, late])
        #expect(late.joined?.participants.first { $0.identity == "robot" }?.tracks == [camera.track])
        #expect(bench.relay.statistics.tracks == 1 && viewer.errors.isEmpty && late.errors.isEmpty)
    }

    @Test("A client that joins under the identity of a participant without a connection takes its place")
    func namesake() throws {
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        _ = try #require(bench.publish(robot))
        bench.pull(viewer)
        bench.relay.detach(robot.id, at: bench.now)
        viewer.forgetMessages()
        let second = bench.join("robot")
        bench.pull(viewer)
        let former = try #require(robot.joined?.participant.id)
        let info = try #require(second.joined).participant
        #expect(
            viewer.messages == [
                .participantDisconnected(ParticipantDisconnected(participantId: former)),
                .participantConnected(ParticipantConnected(participant: info)),
            ]
        )
        #expect(bench.relay.statistics == RelayStatistics(connections: 2, rooms: 1, tracks: 0, storedBytes: 0))
    }

    @Test("A server that goes down takes participants without a connection with it")
    func shutDown() throws {
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 4, takers: [viewer])
        bench.relay.detach(robot.id, at: bench.now)
        bench.relay.shutDown(at: bench.now)
        bench.pull(viewer)
        #expect(viewer.close?.code == .shuttingDown)
        bench.close(viewer)
        #expect(bench.relay.statistics == RelayStatistics())
    }
}
