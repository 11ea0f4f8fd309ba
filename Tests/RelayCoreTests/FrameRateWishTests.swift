import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import RelayCore

/// A subscriber that needs fewer frames than the others.
@Suite("Relay: a wish for a lower frame rate", .timeLimit(.minutes(1)))
struct FrameRateWishTests {
    private func wish(_ frameRate: Double?, _ camera: Camera, _ peer: Peer, _ bench: RelayBench) {
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, frameRate: frameRate)), from: peer)
        bench.advance(.seconds(1))
        bench.pull([camera.publisher, peer])
    }

    @Test("The publisher is asked for as many temporal layers as the wish needs beside the others, and no longer")
    func layers() throws {
        let bench = RelayBench()
        let (robot, all, some) = (bench.join("robot"), bench.join("all"), bench.join("some"))
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, all, some])
        #expect(camera.track.frameRate == 30)
        for (frameRate, layers) in [(15.0, 2), (14, 3), (1, 3), (24, 1), (20, 2), (30, 1), (100, 1), (10, 3)] {
            wish(frameRate, camera, some, bench)
            #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: layers), "\(frameRate)")
        }
        // Beside one that needs 15, 10 is not worth much less, and 5 is.
        wish(15, camera, all, bench)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, frameRate: 15, temporalLayers: 2))
        wish(12, camera, some, bench)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, frameRate: 15, temporalLayers: 1))
        wish(nil, camera, all, bench)
        wish(nil, camera, some, bench)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
    }

    // A wish for 15 of a track that was announced with 15 and came at 30 was ignored beside others.
    @Test("A track that comes at another rate than at first is asked for layers by that rate; a wrong rate is refused")
    func otherRate() throws {
        let bench = RelayBench()
        let (robot, all, some) = (bench.join("robot"), bench.join("all"), bench.join("some"))
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, all, some])
        wish(30, camera, some, bench)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
        for (rate, layers) in [(60.0, 2), (15, 1), (120, 3), (30, 1)] {
            bench.send(.updateTrack(UpdateTrack(trackId: camera.track.id, frameRate: rate)), from: robot)
            bench.advance(.seconds(1))
            bench.pull([robot, some])
            #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: layers), "\(rate)")
            // Those who come now are told the present rate.
            let late = bench.join("late at \(rate)", automatic: false)
            #expect(late.joined?.participants.flatMap(\.tracks).map(\.frameRate) == [rate])
        }
        for rate in [0, -1, 1000.5] {
            bench.send(.updateTrack(UpdateTrack(trackId: camera.track.id, frameRate: rate)), from: robot)
        }
        bench.pull(robot)
        #expect(robot.errors == Array(repeating: .invalidArgument, count: 3) && robot.close == nil)
        let last = bench.join("last", automatic: false)
        #expect(last.joined?.participants.flatMap(\.tracks).map(\.frameRate) == [30])
    }

    @Test(
        "The subscriber gets evenly spaced frames, no more than it wishes, and the others all; it does not lag",
        arguments: [1.0, 5, 7.5, 10, 15, 20, 25, 30, 60],
        [0, 5]
    )
    func forwarding(frameRate: Double, jitter: Int) throws {
        let bench = RelayBench()
        var generator = SeededGenerator(seed: UInt64(frameRate * 10) + UInt64(jitter))
        let (robot, all, some) = (bench.join("robot"), bench.join("all"), bench.join("some"))
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: [all, some])
        wish(frameRate, camera, some, bench)
        let before = some.receiver(camera)?.wholeFrames.count ?? 0
        var (times, count, late): ([Int], Int, Int) = ([], before, 0)
        for frame in 0..<300 {
            bench.frame(camera)
            bench.pull([all, some, robot])
            let now = some.receiver(camera)?.wholeFrames.count ?? 0
            if now > count { times.append(33 * frame + late) }
            count = now
            // When the next one is due, and how late it comes.
            let next = jitter == 0 ? 0 : Int.random(in: 0...jitter, using: &generator)
            bench.advance(.milliseconds(33 + next - late))
            late = next
        }
        // Layer 0 has a quarter of the frames.
        let rate = Double(times.count) / (300 * 0.033)
        #expect(rate <= max(frameRate * 1.34, 7.7) && rate >= min(7.4, frameRate * 0.6), "\(rate)")
        #expect(rate >= (frameRate >= 30 ? 30 : frameRate >= 15 ? 14.8 : 7.4), "\(rate)")
        // The first ones may follow a frame of before the wish.
        let steady = times.dropFirst(2)
        let gaps = zip(steady, steady.dropFirst()).map { $1 - $0 }
        let (shortest, longest) = (gaps.min() ?? 0, gaps.max() ?? 0)
        #expect(longest - shortest <= 33 + 2 * jitter, "\(shortest) to \(longest) ms")
        #expect(all.receiver(camera)?.wholeFrames.count == camera.framesSent)
        #expect(all.allProblems.isEmpty && some.allProblems.isEmpty)
        let counts = try #require(bench.counts(camera, some))
        #expect(counts.dropped[.topLayerLate] == 0 && counts.dropped[.middleLayerLate] == 0)
        // Without the wish, everything comes again as soon as the layers go on.
        wish(nil, camera, some, bench)
        bench.run(camera, frames: 16, takers: [all, some])
        let after = some.receiver(camera)?.wholeFrames.count ?? 0
        bench.run(camera, frames: 30, takers: [all, some])
        #expect(some.receiver(camera)?.wholeFrames.count == after + 30 && some.allProblems.isEmpty)
    }
}
