import MediaCore

/// When the frames of a subscription were late enough that fewer bits would help.
struct LagEpisode: Sendable {
    /// Frames that are late within this time of one another belong together.
    private static let longestGap: Duration = .milliseconds(500)

    /// When a frame last was late.
    private(set) var last: MonotonicInstant?
    private var began: MonotonicInstant?

    /// Notes a late frame.
    ///
    /// - Returns: Whether the frames before it were in time for a second.
    mutating func note(at now: MonotonicInstant) -> Bool {
        let silence = last.map { now.duration(since: $0) }
        if silence ?? .seconds(9) > Self.longestGap { began = now }
        last = now
        return silence ?? .seconds(9) > .seconds(1)
    }

    /// Whether a frame was late within the last `time`.
    func isWithin(_ time: Duration, of now: MonotonicInstant) -> Bool {
        last.map { now.duration(since: $0) < time } ?? false
    }

    /// Whether frames are late at present, and have been for `time`.
    func hasLasted(_ time: Duration, at now: MonotonicInstant) -> Bool {
        guard let began, isWithin(Self.longestGap, of: now) else { return false }
        return now.duration(since: began) >= time
    }
}
