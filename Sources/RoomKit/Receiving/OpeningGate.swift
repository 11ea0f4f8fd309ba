import MediaCore

/// Leaves out the first pictures of a late joiner while they are late and their delay falls.
///
/// The frames behind those from the server's cache had to wait for them. They arrive faster than they were captured, so
/// the live picture comes a moment later, and is shown first. Where the delay does not fall, they are shown.
struct OpeningGate: Sendable {
    /// A frame counts as live if it took at most this much longer from the server than the path needs.
    static let liveDelay = Duration.milliseconds(100)
    /// A picture is shown at the latest after this time.
    static let longestHiding = Duration.seconds(1)
    /// The time between two looks at the delay, over which the jitter of a path does not count.
    private static let interval = Duration.milliseconds(150)
    /// By which part of the time that passes the delay must fall, at least.
    private static let leastProgress = 0.1

    private var isOpen = false
    private var isBehindCache = false
    private var hidingSince: MonotonicInstant?
    /// The delay at the last look, and when that was.
    private var reference: (delay: Duration, time: MonotonicInstant)?

    /// Decides about a frame; asked for each one, also for those from the server's cache.
    ///
    /// - Parameters:
    ///   - relayed: When the server received it; `nil` if that is not known.
    ///   - received: When it arrived.
    ///   - pathDelay: The estimated time from the server to here.
    ///   - isCatchUp: Whether it comes from the cache.
    ///   - isPresent: Whether it shows the present picture although it comes from there.
    /// - Returns: Whether to show the frame, and not only to decode it.
    mutating func shows(
        relayed: MonotonicInstant?,
        received: MonotonicInstant,
        pathDelay: Duration,
        isCatchUp: Bool,
        isPresent: Bool = false
    ) -> Bool {
        guard !isOpen else { return true }
        if isCatchUp {
            isBehindCache = true
            return isPresent
        }
        isOpen = !hides(relayed: relayed, received: received, pathDelay: pathDelay)
        return isOpen
    }

    private mutating func hides(
        relayed: MonotonicInstant?,
        received: MonotonicInstant,
        pathDelay: Duration
    ) -> Bool {
        guard isBehindCache, let relayed else { return false }
        let delay = received.duration(since: relayed)
        let since = hidingSince ?? received
        hidingSince = since
        guard delay > pathDelay + Self.liveDelay, received.duration(since: since) < Self.longestHiding else {
            return false
        }
        guard let before = reference else {
            reference = (delay, received)
            return true
        }
        let elapsed = received.duration(since: before.time)
        guard elapsed >= Self.interval else { return true }
        reference = (delay, received)
        return (before.delay - delay).seconds >= Self.leastProgress * elapsed.seconds
    }
}
