import MediaCore

/// Whether the network of a publisher that sends nothing still answers.
///
/// A publisher may be silent because its picture stands still. So it is pinged, and only one that does not answer
/// counts as lost.
struct PublisherPulse: Sendable {
    /// The silence after which a publisher is pinged.
    static let patience: Duration = .seconds(3)
    /// The time without an answer after which it counts as lost.
    private static let answerTime: Duration = .seconds(3)
    /// By how much less than these times two looks may be apart: the looks are those of `Relay.reviewGrid`, and an
    /// answer comes a round trip after its ping.
    private static let slack: Duration = .milliseconds(400)

    /// When its last packet or answer came, or somebody began to wait for frames.
    private var lastSign: MonotonicInstant?
    /// When it was pinged, or would have been.
    private var asked: MonotonicInstant?
    /// Whether it was pinged then.
    private var isPinged = false
    /// Whether it counts as lost.
    private(set) var isLost = false

    /// Notes that a packet or an answer came from it by `now`, or that nothing is expected of it.
    mutating func sign(at now: MonotonicInstant) {
        (lastSign, asked, isPinged, isLost) = (now, nil, false, false)
    }

    /// Looks at a publisher of which no packet has come since the last look, although somebody waits for one.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - mayPing: Whether a ping would arrive. If not, it waits until the path answers again.
    /// - Returns: Whether it is to be pinged.
    mutating func review(at now: MonotonicInstant, mayPing: Bool) -> Bool {
        guard let lastSign else {
            self.lastSign = now
            return false
        }
        if let asked {
            if mayPing, !isPinged {
                (self.asked, isPinged) = (now, true)
                return true
            }
            isLost = now.duration(since: asked) >= Self.answerTime - Self.slack
            return false
        }
        guard now.duration(since: lastSign) >= Self.patience - Self.slack else { return false }
        (asked, isPinged) = (now, mayPing)
        return mayPing
    }
}
