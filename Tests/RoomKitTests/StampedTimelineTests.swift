import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("Times of pushed frames")
struct StampedTimelineTests {
    private let now = MonotonicInstant(microseconds: 60_000_000)

    private func milliseconds(_ stamps: [Int], at now: MonotonicInstant? = nil) -> [Int] {
        var timeline = StampedTimeline()
        return stamps.map { stamp in
            let time = timeline.time(of: MonotonicInstant(microseconds: Int64(stamp) * 1000), at: now ?? self.now)
            return Int(time.microseconds / 1000)
        }
    }

    // All frames got the time of the last one until their timestamps had caught up with it, and viewers saw none of
    // them.
    @Test("After timestamps that jump back, times go on as the timestamps do")
    func jump() {
        let now = MonotonicInstant(microseconds: 50_100_000)
        let twice = [50_000, 40_000, 40_040, 30_000, 30_040]
        #expect(milliseconds([50_000, 50_033, 40_000, 40_033], at: now) == [50_000, 50_033, 50_033, 50_066])
        #expect(milliseconds(twice, at: now) == [50_000, 50_000, 50_040, 50_040, 50_080])
    }

    @Test("Once timestamps have caught up, they count as they are")
    func caughtUp() {
        let now = MonotonicInstant(microseconds: 50_100_000)
        #expect(milliseconds([50_000, 49_990, 50_033, 50_066], at: now) == [50_000, 50_000, 50_033, 50_066])
    }

    @Test("A timestamp in the future counts as now")
    func future() {
        #expect(milliseconds([59_990, 200_000, 59_000, 59_020]) == [59_990, 60_000, 60_000, 60_000])
    }

    // Viewers were told that the frames were as old as the machine has been up.
    @Test("Timestamps of long ago count as now, and go on from there as the timestamps do")
    func longAgo() {
        var timeline = StampedTimeline()
        func time(_ stamp: Int64, at now: Int64) -> Int64 {
            let instants = [stamp, now].map { MonotonicInstant(microseconds: $0 * 1000) }
            return timeline.time(of: instants[0], at: instants[1]).microseconds / 1000
        }
        // A clip's, which come with a jitter.
        #expect(time(0, at: 60_000) == 60_000)
        #expect(time(40, at: 60_045) == 60_040)
        #expect(time(80, at: 60_081) == 60_080)
        // They run slower than ours: at some time they are far behind.
        #expect(time(120, at: 61_000) == 60_120)
        #expect(time(160, at: 61_170) == 61_170)
        // It stopped for five seconds: the frames after that were as much too old as long as they came.
        #expect(time(200, at: 66_200) == 66_200)
        #expect(time(240, at: 66_245) == 66_240)
        // They are true again, and then long ago after a pause.
        #expect(time(70_200, at: 70_201) == 70_200)
        #expect(time(75_000, at: 90_000) == 90_000)
        #expect(time(75_040, at: 90_041) == 90_040)
        // An encoder that was started anew after a pause.
        #expect(time(0, at: 200_000) == 200_000)
    }

    @Test("Whatever the timestamps are, times neither go back nor lie too far away", arguments: UInt64(1)...50)
    func anything(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var timeline = StampedTimeline()
        var now = now
        var last = MonotonicInstant(nanoseconds: .min)
        for _ in 0..<300 {
            now += .milliseconds(Int.random(in: 0...40, using: &generator))
            let near = now.nanoseconds + Int64.random(in: -20_000_000_000...1_000_000_000, using: &generator)
            let far = Int64.random(in: .min ... .max, using: &generator)
            let stamp = Int.random(in: 0..<5, using: &generator) == 0 ? far : near
            let time = timeline.time(of: MonotonicInstant(nanoseconds: stamp), at: now)
            #expect(time >= last && time <= now && now.duration(since: time) <= .seconds(10))
            last = time
        }
    }
}
