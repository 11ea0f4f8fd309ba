import MediaCore

/// Gives frames times that never go back and are never in the future, from timestamps that may do both.
///
/// Timestamps that go back, as those of an encoder that was started anew, begin a new timeline at the time of the last
/// frame. From there the times go on as the timestamps do, until these have caught up with the times.
struct StampedTimeline: Hashable, Sendable {
    /// The time of the last frame; `nil` before the first.
    private var last: MonotonicInstant?
    /// What is added to timestamps that lie before the last time.
    private var offset = Duration.zero

    /// The time of the next frame, which came at `now`.
    mutating func time(of timestamp: MonotonicInstant, at now: MonotonicInstant) -> MonotonicInstant {
        let possible = min(timestamp, now)
        guard let last else {
            self.last = possible
            return possible
        }
        var time = possible
        if possible >= last {
            offset = .zero
        } else {
            if possible + offset < last { offset = last.duration(since: possible) }
            time = min(possible + offset, now)
        }
        // Another thread may have read the clock later and come here sooner.
        time = max(time, last)
        self.last = time
        return time
    }
}
