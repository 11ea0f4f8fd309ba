import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// The reasons under which the operator's counts have the packets that a subscriber was not sent.
@Suite("Relay: reasons for leaving packets out", .timeLimit(.minutes(1)))
struct DropReasonTests {
    /// A room with a camera whose viewer has been sent `frames` frames.
    private func room(
        frames: Int = 9,
        _ change: (inout RelaySettings) -> Void = { _ in }
    ) throws -> (bench: RelayBench, camera: Camera, viewer: Peer) {
        let bench = RelayBench(change)
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([viewer, robot])
        bench.run(camera, frames: frames, takers: [viewer])
        return (bench, camera, viewer)
    }

    /// What the viewer was not sent, by reason, without those of which it was nothing.
    private func reasons(_ bench: RelayBench, _ camera: Camera, _ viewer: Peer) throws -> [DropReason: Int] {
        let counts = try #require(bench.counts(camera, viewer))
        #expect(counts.received == counts.forwarded + counts.dropped.total + counts.waiting)
        #expect(counts.forwarded == viewer.packets.count)
        return Dictionary(uniqueKeysWithValues: DropReason.allCases.map { ($0, counts.dropped[$0]) }).filter { $1 > 0 }
    }

    @Test("What comes of a disabled track, and what comes before its keyframe afterwards")
    func disabled() throws {
        let (bench, camera, viewer) = try room()
        bench.send(.disable(Disable(trackId: camera.track.id)), from: camera.publisher)
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(try reasons(bench, camera, viewer) == [.disabled: 3])
        bench.send(.enable(Enable(trackId: camera.track.id)), from: camera.publisher)
        bench.run(camera, frames: 2, takers: [viewer])
        camera.wantsKeyframe = true
        bench.run(camera, frames: 5, takers: [viewer])
        #expect(try reasons(bench, camera, viewer) == [.disabled: 3, .awaitingKeyframe: 2])
    }

    @Test("What waits when the subscriber asks for a keyframe")
    func keyframeRequested() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 4)
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.pull(viewer)
        #expect(try reasons(bench, camera, viewer) == [.keyframeRequested: 4])
    }

    @Test("What is skipped for a subscriber that took nothing for a second")
    func fellBehind() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 30)
        bench.pull(viewer)
        #expect(try reasons(bench, camera, viewer) == [.fellBehind: 30])
    }

    @Test("Layers that are left out for a subscriber that lags, and that wait for their sync afterwards")
    func layers() throws {
        // Frames 9 to 16 are of layers 2 1 2 0 2 1 2 0, and none of them has a sync that a late one could go on with.
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 8)
        bench.pull(viewer)
        let late = try reasons(bench, camera, viewer)
        #expect(Set(late.keys).isSubset(of: [.topLayerLate, .middleLayerLate, .awaitingLayerSync]))
        let (top, middle) = (late[.topLayerLate] ?? 0, late[.middleLayerLate] ?? 0)
        // The oldest is 264 ms late, and the newest 33.
        #expect(top >= 2 && middle >= 1 && top + middle <= 6, "\(late)")
        bench.run(camera, frames: 12, takers: [viewer])
        let after = try reasons(bench, camera, viewer)
        #expect(after[.topLayerLate] == top && after[.middleLayerLate] == middle)
        #expect(after[.awaitingLayerSync] ?? 0 > 0, "\(after)")
    }

    @Test("The higher layers of the cached frames at a late join")
    func catchUp() throws {
        let (bench, camera, _) = try room(frames: 9)
        let late = bench.join("late")
        // Of frames 0 to 8, those of layer 0 are 0, 4 and 8.
        #expect(try reasons(bench, camera, late) == [.catchUp: 6])
    }

    @Test("What waits when the server's memory for packets is used up")
    func overBudget() throws {
        let (bench, camera, viewer) = try room(frames: 1) { $0.maximumStoredBytes = DataSize(bytes: 60_000) }
        for _ in 0..<100 where bench.relay.statistics.storedBytes > 0 { bench.frame(camera) }
        bench.pull(viewer)
        let dropped = try reasons(bench, camera, viewer)
        #expect(dropped[.overBudget] ?? 0 > 0, "\(dropped)")
        #expect(dropped[.fellBehind] == nil)
    }

    @Test("What waits when a subscription ends, in the line about the participant")
    func ended() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 3)
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
        bench.close(viewer)
        bench.takeEffects()
        let line = try #require(bench.notices.last).description
        #expect(line == "\"viewer\" left \"room\"; it was sent 9 packets; 3 were left out: 3 unsent at the end")
    }
}
