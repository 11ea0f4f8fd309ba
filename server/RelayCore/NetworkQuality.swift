package import MediaCore

/// When to tell a participant's network quality, from 0 (broken) to 5 (excellent).
///
/// A worse level is told soon. A better one is told when it has lasted, so that the level does not flap.
package struct NetworkQualityMeter: Sendable {
    /// The least time between two messages.
    private static let interval: Duration = .seconds(2)
    /// How long a better level must last.
    private static let patience: Duration = .seconds(5)

    /// The level that was told last; before the first message it is 5.
    package private(set) var told = 5
    private var lastTold: MonotonicInstant?
    /// The worst level since it became better than `told`, and when that was.
    private var better: (level: Int, since: MonotonicInstant)?

    /// Creates the meter of a participant of which nothing is known.
    package init() {}

    /// Takes the level of the last second.
    ///
    /// - Returns: The level to tell now; `nil` if there is nothing new.
    package mutating func update(_ level: Int, at now: MonotonicInstant) -> Int? {
        if level <= told { better = nil }
        guard level != told else { return nil }
        if level > told {
            let (worst, since) = better ?? (level, now)
            better = (min(worst, level), since)
            guard now.duration(since: since) >= Self.patience else { return nil }
        }
        if let lastTold, now.duration(since: lastTold) < Self.interval { return nil }
        told = better?.level ?? level
        better = nil
        lastTold = now
        return told
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
