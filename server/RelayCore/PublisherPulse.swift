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

    /// When its last frame or answer came, or somebody began to wait for frames.
    private var lastSign: MonotonicInstant?
    /// When the ping was sent that it has not answered.
    private var asked: MonotonicInstant?
    /// Whether it counts as lost.
    private(set) var isLost = false

    /// Notes that something came from it at `now`, or that nothing is expected of it.
    mutating func sign(at now: MonotonicInstant) {
        (lastSign, asked, isLost) = (now, nil, false)
    }

    /// Looks at a publisher of which no frame has come for a second, although somebody waits for one.
    ///
    /// - Returns: Whether it is to be pinged.
    mutating func review(at now: MonotonicInstant) -> Bool {
        guard let lastSign else {
            self.lastSign = now
            return false
        }
        if let asked {
            isLost = now.duration(since: asked) >= Self.answerTime
            return false
        }
        guard now.duration(since: lastSign) >= Self.patience else { return false }
        asked = now
        return true
    }
}
