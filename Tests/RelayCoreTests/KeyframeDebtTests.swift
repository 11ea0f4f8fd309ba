import MediaCore
import RoomProtocol
import Testing

@testable import RelayCore

/// Keyframes for late joiners that change their mind: none is forgotten, and none is had for nothing.
@Suite("Relay: keyframes that late joiners wait for")
struct KeyframeDebtTests {
    private static let layers = [
        SimulcastLayer(simulcastLayer: 0, width: 320, height: 180, bitrate: 150_000),
        SimulcastLayer(simulcastLayer: 1, width: 1280, height: 720, bitrate: 2_000_000),
    ]

    // A viewer that resubscribes and acknowledges so that first a new keyframe seems sooner, and then at once.
    @Test("Acknowledgements bring no keyframe before the others need pay for one again")
    func backoff() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<2).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot, bytesPerFrame: 8000))
        bench.pull(viewers + [robot])
        bench.run(camera, frames: 40, takers: viewers)
        bench.acknowledge(viewers[0])
        let before = camera.keyframes.count
        for frame in 0..<1800 {
            if frame % 31 == 0 {
                bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewers[0])
                bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewers[0])
                let had = viewers[0].bytesTaken
                bench.pull(viewers[0], limit: 1)
                bench.acknowledge(viewers[0], bytes: had, receivedAt: bench.now)
                bench.acknowledge(viewers[0], bytes: had, receivedAt: bench.now + .milliseconds(100))
                bench.acknowledge(viewers[0], receivedAt: bench.now + .milliseconds(101))
            }
            bench.run(camera, frames: 1, takers: [viewers[1]])
        }
        // 1, 2, 4, … 32 s apart.
        let count = camera.keyframes.count - before
        #expect((2...8).contains(count), "\(count) keyframes in a minute")
    }

    // The request was kept for up to 32 s, and then the others paid for a keyframe that nobody needed.
    @Test("A viewer that goes, or pauses, while its request waits costs the others nothing", arguments: [false, true])
    func gone(pauses: Bool) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<3).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        bench.pull(viewers + [robot])
        bench.run(camera, frames: 60, takers: viewers)
        let (id, leaving) = (camera.track.id, viewers[2])
        // The first one is served at once, and the others wait.
        for _ in 0..<3 {
            bench.send(.keyframeRequest(KeyframeRequest(trackId: id)), from: leaving)
            bench.run(camera, frames: 10, takers: viewers)
        }
        let before = camera.keyframes.count
        if pauses {
            bench.send(.subscribe(Subscribe(trackId: id, paused: true)), from: leaving)
        } else {
            bench.send(.unsubscribe(Unsubscribe(trackId: id)), from: leaving)
        }
        bench.run(camera, frames: 1200, takers: viewers)
        #expect(before == 2 && camera.keyframes.count == before)
    }

    @Test("What a viewer asks for while the track is disabled does not make it wait later", arguments: [false, true])
    func disabled(pauses: Bool) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<2).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        bench.pull(viewers + [robot])
        bench.run(camera, frames: 60, takers: viewers)
        let id = camera.track.id
        bench.send(.disable(Disable(trackId: id)), from: robot)
        for _ in 0..<20 {
            if pauses {
                bench.send(.subscribe(Subscribe(trackId: id, paused: true)), from: viewers[0])
                bench.send(.subscribe(Subscribe(trackId: id)), from: viewers[0])
            } else {
                bench.send(.keyframeRequest(KeyframeRequest(trackId: id)), from: viewers[0])
            }
            bench.pull(viewers + [robot])
            bench.advance(.milliseconds(500))
        }
        bench.send(.enable(Enable(trackId: id)), from: robot)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 60, takers: viewers)
        let before = camera.keyframes.count
        bench.send(.keyframeRequest(KeyframeRequest(trackId: id)), from: viewers[0])
        bench.run(camera, frames: 3, takers: viewers)
        #expect(camera.keyframes.count == before + 1)
    }

    // It was to have the small encoding, so its request for the large one was forgotten; then it kept the large one.
    @Test("Who is given the encoding again that it was to leave gets its keyframe", arguments: [false, true])
    func forgotten(changesItsMind: Bool) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let other = bench.join("other")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 2000, layers: Self.layers))
        let large = bench.encodings(of: camera)[1]
        bench.pull([other, robot])
        for index in 0..<60 {
            bench.receive(large.nextFrame(), from: robot)
            bench.pull([other, robot])
            bench.acknowledge(other)
            bench.advance(.milliseconds(33))
            if index == 5 { bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: other) }
        }
        // Its path seems to deliver nothing of the cache.
        let joiner = bench.enter("joiner")
        bench.pull(joiner, limit: 1)
        bench.acknowledge(joiner, receivedAt: bench.now)
        bench.acknowledge(joiner, receivedAt: bench.now + .milliseconds(100))
        if changesItsMind {
            bench.send(.subscribe(Subscribe(trackId: camera.track.id, width: 320, height: 180)), from: joiner)
            bench.pull([joiner, robot])
            bench.advance(.milliseconds(100))
            bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: joiner)
        }
        let before = joiner.bytesTaken
        let keyframes = large.keyframes.count
        for _ in 0..<90 {
            bench.receive(large.nextFrame(), from: robot)
            bench.pull([other, robot, joiner])
            bench.acknowledge(other)
            bench.acknowledge(joiner)
            bench.advance(.milliseconds(33))
        }
        #expect(joiner.bytesTaken - before > 60 * 2000)
        #expect(large.keyframes.count - keyframes == 1)
    }
}
