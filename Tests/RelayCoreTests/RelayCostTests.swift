import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// What the relay does in a large room, counted in operations.
@Suite("Relay: cost", .timeLimit(.minutes(2)))
struct RelayCostTests {
    private static let subscriberCount = 1000
    private static let trackCount = 100

    /// A room of 1,000 in which ten robots have ten tracks each.
    private func largeRoom() throws -> (bench: RelayBench, cameras: [Camera], viewers: [Peer]) {
        let bench = RelayBench { $0.maximumParticipantsPerRoom = 1100 }
        let robots = (0..<10).map { bench.join("robot \($0)") }
        let viewers = (0..<Self.subscriberCount - 10).map { bench.enter("viewer \($0)") }
        bench.discard(viewers)
        var cameras: [Camera] = []
        for index in 0..<Self.trackCount {
            cameras.append(try #require(bench.publish(robots[index % 10], name: "\(index)")))
        }
        bench.pull(robots)
        bench.discard(viewers)
        return (bench, cameras, viewers)
    }

    /// Every deadline was looked for among all connections and tracks, twice, and every message was put into JSON for
    /// each of its receivers.
    @Test("With 1,000 subscribers and 100 tracks, deadlines and messages cost what they concern")
    func largeRoomCosts() throws {
        let (bench, cameras, viewers) = try largeRoom()
        let robots = Set(cameras.map { ObjectIdentifier($0.publisher) })
        #expect(robots.count == 10)
        for camera in cameras { bench.frame(camera) }
        bench.pull(cameras[..<10].map(\.publisher))
        bench.discard(viewers)

        func work(_ body: () -> Void) -> RelayWork {
            let before = bench.relay.work
            body()
            return bench.relay.work - before
        }
        // Each request sets one deadline, and the keyframe withdraws it.
        let request = work {
            bench.advance(.seconds(2))
            for camera in cameras {
                bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewers[0])
            }
        }
        #expect(request.encodings == 100 && request.deliveries == 100)
        #expect(request.deadlineSteps <= 100 * 20)
        let repeated = work { bench.advance(.seconds(1)) }
        #expect(repeated.encodings == 100 && repeated.deadlineSteps <= 100 * 40)
        let keyframe = work {
            bench.pull(cameras[0].publisher)
            bench.frame(cameras[0])
        }
        #expect(keyframe.deadlineSteps <= 20 && keyframe.wakes == 999 && keyframe.encodings == 0)
        bench.pull(cameras[..<10].map(\.publisher))
        let later = work {
            for number in 1..<100 { bench.frame(cameras[number]) }
        }
        #expect(later.wakes == 99 * 999 && later.deadlineSteps <= 99 * 20)
        // Each participant's network is looked at once in a while, until media have ceased.
        let review = work { bench.advance(.seconds(30)) }
        #expect(review.reviewSteps > 0 && review.reviewSteps <= 30 * 1000 * 40)
        // Nobody was sent anything for seconds: each hears so once of each track, and of its network a few times.
        #expect(review.deliveries <= (Self.trackCount + 6) * 1000)
        // Then only the publishers are looked at, whose frames are missed, each every three seconds.
        let silence = work { bench.advance(.seconds(30)) }
        #expect(silence.reviewSteps <= 30 / 3 * Self.trackCount * 20 && silence.deliveries == 0)

        // A signal to all is one message; a join costs its own messages and those that have changed since.
        let disable = work {
            bench.send(.disable(Disable(trackId: cameras[1].track.id)), from: cameras[1].publisher)
        }
        #expect(disable.encodings == 1 && disable.deliveries == 999)
        var late: [Peer] = []
        let first = work { late.append(bench.join("late 0")) }
        // `joined`, itself, `participantsComplete`, the ten robots with their tracks, and each track's `subscribed`.
        #expect(first.encodings <= 3 + 10 + Self.trackCount)
        let rest = work { for index in 1..<50 { late.append(bench.enter("late \(index)")) } }
        #expect(rest.encodings <= 49 * 3)
        bench.pull(late[49])
        for peer in [late[0], late[49]] {
            #expect(peer.joined != nil && peer.receivers.count == Self.trackCount && peer.problems.isEmpty)
        }
        let publish = work { _ = bench.publish(late[0], name: "new") }
        #expect(publish.encodings <= 5 && publish.deliveries <= 2 * 1100)
        let end = work { bench.close(late[1]) }
        #expect(end.encodings == 1 && end.deadlineSteps <= 20)
    }

