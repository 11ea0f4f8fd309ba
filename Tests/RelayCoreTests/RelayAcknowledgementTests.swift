import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

@Suite("Relay: acknowledgements", .timeLimit(.minutes(1)))
struct RelayAcknowledgementTests {
    @Test("The end of each published frame is acknowledged, with all bytes that the publisher has sent")
    func published() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 20_000))
        bench.pull([robot, viewer])
        #expect(robot.acknowledgements.isEmpty, "before any media")
        for frame in 1...50 {
            bench.frame(camera)
            bench.pull([robot, viewer])
            bench.advance(.milliseconds(33))
            #expect(robot.acknowledgements.count == frame)
            let last = try #require(robot.acknowledgements.last)
            #expect(last.cumulativeBytes == UInt64(robot.bytesSent))
            #expect(last.trackAlias == camera.track.alias && last.frameNumber == UInt32(frame - 1))
            #expect(last.firstByteTime != nil && last.lastByteTime == last.receiveTime)
        }
        #expect(viewer.acknowledgements.isEmpty)
        #expect(robot.close == nil)
    }

    @Test("Packets that the relay drops count too: of a track that nobody receives, and under an unknown alias")
    func droppedPackets() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        bench.frame(camera)
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        bench.frame(camera)
        bench.pull(robot)
        #expect(robot.acknowledgements.last?.cumulativeBytes == UInt64(robot.bytesSent))
    }

    @Test("An acknowledgement goes out before waiting signaling, and only one waits however many frames came")
    func beforeSignaling() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        _ = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull(robot)
        for _ in 0..<20 {
            bench.send(.timeSync(TimeSync(clientTime: 1)), from: robot)
            bench.frame(camera)
            bench.advance(.milliseconds(33))
        }
        let first = bench.relay.nextMessage(for: robot.id, at: bench.now)
        guard case .exclusive = first?.message else {
            Issue.record("something else came first")
            return
        }
        bench.pull(robot)
        #expect(robot.acknowledgements.isEmpty, "a second one")
    }

    @Test("A publisher is woken for an acknowledgement")
    func waking() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        bench.pull(robot)
        _ = bench.takeAwakened()
        bench.frame(camera)
        #expect(bench.takeAwakened() == [robot.id])
    }

    @Test("A subscriber of many tracks may acknowledge a thousand times a second beside its own media")
    func manyAcknowledgements() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let other = bench.join("other")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, other])
        for millisecond in 0..<20_000 {
            bench.acknowledge(robot)
            if millisecond % 33 == 0 { bench.frame(camera) }
            bench.pull([robot, other])
            bench.advance(.milliseconds(1))
        }
        #expect(robot.close == nil && bench.relay.statistics.disregardedAcknowledgements == 0)
    }

    @Test("A flood of acknowledgements ends the session; lies are counted and change nothing for others")
    func flood() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let liar = bench.join("liar")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer, liar])
        var generator = SeededGenerator(seed: 3)
        var count = 0
        while liar.close == nil, count < 100_000 {
            count += 1
            bench.acknowledge(liar, bytes: Int.random(in: 1_000_000...Int.max, using: &generator))
            if count % 200 == 0 {
                bench.advance(.milliseconds(33))
                bench.frame(camera)
                bench.pull([robot, viewer, liar])
            }
        }
        #expect(liar.close?.code == .limitReached && count > 6000 && count < 20_000)
        #expect(bench.relay.statistics.disregardedAcknowledgements >= 6000)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
        #expect(viewer.close == nil && viewer.allProblems.isEmpty)
    }
}
