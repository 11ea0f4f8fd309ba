import MediaCore

/// Replaces a driver's timestamps that cannot be true.
///
/// A pure value; the driver passes in the time.
struct TimestampCheck {
    /// How far a timestamp may lie before the end of the last look at the driver's queue.
    ///
    /// A frame that was not filled by then was captured later, except for the time from its exposure to the hand-over.
    /// That time is 20 to 80 ms for USB cameras (measured, uvcvideo), and up to the interval for a slow exposure. One
    /// second is ample.
    private let tolerance: Duration
    /// When the driver's queue was last seen empty.
    private var emptiedAt: MonotonicInstant
    private var lastStamp: MonotonicInstant?
    /// When the last frame was captured.
    private(set) var lastInstant: MonotonicInstant?

    /// Creates a check for a stream that begins at `start`, with frames at `interval`.
    ///
    /// No instant precedes `last`, the time of the last picture before the stream.
    init(interval: Duration, start: MonotonicInstant, after last: MonotonicInstant? = nil) {
        tolerance = max(.seconds(1), min(interval, .seconds(3600)) * 2)
        emptiedAt = start
        lastInstant = last
    }

    /// When the frame was captured, and whether that is `now`, the time at which it was taken, instead of its
    /// timestamp.
    ///
    /// A timestamp up to a tolerance in the future is changed to the present: some drivers stamp a frame with the time
    /// at which it should be shown (vivid: up to an interval ahead). Instants never go back.
    mutating func instant(
        for stamp: MonotonicInstant?,
        takenAt now: MonotonicInstant
    ) -> (instant: MonotonicInstant, isReplaced: Bool) {
        let isTrue = stamp.map { stamp in
            stamp >= emptiedAt - tolerance && stamp <= now + tolerance && lastStamp.map { stamp >= $0 } ?? true
        }
        lastStamp = stamp ?? lastStamp
        let judged = isTrue == true ? min(stamp ?? now, now) : now
        let instant = min(max(judged, lastInstant ?? judged), now)
        lastInstant = instant
        return (instant, isTrue != true)
    }

    /// Records that the driver has no filled buffer left.
    mutating func emptied(at now: MonotonicInstant) { emptiedAt = now }

    /// Records that a picture which is not the driver's was delivered with the time `instant`.
    mutating func substituted(at instant: MonotonicInstant) { lastInstant = max(instant, lastInstant ?? instant) }
}