    @Test("A participant learns the same about a large room as if it were told at once")
    func sameDescription() throws {
        let (bench, cameras, _) = try largeRoom()
        bench.send(.disable(Disable(trackId: cameras[3].track.id)), from: cameras[3].publisher)
        bench.send(.unpublish(Unpublish(trackId: cameras[4].track.id)), from: cameras[4].publisher)
        // The room was filled at once, beyond the default for its size.
        bench.advance(.seconds(1))
        let late = bench.join("late")
        let more = late.messages.compactMap { if case .participantConnected(let body) = $0 { body } else { nil } }
        let told = try #require(late.joined).participants + more.map(\.participant)
        let expected = (0..<10).map { "robot \($0)" } + (0..<990).map { "viewer \($0)" }
        #expect(told.map(\.identity) == expected)
        let tracks = told.flatMap(\.tracks)
        #expect(tracks.count == 99 && tracks.filter { !$0.enabled }.map(\.id) == [cameras[3].track.id])
        #expect(Set(tracks.map(\.id)) == Set(cameras.map(\.track.id)).subtracting([cameras[4].track.id]))
    }

    @Test("A queue of deadlines gives them out in order, moved and withdrawn as they are", arguments: 1...5)
    func deadlineQueue(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = DeadlineQueue()
        var expected: [Int: MonotonicInstant] = [:]
        for step in 0..<4000 {
            let id = SlotID(rawValue: Int.random(in: 0..<200, using: &generator))
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<6:
                let deadline = MonotonicInstant(nanoseconds: Int64.random(in: 0..<5000, using: &generator))
                queue.set(deadline, for: id)
                expected[id.rawValue] = deadline
            case 6..<8:
                queue.set(nil, for: id)
                expected[id.rawValue] = nil
            default:
                let now = MonotonicInstant(nanoseconds: Int64.random(in: 0..<5000, using: &generator))
                if let due = queue.popDue(at: now) {
                    let deadline = expected.removeValue(forKey: due.rawValue)
                    #expect(deadline.map { $0 <= now } == true)
                    #expect(expected.values.allSatisfy { $0 >= deadline ?? $0 })
                } else {
                    #expect(expected.values.allSatisfy { $0 > now })
                }
            }
            #expect(queue.next == expected.values.min(), "step \(step)")
        }
        #expect(queue.steps < 4000 * 20)
    }

    // One viewer of a thousand tracks had all of them compared for all their viewers, ten times a second, at one time.
    @Test("A viewer of hundreds of tracks holds nobody up, and its changes are compared a bounded number of times")
    func manyTracks() throws {
        let bench = RelayBench {
            $0.maximumTracksPerRoom = 400
            $0.deliveryBurst = 1_000_000
        }
        let robots = (0..<20).map { bench.join("robot \($0)") }
        let viewers = (0..<30).map { bench.enter("viewer \($0)") }
        var cameras: [Camera] = []
        for robot in robots {
            for track in 0..<15 { cameras.append(try #require(bench.publish(robot, name: "camera \(track)"))) }
        }
        bench.pull(viewers + robots)
        var (longest, before) = (0, bench.relay.work)
        for frame in 0..<120 {
            if frame == 60 { before = bench.relay.work }
            bench.frame(cameras[0])
            for viewer in viewers { bench.pull(viewer) }
            let queue = frame < 10 ? 0 : min(frame * 10, 300)
            bench.acknowledge(viewers[0], receivedAt: bench.now + .milliseconds(queue + frame % 3 * 40))
            // All that is due by then, at one time.
            for _ in 0..<3 {
                let start = bench.relay.work
                bench.relay.deadlineReached(at: bench.now + .milliseconds(33))
                longest = max(longest, (bench.relay.work - start).boundsSteps)
            }
            bench.advance(.milliseconds(33))
            bench.pull(robots)
        }
        let work = bench.relay.work - before
        #expect(longest <= 4096 + viewers.count, "\(longest) at one time")
        // Two seconds: each track at most once in 50 ms.
        #expect(work.boundsSteps <= 40 * cameras.count * viewers.count / 2, "\(work.boundsSteps)")
    }

    @Test("A thousand viewers on limited paths are compared a bounded number of times a second")
    func limitedViewers() throws {
        let bench = RelayBench { $0.maximumParticipantsPerRoom = 1100 }
        let robot = bench.join("robot")
        let viewers = (0..<Self.subscriberCount).map { bench.enter("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        camera.temporalLayerCount = 1
        bench.pull(viewers + [robot])
        var before = bench.relay.work
        for frame in 0..<120 {
            if frame == 60 { before = bench.relay.work }
            bench.frame(camera)
            for (index, viewer) in viewers.enumerated() {
                bench.pull(viewer)
                // A queue grows in each path, here more, there less.
                let queue = frame < 10 ? 0 : min(frame * (10 + index % 7), 300)
                bench.acknowledge(viewer, receivedAt: bench.now + .milliseconds(queue))
            }
            bench.advance(.milliseconds(33))
            bench.pull(robot)
        }
        let work = bench.relay.work - before
        #expect(camera.wanted?.bitrate != nil)
        // Two seconds, 50 comparisons of all at most in each.
        #expect(work.boundsSteps > 0 && work.boundsSteps <= 100 * Self.subscriberCount, "\(work.boundsSteps)")
        #expect(work.encodings < 60)
    }
}

/// What a crowd costs that receives a track in several encodings.
@Suite("Relay: cost of simulcast", .timeLimit(.minutes(2)))
struct SimulcastCostTests {
    private static let count = 1000

    private func work(_ bench: RelayBench, _ body: () throws -> Void) rethrows -> RelayWork {
        let before = bench.relay.work
        try body()
        return bench.relay.work - before
    }

    private func room() throws -> (bench: RelayBench, camera: Camera, viewers: [Peer], publishing: RelayWork) {
        let bench = RelayBench { $0.maximumParticipantsPerRoom = 1100 }
        let robot = bench.join("robot")
        let viewers = (0..<Self.count).map { bench.enter("viewer \($0)") }
        bench.discard(viewers)
        var camera: Camera?
        let publishing = work(bench) { camera = bench.publish(robot, layers: SimulcastTests.layers) }
        bench.discard(viewers)
        return (bench, try #require(camera), viewers, publishing)
    }

    /// The camera sends what is wanted of it, and all take it, for `frames` of 33 ms.
    private func run(
        _ bench: RelayBench,
        _ camera: Camera,
        _ viewers: [Peer],
        frames: Int,
        layers: Set<Int> = [0, 1, 2]
    ) {
        for _ in 0..<frames {
            for encoding in bench.encodings(of: camera)
            where encoding.wanted != nil && layers.contains(encoding.simulcastLayer) { bench.frame(encoding) }
            bench.discard(viewers)
            bench.advance(.milliseconds(33))
            bench.pull(camera.publisher)
        }
    }

    // Each of them was compared with all others: four million visits, while nothing was forwarded in any room.
    @Test("A thousand viewers that join a simulcast track, and change at one keyframe, are compared together")
    func allChange() throws {
        let (bench, camera, viewers, publishing) = try room()
        #expect(publishing.boundsSteps <= 40 * Self.count, "\(publishing.boundsSteps)")
        let small = Subscribe(trackId: camera.track.id, width: 320, height: 180)
        bench.send(.subscribe(small), from: viewers[0])
        run(bench, camera, viewers, frames: 60)
        #expect(bench.encodings(of: camera).map { $0.wanted != nil } == [true, false, true])
        // The publisher has no room for its largest encoding any more: all go down, at one keyframe.
        let down = work(bench) { run(bench, camera, viewers, frames: 150, layers: [0, 1]) }
        #expect(bench.encodings(of: camera)[1].framesSent > 30)
        #expect(down.boundsSteps <= 5 * 200 * Self.count, "\(down.boundsSteps)")
        #expect(down.encodings <= 2 * Self.count && bench.encodings(of: camera)[1].keyframes.count <= 3)
    }

    @Test("Wishes at the rate that a peer is allowed, of any size, cost a bounded number of comparisons")
    func hostileWishes() throws {
        let (bench, camera, viewers, _) = try room()
        run(bench, camera, viewers, frames: 30)
        let hostile = viewers[7]
        let sizes = [1, .max, 320, 400, 1280, 1 << 40, 2]
        let priorities = ["low", "high", "", String(repeating: "x", count: 500)]
        let cost = work(bench) {
            for step in 0..<300 {
                let wish = Subscribe(
                    trackId: camera.track.id,
                    width: sizes[step % sizes.count],
                    height: sizes[step * 3 % sizes.count],
                    frameRate: step % 2 == 0 ? 1e-300 : 1000,
                    priority: priorities[step % priorities.count],
                    paused: step % 11 == 0
                )
                bench.send(.subscribe(wish), from: hostile)
                bench.advance(.milliseconds(10))
                if step % 3 == 0 { run(bench, camera, viewers, frames: 1) }
            }
        }
        #expect(hostile.close == nil)
        // Six seconds, 50 looks at all in each, of four passes.
        #expect(cost.boundsSteps <= 7 * 50 * 4 * Self.count, "\(cost.boundsSteps)")
        #expect(cost.deliveries < 2500 && cost.encodings < 2500)
        // The others get everything as before, once the last wish is for every frame.
        run(bench, camera, viewers, frames: 15)
        let large = bench.encodings(of: camera)[2]
        #expect(large.wanted == WantedLayer(simulcastLayer: 2, temporalLayers: 1))
        #expect(large.keyframes.count <= 4)
    }

    @Test("If all viewers wish for next to nothing, the publisher is told so, and for more again")
    func absurdWishes() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, layers: SimulcastTests.layers))
        bench.pull([viewer, robot])
        let wish = Subscribe(trackId: camera.track.id, width: 1, height: .max, frameRate: 1e-300, priority: "none")
        bench.send(.subscribe(wish), from: viewer)
        bench.advance(.seconds(2))
        bench.pull([viewer, robot])
        let wanted = bench.encodings(of: camera).compactMap(\.wanted)
        let height = Dimensions.largestCodable.height
        #expect(wanted.allSatisfy { $0.width == 1 && $0.height == height && $0.frameRate == 1e-300 })
        bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewer)
        run(bench, camera, [viewer], frames: 60)
        #expect(bench.encodings(of: camera)[2].wanted == WantedLayer(simulcastLayer: 2, temporalLayers: 1))
        #expect(viewer.close == nil && robot.close == nil)
    }
}
