import MediaCore

/// Leaves frames out evenly so that the rate does not exceed a limit, whatever the source's rate is.
struct FramePace {
    private var limit: FrameRate?
    private var due: MonotonicInstant?

    /// Whether the frame captured at `timestamp` stays within `limit`; `nil` admits every frame.
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
        // A frame is never due more than one interval after the last one. A timestamp further back than that has
        // jumped, and waiting for the old due time would freeze the picture.
        guard let due, timestamp >= due - interval * 2 else {
            self.due = timestamp + interval
            return true
        }
        // Half an interval of slack keeps jitter from dropping frames of a source that runs exactly at the limit. The
        // mean rate still keeps to the limit, because each due time follows from the last due time and not from the
        // last frame's arrival.
        guard timestamp >= due - interval / 2 else { return false }
        let isBehind = timestamp.duration(since: due) > interval
        self.due = (isBehind ? timestamp : due) + interval
        return true
    }
}
