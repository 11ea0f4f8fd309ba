import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// The levels of the network of participant `id` that a peer was told.
func levels(of id: String?, at peer: Peer) -> [Int] {
    peer.messages.compactMap { message in
        guard case .networkQuality(let body) = message, body.participantId == id else { return nil }
        return body.level
    }
}

@Suite("Relay: publishers that fall silent", .timeLimit(.minutes(1)))
struct SilentPublisherTests {
    /// A publisher, a viewer, and the publisher's id.
    private func room() throws -> (bench: RelayBench, camera: Camera, viewer: Peer, name: String) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        bench.run(camera, frames: 60, takers: [viewer])
        return (bench, camera, viewer, try #require(robot.joined?.participant.id))
    }

    // Its viewers kept a frozen picture and a level of 5 for half a minute, until its connection was given up.
    @Test("A publisher whose network is gone has the level 0 for its viewers after some seconds, and 5 when it is back")
    func lostPublisher() throws {
        let (bench, camera, viewer, name) = try room()
        let robot = camera.publisher
        let stopped = bench.now
        bench.unreachable = [robot.id]
        while levels(of: name, at: viewer).isEmpty, bench.now < stopped + .seconds(20) {
            bench.advance(.milliseconds(100))
            bench.pull(viewer)
        }
        let passed = bench.now.duration(since: stopped)
        #expect(passed > .seconds(5) && passed < .seconds(9) && bench.pings == 1, "\(passed), \(bench.pings)")
        #expect(levels(of: name, at: viewer) == [0])
        // A newcomer is told. The publisher is told nothing meanwhile, which would be in the way of its return.
        let late = bench.join("late")
        #expect(levels(of: name, at: late) == [0])
        robot.forgetMessages()
        bench.advance(.seconds(10))
        bench.pull([robot, viewer, late])
        #expect(levels(of: name, at: robot).isEmpty)
        // Its network is back, first with a pong and then with frames.
        bench.unreachable = []
        bench.relay.answered(robot.id, at: bench.now)
        bench.run(camera, frames: 300, takers: [viewer, late])
        #expect(levels(of: name, at: viewer) == [0, 5])
        bench.pull(robot)
        #expect(levels(of: name, at: robot) == [0, 5] && bench.pings == 1)
    }

    @Test(
        "A publisher that is silent and answers keeps its level, and is pinged only while frames are expected",
        arguments: ["still", "disabled", "unwatched"]
    )
    func silentPublisher(kind: String) throws {
        let (bench, camera, viewer, name) = try room()
        let robot = camera.publisher
        switch kind {
        case "disabled": bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        case "unwatched": bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
        default: break
        }
        bench.advance(.seconds(10))
        let pings = bench.pings
        bench.advance(.seconds(60))
        bench.pull([robot, viewer])
        #expect(levels(of: name, at: viewer).isEmpty)
        if kind == "still" {
            #expect((8...20).contains(bench.pings - pings))
        } else {
            #expect(bench.pings <= 1 && bench.relay.nextDeadline == nil)
        }
    }

    @Test("A publisher that is gone before it was watched is found lost by the first who comes")
    func lostBefore() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        _ = try #require(bench.publish(robot))
        bench.pull(robot)
        bench.advance(.seconds(60))
        #expect(bench.pings == 0)
        bench.unreachable = [robot.id]
        let viewer = bench.join("viewer")
        bench.advance(.seconds(10))
        bench.pull(viewer)
        let name = try #require(robot.joined?.participant.id)
        #expect(levels(of: name, at: viewer) == [0])
    }

    // Looks came 2.97 s after an answer, and the next one 3 s later: 12 s passed before it was found lost.
    @Test(
        "It is pinged every three seconds, and found lost within ten, whatever the round trip and the timers",
        arguments: [0, 30, 300],
        [false, true]
    )
    func cadence(roundTrip: Int, isLate: Bool) throws {
        let (bench, camera, viewer, name) = try room()
        bench.unreachable = [camera.publisher.id]
        let start = bench.now
        var pings: [MonotonicInstant] = []
        var lastAnswer = start
        while levels(of: name, at: viewer).isEmpty, let due = bench.relay.nextDeadline, due < start + .seconds(90) {
            // A driver is called a little late, now more and now less.
            bench.now = due + .microseconds(isLate ? 300 + pings.count % 2 * 600 : 0)
            let before = bench.pings
            bench.relay.deadlineReached(at: bench.now)
            bench.takeEffects()
            bench.pull(viewer)
            guard bench.pings > before else { continue }
            pings.append(bench.now)
            guard bench.now < start + .seconds(40) else { continue }
            bench.now = bench.now + .milliseconds(roundTrip)
            bench.relay.answered(camera.publisher.id, at: bench.now)
            lastAnswer = bench.now
        }
        let gaps = zip(pings.dropFirst(), pings).map { $0.duration(since: $1) }
        #expect(gaps.count > 10 && gaps.allSatisfy { (.seconds(2.5)...(.seconds(4))).contains($0) }, "\(gaps)")
        #expect(levels(of: name, at: viewer) == [0] && bench.now.duration(since: lastAnswer) < .seconds(10))
    }

    // The ping was left out in an outage and never made up for: the level was 0 until the next frame.
    @Test("One that also receives, and whose ping fell into an outage, is not lost for good", arguments: [0, 2, 5.5])
    func pingInOutage(seconds: Double) throws {
        let (bench, camera, viewer, name) = try room()
        let robot = camera.publisher
        let other = try #require(bench.publish(viewer))
        let start = bench.now
        var isOwed = false
        while bench.now < start + .seconds(60) {
            let elapsed = bench.now.duration(since: start).seconds
            let isOut = elapsed > 2 && elapsed < 2 + seconds
            bench.frame(other)
            bench.unreachable = isOut ? [robot.id] : []
            bench.pull([robot, viewer])
            if !isOut {
                // The socket took what it was given; the peer hears of it when the outage is over.
                bench.acknowledge(robot)
                if isOwed { bench.relay.answered(robot.id, at: bench.now) }
                isOwed = false
            }
            let before = bench.pings
            bench.advance(.microseconds(33_333))
            if isOut, bench.pings > before { isOwed = true }
        }
        #expect((levels(of: name, at: viewer).last ?? 5) == 5 && bench.pings > 10, "\(levels(of: name, at: viewer))")
    }

    @Test("One whose large frame comes slowly is not lost, although its answer waits behind it")
    func slowFrame() throws {
        let (bench, camera, viewer, name) = try room()
        camera.wantsKeyframe = true
        camera.bytesPerFrame = 100_000
        bench.unreachable = [camera.publisher.id]
        for packet in camera.nextFrame() {
            bench.receive([packet], from: camera.publisher)
            bench.pull([camera.publisher, viewer])
            bench.advance(.milliseconds(500))
        }
        #expect(levels(of: name, at: viewer).isEmpty)
    }

    @Test("One that is gone before the first frame of a track that is enabled again is found lost")
    func enabledAgain() throws {
        let (bench, camera, viewer, name) = try room()
        bench.send(.disable(Disable(trackId: camera.track.id)), from: camera.publisher)
        bench.advance(.seconds(30))
        bench.send(.enable(Enable(trackId: camera.track.id)), from: camera.publisher)
        bench.unreachable = [camera.publisher.id]
        bench.advance(.seconds(15))
        bench.pull(viewer)
        #expect(levels(of: name, at: viewer) == [0])
    }
}
