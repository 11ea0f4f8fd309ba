/// When the last pictures came from the source; times in microseconds.
struct PictureArrivals: Sendable {
    private var last: Int64?
    private var intervals = SIMD4<Int64>()

    /// The shortest of the last four intervals, so that a pause makes nothing of it; `nil` before there are four.
    var shortestInterval: Int64? {
        let shortest = intervals.min()
        return shortest > 0 ? shortest : nil
    }

    mutating func note(_ now: Int64) {
        if let last {
            intervals = SIMD4(intervals[1], intervals[2], intervals[3], max(1, min(now - last, 10_000_000)))
        }
        last = now
    }
}
