import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// Viewers whose links have outages again and again, and what the others pay for them.
@Suite("Relay: repeated outages", .timeLimit(.minutes(1)))
struct OutageTests {
    private func fastViewer(_ bench: RelayBench, _ name: String) -> EmulatedViewer {
        EmulatedViewer(bench, name, bitsPerSecond: 50_000_000, delay: .milliseconds(5))
    }

    /// The times without a frame of more than 300 ms, in milliseconds, of a viewer from `start` on.
    private func gaps(_ viewer: EmulatedViewer, from start: Int = 0, to end: Int) -> [Int] {
        let times = viewer.frames.map(\.time).filter { $0 >= start } + [end]
        return zip(times, times.dropFirst()).map { $1 - $0 }.filter { $0 > 300 }
    }

    /// Runs a room whose last viewer has an outage of 1.5 s in every `period` milliseconds from 3 s to 60 s.
    private func run(_ room: inout EmulatedRoom, period: Int) {
        let viewer = room.viewers[room.viewers.count - 1]
        let rate = viewer.bitsPerSecond
        room.run(100_000) { millisecond in
            let isOut = (3000..<60_000).contains(millisecond) && (millisecond - 3000) % period < 1500
            viewer.bitsPerSecond = isOut ? 0 : rate
        }
        viewer.bitsPerSecond = rate
    }

    // Each outage doubled the wait for the next keyframe: the picture stood for 28 s, until 12 s after the last outage.
    @Test("A viewer is frozen for little longer than its link's outages last", arguments: [2500, 4000, 8000, 12_000])
    func alone(period: Int) throws {
        var room = try EmulatedRoom(cap: 500_000) { bench in
            [EmulatedViewer(bench, "viewer", bitsPerSecond: 2_000_000, delay: .milliseconds(20))]
        }
        run(&room, period: period)
        let viewer = room.viewers[0]
        let gaps = gaps(viewer, to: 100_000)
        let outages = (57_000 + period - 1) / period
        #expect(gaps.max() ?? 0 < 2500, "\(gaps)")
        #expect(gaps.reduce(0, +) < outages * 2200, "\(gaps)")
        #expect(self.gaps(viewer, from: 62_000, to: 100_000) == [])
        #expect(viewer.peer.allProblems.isEmpty)
    }

    // It was sent all frames since the keyframe that the outage held up, each more than a second old.
    @Test("After an outage that begins behind a keyframe, the picture is live soon", arguments: [60, 90, 120])
    func behindKeyframe(delay: Int) throws {
        var room = try EmulatedRoom(cap: 500_000) { bench in
            [EmulatedViewer(bench, "viewer", bitsPerSecond: 450_000, delay: .milliseconds(20))]
        }
        let (viewer, bench, camera) = (room.viewers[0], room.bench, room.camera)
        let (asked, back) = (10_000, 11_300)
        room.run(20_000) { millisecond in
            if millisecond == asked {
                bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer.peer)
            }
            viewer.bitsPerSecond = (asked + delay..<back).contains(millisecond) ? 0 : 450_000
        }
        let late = viewer.frames.filter { $0.time > back + 400 && $0.age > 700 }
        #expect(late.isEmpty, "\(late.count)")
    }

    @Test("Beside others it waits a few seconds more, and they get everything in time", arguments: [2500, 4000, 8000])
    func besideOthers(period: Int) throws {
        var room = try EmulatedRoom(cap: 500_000) { bench in
            [
                fastViewer(bench, "0"), fastViewer(bench, "1"),
                EmulatedViewer(bench, "viewer", bitsPerSecond: 2_000_000, delay: .milliseconds(20)),
            ]
        }
        run(&room, period: period)
        let viewer = room.viewers[2]
        let gaps = gaps(viewer, to: 100_000)
        #expect(gaps.max() ?? 0 < 6500, "\(gaps)")
        if period >= 4000 { #expect(gaps.max() ?? 0 < 2500, "\(gaps)") }
        #expect(self.gaps(viewer, from: 66_000, to: 100_000) == [])
        #expect(room.camera.keyframes.count <= 3 + 60 / 4, "\(room.camera.keyframes.count)")
        for other in room.viewers.prefix(2) {
            #expect(other.frames.count >= room.camera.framesSent - 2)
            #expect(other.ages.map(\.age).max() ?? .infinity < 30)
            #expect(other.peer.allProblems.isEmpty)
        }
    }
}
