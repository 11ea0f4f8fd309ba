import MediaCore

/// Turns capture timestamps into the presentation times that libvpx measures the frame rate by.
///
/// libvpx refuses a time before its first one and divides by the differences; so times here always increase, by an
/// interval in `intervals`, whatever the timestamps do.
struct EncodingTimeline {
    /// A frame's place in libvpx's time, in µs.
    struct Slot: Equatable {
        var start: Int64
        var duration: Int64
    }

    /// The differences that libvpx is shown, in µs: 1,000 frames a second to one.
    ///
    /// libvpx averages them over its last second (`vp8_get_compressed_data`). A longer one makes that average swing to
    /// negative values and stay there, and four of five frames are left out for good (measured, libvpx 1.12).
    static let intervals: ClosedRange<Int64> = 1000...1_000_000
    /// A longer difference, in µs, is a pause and not a rate, unless frames are to come that slowly.
    ///
    /// A frame is given the bits of its interval; after a pause it would be a burst that the network is long in taking.
    static let longestStep: Int64 = 250_000

    private var previous: (timestamp: MonotonicInstant, start: Int64)?

    /// The place of the next frame, captured at `timestamp`, where frames come every `interval` or so.
    ///
    /// A timestamp that is not later than the one before counts as `interval` later, and so does a keyframe that is asked
    /// for, as it often comes after frames that nobody wanted.
    mutating func slot(at timestamp: MonotonicInstant, interval: Duration, isKeyframe: Bool = false) -> Slot {
        let duration = Self.bounded(interval.wholeMicroseconds)
        var start: Int64 = 0
        if let previous {
            let elapsed = timestamp.duration(since: previous.timestamp)
            let step =
                if timestamp <= previous.timestamp || isKeyframe {
                    duration
                } else if elapsed < .zero {
                    // The difference overflowed: it is as long as can be.
                    max(Self.longestStep, duration)
                } else {
                    min(Self.bounded(elapsed.wholeMicroseconds), max(Self.longestStep, duration))
                }
            start = previous.start + step
        }
        previous = (timestamp, start)
        return Slot(start: start, duration: duration)
    }

    private static func bounded(_ interval: Int64) -> Int64 {
        min(max(interval, intervals.lowerBound), intervals.upperBound)
    }
}
