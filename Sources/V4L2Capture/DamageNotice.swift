import MediaCore

/// Decides when damaged frames are reported: soon after the first, and then once a minute while they go on.
///
/// A pure value; the driver passes in the time.
struct DamageNotice {
    /// How long to collect damaged frames before they are reported for the first time.
    static let delay = Duration.seconds(1)
    /// The least time between two reports.
    static let interval = Duration.seconds(60)

    /// The damaged frames that have not been reported.
    private var count = 0
    private var nextReport: MonotonicInstant?

    /// Records damaged frames.
    mutating func noted(_ frames: Int, at now: MonotonicInstant) {
        guard frames > 0 else { return }
        count += frames
        if nextReport == nil { nextReport = now + Self.delay }
    }

    /// The number of damaged frames to report now; `nil` for no report.
    mutating func due(at now: MonotonicInstant) -> Int? {
        guard count > 0, let nextReport, now >= nextReport else { return nil }
        self.nextReport = now + Self.interval
        defer { count = 0 }
        return count
    }
}
