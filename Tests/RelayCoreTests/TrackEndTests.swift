import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import RelayCore

/// What viewers are sent of a track that ends, when its end came right behind its last frames.
@Suite("The last frames of a track")
struct TrackEndTests {
    /// How a track ends.
    enum Ending: CaseIterable {
        case unpublished, left, vanished, replaced, shutDown
    }

    private func end(_ camera: Camera, _ ending: Ending, on bench: RelayBench) {
        switch ending {
        case .unpublished: bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: camera.publisher)
        case .left: bench.send(.leave(Leave(reason: "done", reconnect: false)), from: camera.publisher)
        case .vanished: bench.close(camera.publisher)
        case .replaced: _ = bench.enter("robot")
        case .shutDown: bench.relay.shutDown(at: bench.now)
        }
    }

    @Test(
        "A viewer whose socket took nothing for a moment is sent them, before it hears of the end",
        arguments: Ending.allCases
    )
    func sentBefore(ending: Ending) throws {
        let bench = RelayBench()
        let (robot, viewer, paused) = (bench.join("robot"), bench.join("viewer"), bench.join("paused"))
        let camera = try #require(bench.publish(robot, bytesPerFrame: 3000))
        camera.temporalLayerCount = 1
        bench.run(camera, frames: 3, takers: [viewer, paused])
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: true)), from: paused)
        bench.pull(paused)
        let beforePause = paused.packets.count
        for _ in 0..<3 {
            bench.frame(camera)
            bench.advance(.milliseconds(33))
        }
        viewer.forgetMessages()
        end(camera, ending, on: bench)
        bench.frame(camera)
        while viewer.receiver(camera)?.wholeFrames.last != 5, bench.isAwake(viewer) { bench.pull(viewer, limit: 1) }
        #expect(viewer.messages.isEmpty)
        bench.pull([viewer, paused])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2, 3, 4, 5])
        #expect(!viewer.messages.isEmpty && viewer.allProblems.isEmpty)
        #expect(paused.packets.count == beforePause && paused.allProblems.isEmpty)
        #expect(bench.relay.statistics.storedBytes == 0)
    }

    @Test("They count as sent, unless their viewer goes before it takes them", arguments: [true, false])
    func counted(isTaken: Bool) throws {
        let bench = RelayBench()
        let (robot, viewer) = (bench.join("robot"), bench.join("viewer"))
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: [viewer])
        let before = camera.packets.count
        bench.frame(camera)
        end(camera, .unpublished, on: bench)
        if isTaken { bench.pull(viewer) }
        bench.close(viewer)
        bench.takeEffects()
        let counts = bench.notices.compactMap { if case .left("viewer", _, let counts) = $0 { counts } else { nil } }
        let last = camera.packets.count - before
        #expect(counts.map(\.forwarded) == [isTaken ? before + last : before])
        #expect(counts.map(\.dropped.total) == [isTaken ? 0 : last])
    }

    @Test("What is too late, or more than the path takes soon, is left out, and the end is told at once")
    func bounded() throws {
        let bench = RelayBench()
        let (robot, viewer) = (bench.join("robot"), bench.join("viewer"))
        let late = try #require(bench.publish(robot, name: "late"))
        let large = try #require(bench.publish(robot, name: "large", bytesPerFrame: 60_000))
        large.temporalLayerCount = 1
        for camera in [late, large] { bench.run(camera, frames: 1, takers: [viewer]) }
        bench.frame(late)
        bench.advance(.milliseconds(500))
        for _ in 0..<10 { bench.frame(large) }
        for camera in [late, large] { end(camera, .unpublished, on: bench) }
        bench.pull(viewer)
        #expect(viewer.receiver(late)?.wholeFrames == [0])
        // Frames are whole: the one that passes the limit is sent to its end.
        #expect(viewer.receiver(large)?.wholeFrames == [0, 1, 2, 3])
        #expect(viewer.allProblems.isEmpty && bench.relay.statistics.storedBytes == 0)
    }

    @Test("On a thin path, they must not delay what else there is by more than half a second", arguments: [1, 3])
    func thinPath(temporalLayers: Int) throws {
        var room = try EmulatedRoom(cap: 2_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 200_000)] }
        room.run(10_000)
        room.camera.temporalLayerCount = temporalLayers
        room.camera.bytesPerFrame = 30_000
        for _ in 0..<3 { room.bench.frame(room.camera) }
        end(room.camera, .unpublished, on: room.bench)
        #expect(room.bench.relay.waitingSignaling < DataSize(bytes: 15_000))
        room.run(2000)
        let messages = room.viewers[0].peer.messages
        #expect(messages.contains { if case .trackUnpublished = $0 { true } else { false } })
    }

    @Test("A viewer that takes nothing of tracks that come and go keeps little of them, and is not let go for it")
    func takesNothing() throws {
        let bench = RelayBench { $0.maximumOutbox = .kibibytes(256) }
        let (robot, viewer) = (bench.join("robot"), bench.join("viewer"))
        var published = 0
        for size in [1_000_000, 60_000, 60_000, 60_000, 60_000] {
            let camera = try #require(bench.publish(robot, bytesPerFrame: size))
            camera.temporalLayerCount = 1
            for _ in 0..<2 { bench.frame(camera) }
            published += camera.packets.reduce(0) { $0 + $1.count }
            end(camera, .unpublished, on: bench)
            bench.pull(robot)
            bench.advance(.milliseconds(33))
            #expect(bench.relay.waitingSignaling < .kibibytes(160))
        }
        #expect(bench.relay.waitingSignaling > .kibibytes(110), "of \(published) bytes")
        bench.pull(viewer)
        #expect(viewer.errors.isEmpty && viewer.close == nil)
        #expect(viewer.messages.count { if case .trackUnpublished = $0 { true } else { false } } == 5)
        #expect(bench.relay.statistics.storedBytes == 0 && bench.relay.waitingSignaling == .zero)
    }
}
