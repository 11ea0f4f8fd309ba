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
            ([-7, 60_000_000, 60_000_001], [0, 250_000, 251_000]),
            ([0, 200, 450, 701], [0, 200_000, 450_000, 700_000]),
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

    @Test("Slow sources have their steps, up to a second")
    func slowSources() {
        for (interval, expected) in [(500, 500), (1_000, 1_000), (5_000, 1_000)] {
            var timeline = EncodingTimeline()
            let starts = (0..<3).map { index in
                let time = MonotonicInstant(microseconds: Int64(index * interval) * 1000)
                return timeline.slot(at: time, interval: .milliseconds(interval)).start
            }
            #expect(starts == [0, Int64(expected) * 1000, Int64(expected) * 2000])
        }
    }

    @Test("A keyframe that is asked for comes one interval later, however long nobody wanted frames")
    func keyframe() {
        var timeline = EncodingTimeline()
        let interval = Duration.milliseconds(40)
        _ = timeline.slot(at: MonotonicInstant(microseconds: 0), interval: interval)
        let late = MonotonicInstant(microseconds: 3_000_000)
        #expect(timeline.slot(at: late, interval: interval, isKeyframe: true).start == 40_000)
    }

    @Test("A repeat of a still picture counts for the whole time, up to a second")
    func stillPicture() {
        var timeline = EncodingTimeline()
        let starts = [0, 200, 1_200, 61_200].map { milliseconds in
            timeline.slot(
                at: MonotonicInstant(microseconds: milliseconds * 1000),
                interval: .milliseconds(66),
                isRepeat: true
            ).start
        }
        #expect(starts == [0, 200_000, 1_200_000, 2_200_000])
    }

    @Test("A leap over the whole clock counts as the longest interval")
    func leap() {
        var timeline = EncodingTimeline()
        let interval = Duration.milliseconds(40)
        _ = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        let slot = timeline.slot(at: MonotonicInstant(nanoseconds: .max), interval: interval)
        #expect(slot.start == EncodingTimeline.longestStep)
        let back = timeline.slot(at: MonotonicInstant(nanoseconds: .min), interval: interval)
        #expect(back.start == slot.start + 40_000)
    }
}
