import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: keyframe requests", .timeLimit(.minutes(1)))
struct RelayKeyframeTests {
    private func room(viewers count: Int) throws -> (bench: RelayBench, camera: Camera, viewers: [Peer]) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<count).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        bench.pull(viewers + [robot])
        bench.run(camera, frames: 40, takers: viewers)
        return (bench, camera, viewers)
    }

    private func request(_ camera: Camera) -> ClientMessage {
        .keyframeRequest(KeyframeRequest(trackId: camera.track.id))
    }

    @Test("A subscriber's request reaches the publisher, and it alone is skipped to the keyframe")
    func request() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        bench.send(request(camera), from: viewers[1])
        bench.frame(camera)
        bench.pull(viewers + [camera.publisher])
        #expect(viewers[1].receiver(camera)?.wholeFrames.last == 39)
        #expect(camera.publisher.keyframeRequests == 1)
        bench.run(camera, frames: 3, takers: viewers)
        #expect(viewers[1].receiver(camera)?.wholeFrames.suffix(4) == [39, 41, 42, 43])
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0...43))
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    // A recorder that began late stopped the live picture until the keyframe.
    @Test("A subscriber that can decode what comes asks for a keyframe, and gets every frame up to it too")
    func requestWithoutSkip() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        let request = ClientMessage.keyframeRequest(KeyframeRequest(trackId: camera.track.id, skip: false))
        bench.frame(camera)
        bench.send(request, from: viewers[1])
        bench.frame(camera)
        bench.run(camera, frames: 20, takers: viewers)
        #expect(camera.publisher.keyframeRequests == 1 && camera.keyframes.count == 2)
        for viewer in viewers { #expect(viewer.receiver(camera)?.wholeFrames == Array(0...61)) }
        // A real need afterwards is served as the first of its kind.
        bench.advance(.seconds(1))
        bench.send(self.request(camera), from: viewers[1])
        bench.run(camera, frames: 3, takers: viewers)
        #expect(camera.keyframes.count == 3)
        // One that keeps on asking is backed off.
        let before = camera.keyframes.count
        for _ in 0..<600 {
            bench.send(request, from: viewers[1])
            bench.run(camera, frames: 1, takers: viewers)
        }
        #expect((2...5).contains(camera.keyframes.count - before), "\(camera.keyframes.count - before) in 20 s")
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    // Each of them had a backoff of its own, and all paid for a keyframe a second.
    @Test("One who comes, asks and goes again and again gets few keyframes, and the first who asks gets one at once")
    func comingAndGoing() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        let before = camera.keyframes.count
        for round in 0..<60 {
            let visitor = bench.join("visitor \(round)")
            bench.run(camera, frames: 5, takers: viewers + [visitor])
            bench.send(request(camera), from: visitor)
            bench.run(camera, frames: 5, takers: viewers + [visitor])
            if round == 0 { #expect(camera.keyframes.count >= before + 1) }
            bench.close(visitor)
        }
        // 20 s: those that come and find no cached keyframe, and requests after 1, 2, 4, 8 … seconds.
        #expect(camera.keyframes.count - before <= 13, "\(camera.keyframes.count - before)")
        #expect(viewers[0].allProblems.isEmpty)
    }

    @Test("Requests of many within a second are one")
    func coalesced() throws {
        let (bench, camera, viewers) = try room(viewers: 50)
        for viewer in viewers {
            bench.send(request(camera), from: viewer)
            bench.run(camera, frames: 1, takers: viewers)
        }
        bench.run(camera, frames: 10, takers: viewers)
        #expect(camera.keyframes.count == 3, "one at the beginning, and two in some two seconds")
        #expect(camera.publisher.keyframeRequests == 2)
    }

    @Test("One who asks all the time has a keyframe after 1, 2, 4 … seconds; one who asks once has it at once")
    func backedOff() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        var seconds: [Double] = []
        let start = bench.now
        for _ in 0..<600 {
            bench.send(request(camera), from: viewers[0])
            let before = camera.keyframes.count
            bench.run(camera, frames: 1, takers: viewers)
            if camera.keyframes.count > before { seconds.append(bench.now.duration(since: start).seconds) }
        }
        #expect(seconds.map { $0.rounded() } == [0, 1, 3, 7, 15])
        bench.send(request(camera), from: viewers[1])
        bench.run(camera, frames: 2, takers: viewers)
        #expect(camera.keyframes.count == 7)
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    @Test("One who asks all the time and is the only one that receives the track has a keyframe a second, not more")
    func alone() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        let before = camera.keyframes.count
        for _ in 0..<600 {
            bench.send(request(camera), from: viewers[0])
            bench.run(camera, frames: 1, takers: viewers)
        }
        #expect((18...20).contains(camera.keyframes.count - before))
        #expect(viewers[0].allProblems.isEmpty)
    }

    @Test("When the last of the others goes, a keyframe that was put off for them comes at once")
    func lastOther() throws {
        let (bench, camera, viewers) = try room(viewers: 3)
        for _ in 0..<300 {
            bench.send(request(camera), from: viewers[0])
            bench.run(camera, frames: 1, takers: viewers)
        }
        // Keyframes at 0, 1, 3 and 7 s, so that the next one was to come at 15 s.
        let before = camera.keyframes.count
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewers[1])
        bench.run(camera, frames: 10, takers: viewers)
        #expect(camera.keyframes.count == before)
        bench.close(viewers[2])
        bench.run(camera, frames: 2, takers: [viewers[0]])
        #expect(camera.keyframes.count == before + 1)
        // One that waits for nothing costs nothing.
        let (second, other, calm) = try room(viewers: 2)
        for _ in 0..<300 {
            second.send(request(other), from: calm[0])
            second.run(other, frames: 1, takers: calm)
        }
        let count = other.keyframes.count
        second.close(calm[0])
        second.run(other, frames: 2, takers: [calm[1]])
        #expect(other.keyframes.count == count)
    }

    /// A backoff that began anew with each subscription would allow a keyframe a second, for ever.
    @Test("Subscribing anew does not begin the backoff anew")
    func resubscribing() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        for _ in 0..<600 {
            bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewers[0])
            bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewers[0])
            bench.pull(viewers[0])
            bench.send(request(camera), from: viewers[0])
            bench.run(camera, frames: 1, takers: viewers)
        }
        // The cache serves the joins, a keyframe each three seconds at the most, beside those of the backoff.
        #expect(camera.keyframes.count <= 1 + 5 + 7)
        #expect(viewers[1].receiver(camera)?.wholeFrames == Array(0..<640))
    }

    /// A keyframe that is thrown away must be asked for again, a second later.
    @Test("A request that crosses its keyframe does not lose it", arguments: [0, 1, 3])
    func crossing(_ packetsTaken: Int) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let other = bench.join("other")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 10_000))
        bench.pull([robot, viewer, other])
        bench.run(camera, frames: 40, takers: [viewer, other])
        bench.send(request(camera), from: viewer)
        bench.pull(robot)
        bench.frame(camera)
        // Three packets of the keyframe, of which the socket takes some; then the client's second request comes.
        for _ in 0..<packetsTaken { bench.pull(viewer, limit: 1) }
        bench.send(request(camera), from: viewer)
        bench.run(camera, frames: 20, takers: [viewer, other])
        let frames = try #require(viewer.receiver(camera)).wholeFrames
        #expect(frames.contains(40))
        #expect(frames.contains(41) == (packetsTaken < 3), "one that was sent whole cannot be what was meant")
        #expect(viewer.allProblems.isEmpty && other.allProblems.isEmpty)
    }

    @Test("A request that nothing answers is repeated each second, and no more after the keyframe")
    func unanswered() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        bench.send(request(camera), from: viewers[0])
        for expected in 1...4 {
            bench.pull(camera.publisher)
            #expect(camera.publisher.keyframeRequests == expected)
            bench.advance(.seconds(1))
        }
        bench.pull(camera.publisher)
        camera.publisher.forgetMessages()
        bench.run(camera, frames: 1, takers: viewers)
        let steps = bench.relay.work.deadlineSteps
        bench.advance(.seconds(10))
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 0 && bench.relay.work.deadlineSteps == steps)
    }

    @Test("A first subscriber's keyframe that does not come is asked for after a second")
    func firstSubscriber() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        let viewer = bench.join("viewer")
        bench.pull([robot, viewer])
        #expect(robot.keyframeRequests == 0)
        bench.advance(.milliseconds(999))
        bench.pull(robot)
        #expect(robot.keyframeRequests == 0)
        bench.advance(.milliseconds(2))
        bench.pull(robot)
        #expect(robot.keyframeRequests == 1)
        bench.run(camera, frames: 1, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [0])
    }

    @Test("Requests for tracks that are not received are refused")
    func foreign() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        let stranger = bench.join("stranger", automatic: false)
        bench.send(request(camera), from: stranger)
        bench.send(request(camera), from: camera.publisher)
        bench.pull([stranger, camera.publisher])
        #expect(stranger.errors == [.notFound] && camera.publisher.errors == [.notFound])
        #expect(camera.publisher.keyframeRequests == 0)
        _ = viewers
    }
}
