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

    /// The differences that libvpx is shown, in µs: 1,000 frames a second to one in ten seconds.
    ///
    /// Below 0.1 frames a second libvpx assumes 30 (`vp8_new_framerate`).
    static let intervals: ClosedRange<Int64> = 1000...10_000_000

    private var previous: (timestamp: MonotonicInstant, start: Int64)?

    /// The place of the next frame, captured at `timestamp`, where frames come every `interval` or so.
    ///
    /// A timestamp that is not later than the one before counts as `interval` later.
    mutating func slot(at timestamp: MonotonicInstant, interval: Duration) -> Slot {
        let duration = Self.bounded(interval.wholeMicroseconds)
        var start: Int64 = 0
        if let previous {
            let elapsed = timestamp.duration(since: previous.timestamp)
            let step =
                if timestamp <= previous.timestamp {
                    duration
                } else if elapsed < .zero {
                    // The difference overflowed: it is as long as can be.
                    Self.intervals.upperBound
                } else {
                    Self.bounded(elapsed.wholeMicroseconds)
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
