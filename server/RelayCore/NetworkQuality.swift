package import MediaCore

/// A participant's network quality, from 0 (broken) to 5 (excellent).
///
/// A worse level counts soon. A better one counts when it has lasted, so that the level does not flap.
package struct NetworkQualityMeter: Sendable {
    /// The least time between two changes.
    private static let interval: Duration = .seconds(2)
    /// How long a better level must last.
    private static let patience: Duration = .seconds(5)

    /// The level that counts; at first it is 5.
    package private(set) var level = 5
    private var lastChange: MonotonicInstant?
    /// The worst level since it became better than `level`, and when that was.
    private var better: (level: Int, since: MonotonicInstant)?

    /// Creates the meter of a participant of which nothing is known.
    package init() {}

    /// Takes the level of the last second.
    package mutating func update(_ latest: Int, at now: MonotonicInstant) {
        if latest <= level { better = nil }
        guard latest != level else { return }
        if latest > level {
            let (worst, since) = better ?? (latest, now)
            better = (min(worst, latest), since)
            guard now.duration(since: since) >= Self.patience else { return }
        }
        if let lastChange, now.duration(since: lastChange) < Self.interval { return }
        level = better?.level ?? latest
        better = nil
        lastChange = now
    }
}

/// How late the media of a publisher reaches the server: the delay of its frames beyond the smallest one.
///
/// The publisher's clock need not be the server's. Only differences between delays count.
package struct UplinkDelay: Sendable {
    /// How long the smallest delay counts, in microseconds.
    private static let window: Int64 = 30_000_000

    private var smallest: Int64?
    private var nextSmallest: Int64 = .max
    private var windowStart: Int64 = 0
    /// The greatest delay since it was last taken.
    private var greatest: Int64?

    /// Creates the delay of a publisher that has sent nothing.
    package init() {}

    /// Notes a frame that was encoded at `sent` and is whole at `now`, both in microseconds.
    package mutating func note(sent: Int64, at now: Int64) {
        let delay = now &- sent
        if now &- windowStart >= Self.window {
            // After a pause everything from before it is too old: clocks drift apart, and routes change.
            let isOutdated = now &- windowStart >= 2 * Self.window || nextSmallest == .max
            smallest = isOutdated ? delay : nextSmallest
            nextSmallest = .max
            windowStart = now
        }
        nextSmallest = min(nextSmallest, delay)
        smallest = min(smallest ?? delay, delay)
        greatest = max(greatest ?? delay, delay)
    }

    /// The greatest excess over the smallest delay since the last call; `nil` if no frame came.
    package mutating func takeExcess() -> Duration? {
        guard let greatest, let smallest else { return nil }
        self.greatest = nil
        let (excess, overflow) = greatest.subtractingReportingOverflow(smallest)
        return .microseconds(overflow ? 1_000_000_000_000 : min(excess, 1_000_000_000_000))
    }
}
