import MediaCore
import Testing

@testable import VP8Codec

@Suite("Encoding timeline", .timeLimit(.minutes(1)))
struct EncodingTimelineTests {
    @Test(
        "Times begin at 0 and increase by what the timestamps do, within bounds",
        arguments: [
            ([5_000, 5_040, 5_060], [0, 40_000, 60_000]),
            ([5_000, 5_000, 4_000, 4_100], [0, 33_333, 66_666, 166_666]),
            ([-7, 60_000_000, 60_000_001], [0, 10_000_000, 10_001_000]),
        ] as [([Int64], [Int64])]
    )
    func times(milliseconds: [Int64], expected: [Int64]) {
        var timeline = EncodingTimeline()
        let interval = Duration.microseconds(33_333)
        let slots = milliseconds.map { milliseconds in
            timeline.slot(at: MonotonicInstant(microseconds: milliseconds * 1000), interval: interval)
        }
        #expect(slots.map(\.start) == expected)
        #expect(slots.allSatisfy { $0.duration == 33_333 })
    }

    @Test("A leap over the whole clock counts as the longest interval")
    func leap() {
        var timeline = EncodingTimeline()
        let interval = Duration.milliseconds(40)
        _ = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        let slot = timeline.slot(at: MonotonicInstant(nanoseconds: .max), interval: interval)
        #expect(slot.start == EncodingTimeline.intervals.upperBound)
        let back = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        #expect(back.start == slot.start + 40_000)
    }
}
