import MediaCore
import Testing

@testable import VP8Codec

@Suite("Encoding timeline", .timeLimit(.minutes(1)))
struct EncodingTimelineTests {
    @Test(
        "Slots follow each other without a gap, as long as the time between the timestamps, within bounds",
        arguments: [
            ([5_000, 5_040, 5_060], [40_000, 20_000]),
            ([5_000, 5_000, 4_000, 4_100], [33_333, 33_333, 100_000]),
            ([-7, 60_000_000, 60_000_001], [250_000, 1_000]),
            ([0, 200, 450, 701], [200_000, 250_000, 250_000]),
        ] as [([Int64], [Int64])]
    )
    func times(milliseconds: [Int64], expected: [Int64]) {
        var timeline = EncodingTimeline()
        let interval = Duration.microseconds(33_333)
        let slots = milliseconds.map { milliseconds in
            timeline.slot(at: MonotonicInstant(microseconds: milliseconds * 1000), interval: interval)
        }
        #expect(slots.map(\.duration) == [33_333] + expected)
        #expect(slots.first?.start == 0)
        for (slot, next) in zip(slots, slots.dropFirst()) { #expect(next.start == slot.start + slot.duration) }
    }

    @Test("Slow sources have their steps, up to a second")
    func slowSources() {
        for (interval, expected) in [(500, 500), (1_000, 1_000), (5_000, 1_000)] {
            var timeline = EncodingTimeline()
            let durations = (0..<3).map { index in
                let time = MonotonicInstant(microseconds: Int64(index * interval) * 1000)
                return timeline.slot(at: time, interval: .milliseconds(interval)).duration
            }
            #expect(durations == Array(repeating: Int64(expected) * 1000, count: 3))
        }
    }

    @Test("A keyframe that is asked for comes one interval later, however long nobody wanted frames")
    func keyframe() {
        var timeline = EncodingTimeline()
        let interval = Duration.milliseconds(40)
        _ = timeline.slot(at: MonotonicInstant(microseconds: 0), interval: interval)
        let late = MonotonicInstant(microseconds: 3_000_000)
        #expect(timeline.slot(at: late, interval: interval, isKeyframe: true).duration == 40_000)
    }

    @Test("A repeat of a still picture counts for the whole time, up to a second")
    func stillPicture() {
        var timeline = EncodingTimeline()
        let durations = [0, 200, 1_200, 61_200].map { milliseconds in
            timeline.slot(
                at: MonotonicInstant(microseconds: milliseconds * 1000),
                interval: .milliseconds(66),
                isRepeat: true
            ).duration
        }
        #expect(durations == [66_000, 200_000, 1_000_000, 1_000_000])
    }

    @Test("A leap over the whole clock counts as the longest interval")
    func leap() {
        var timeline = EncodingTimeline()
        let interval = Duration.milliseconds(40)
        _ = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        let slot = timeline.slot(at: MonotonicInstant(nanoseconds: .max), interval: interval)
        #expect(slot.duration == EncodingTimeline.longestStep)
        let back = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        #expect(back.duration == 40_000 && back.start == slot.start + slot.duration)
    }
}
