import MediaCore

/// Leaves frames out so that no more come than a limit allows, evenly, whatever the source's rate.
struct FramePace {
    private var limit: FrameRate?
    private var due: MonotonicInstant?

    /// Whether the frame captured at `timestamp` is within `limit`; `nil` admits every frame.
    mutating func admits(_ timestamp: MonotonicInstant, limit: FrameRate?) -> Bool {
        guard let limit else {
            self.limit = nil
            return true
        }
        if self.limit != limit {
            self.limit = limit
            due = nil
        }
        let interval = limit.interval
        // No frame is due later than an interval after the last one. A stamp further back than that has jumped, and
        // waiting for the old due time would freeze the picture.
        guard let due, timestamp >= due - interval * 2 else {
            self.due = timestamp + interval
            return true
        }
        // Half an interval of slack, so that a source of just this rate loses nothing to jitter. The mean keeps to the
        // limit, because the next frame is due by the last due time and not by when the last one came.
        guard timestamp >= due - interval / 2 else { return false }
        let isBehind = timestamp.duration(since: due) > interval
        self.due = (isBehind ? timestamp : due) + interval
        return true
    }
}
