import MediaCore

/// Leaves frames out so that no more come than a limit allows, evenly, whatever the source's rate.
struct FramePace {
    private let wishedRate: FrameRate?
    private var limit: FrameRate?
    private var due: MonotonicInstant?

    /// A pace that keeps to `wishedRate` while no other limit is given; `nil` for none.
    init(wishedRate: FrameRate? = nil) {
        self.wishedRate = wishedRate
    }

    /// Whether the frame captured at `timestamp` is within `limit`, or else the wished rate.
    mutating func admits(_ timestamp: MonotonicInstant, limit: FrameRate?) -> Bool {
        guard let limit = limit ?? wishedRate else {
            self.limit = nil
            return true
        }
        if self.limit != limit {
            self.limit = limit
            due = nil
        }
        let interval = limit.interval
        guard let due else {
            self.due = timestamp + interval
            return true
        }
        // Half an interval of slack, so that a source that has just this rate and jitters loses nothing. The mean keeps
        // to the limit, because the next frame is due by the last due time and not by when the last one came.
        guard timestamp >= due - interval / 2 else { return false }
        let isBehind = timestamp.duration(since: due) > interval
        self.due = (isBehind ? timestamp : due) + interval
        return true
    }
}
