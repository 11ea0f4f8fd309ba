import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// What the driver is told about who has something to send.
@Suite("Relay: waking", .timeLimit(.minutes(1)))
struct RelayWakingTests {
    private struct Wake: Equatable {
        var id: SlotID
        var isUrgent: Bool
    }

    private func wakes(_ bench: RelayBench) -> [Wake] {
        var wakes: [Wake] = []
        while let effect = bench.relay.nextEffect() {
            if case .wake(let id, let isUrgent, _) = effect { wakes.append(Wake(id: id, isUrgent: isUrgent)) }
        }
        return wakes
    }

    // A subscriber with media waited behind a room of 200 with announcements.
    @Test("Media are urgent and signaling is not, also for who was woken for signaling before")
    func urgency() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull(viewer)
        _ = wakes(bench)

        bench.frame(camera)
        // The publisher's frame is acknowledged.
        #expect(wakes(bench) == [Wake(id: robot.id, isUrgent: true), Wake(id: viewer.id, isUrgent: true)])
        bench.frame(camera)
        #expect(wakes(bench).isEmpty, "it knows already")
        bench.pull([robot, viewer])

        bench.send(
            .publish(
                Publish(
                    requestId: 2,
                    name: "rear",
                    source: "x",
                    codec: VideoCodec.vp8,
                    width: 64,
                    height: 48,
                    frameRate: 1
                )
            ),
            from: robot
        )
        #expect(Set(wakes(bench).map(\.id)) == [robot.id, viewer.id])
        bench.frame(camera)
        #expect(wakes(bench) == [Wake(id: robot.id, isUrgent: true), Wake(id: viewer.id, isUrgent: true)])
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        #expect(wakes(bench).isEmpty)

        bench.pull([robot, viewer])
        bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
        #expect(wakes(bench) == [Wake(id: viewer.id, isUrgent: false)])
    }

    // Its close message waited behind those of a flood, and until then everything that it sent was read.
    @Test("The end of a connection is urgent")
    func closing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        _ = wakes(bench)
        bench.send(text: "no JSON", from: robot)
        #expect(wakes(bench).last == Wake(id: robot.id, isUrgent: true))
    }
}
