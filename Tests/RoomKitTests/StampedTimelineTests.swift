import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("Times of pushed frames")
struct StampedTimelineTests {
    private let now = MonotonicInstant(microseconds: 100_000_000)

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
        #expect(milliseconds([50_000, 50_033, 40_000, 40_033, 40_066]) == [50_000, 50_033, 50_033, 50_066, 50_099])
        #expect(milliseconds([50_000, 40_000, 40_040, 30_000, 30_040]) == [50_000, 50_000, 50_040, 50_040, 50_080])
    }

    @Test("Once timestamps have caught up, they count as they are")
    func caughtUp() {
        #expect(milliseconds([50_000, 49_990, 50_033, 50_066]) == [50_000, 50_000, 50_033, 50_066])
    }

    @Test("A timestamp in the future counts as now")
    func future() {
        #expect(milliseconds([99_990, 200_000, 99_000, 99_020]) == [99_990, 100_000, 100_000, 100_000])
    }

    @Test("Whatever the timestamps are, times neither go back nor lie in the future", arguments: UInt64(1)...50)
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
            #expect(time >= last && time <= now)
            last = time
        }
    }
}
