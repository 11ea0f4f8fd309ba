package import MediaCore

/// Which encoding of a track one subscriber gets, over time: down soon, up only after a while and on evidence.
///
/// A change costs a keyframe and is seen. So a smaller encoding must be the better one for a moment, and a larger one
/// for some seconds. If the evidence speaks against the larger one, or the subscriber had to come down again, the time
/// until the next attempt doubles. After evidence alone it stays short, because the subscriber saw nothing of the
/// attempt.
package struct LayerChoice: Sendable {
    /// What is known of whether the subscriber's path carries the next larger encoding.
    package enum Evidence: Sendable {
        /// The path was not tested.
        case missing
        /// A test has shown that the path carries it.
        case shown
        /// A test has shown that the path does not carry it.
        case refuted
        /// The path cannot be tested, or need not be.
        case notNeeded
    }

    /// How long a smaller encoding must be the better one.
    private static let downPatience: Duration = .milliseconds(300)
    /// How long a larger encoding must be the better one: at first, and at most.
    private static let shortestUpPatience: Duration = .seconds(5)
    private static let longestUpPatience: Duration = .seconds(80)
    /// The longest time between two tests of a path, unless changes have failed.
    private static let longestTestPatience: Duration = .seconds(10)
    /// A subscriber that comes down within this time had gone up in vain.
    private static let trial: Duration = .seconds(20)

    /// The number of the encoding.
    package private(set) var layer: Int
    /// Whether the path is to be tested now, because everything else speaks for a larger encoding.
    package private(set) var isTestWanted = false
    /// Whether a wish for a larger picture is not fulfilled yet.
    package private(set) var isHurried = false
    /// Whether the last change came from a wish.
    package private(set) var isWished = false
    private var downSince: MonotonicInstant?
    private var upSince: MonotonicInstant?
    private var lastUp: MonotonicInstant?
    /// When the subscriber last came down, or stayed down, because of its path.
    private var lastFailure: MonotonicInstant?
    private var upPatience = shortestUpPatience

    /// Creates the choice of a subscriber that begins with an encoding.
    package init(layer: Int) { self.layer = layer }

    /// Takes what would be best for the subscriber now; `isUrgent` says that it suffers already.
    package mutating func update(
        best: Int,
        isUrgent: Bool,
        evidence: Evidence = .notNeeded,
        at now: MonotonicInstant
    ) {
        isTestWanted = false
        if best < layer {
            upSince = nil
            isHurried = false
            let since = downSince ?? now
            downSince = since
            guard isUrgent || now.duration(since: since) >= Self.downPatience else { return }
            let isInVain = lastUp.map { now.duration(since: $0) < Self.trial } ?? false
            upPatience = isInVain ? min(upPatience * 2, Self.longestUpPatience) : Self.shortestUpPatience
            lastFailure = now
            change(to: best)
        } else if best > layer {
            downSince = nil
            climb(towards: best, evidence, at: now)
        } else {
            (downSince, upSince) = (nil, nil)
            isHurried = false
        }
    }

    private mutating func climb(towards best: Int, _ evidence: Evidence, at now: MonotonicInstant) {
        let since = upSince ?? now
        upSince = since
        guard isHurried || now.duration(since: since) >= upPatience else { return }
        switch evidence {
        case .missing:
            isTestWanted = true
        case .refuted:
            isHurried = false
            upPatience = max(upPatience, min(upPatience * 2, Self.longestTestPatience))
            lastFailure = now
            upSince = now
        case .notNeeded where isHurried:
            change(to: best)
            isWished = true
        case .shown, .notNeeded:
            // One step at a time: what carries the next encoding need not carry the one after it.
            let isWish = isHurried
            change(to: layer + 1)
            isWished = isWish
            lastUp = now
        }
    }

    // MARK: Wishes

    /// The subscriber wishes for a larger picture, which it need not wait for.
    package mutating func hurry() {
        isHurried = true
    }

    /// The subscriber wishes for no larger encoding than `largest`; what it gets now is no failure of its path.
    package mutating func limit(to largest: Int) {
        guard layer > largest else { return }
        change(to: largest)
        isWished = true
    }

    // MARK: Pauses

    /// The encoding with which to go on after a pause if `desired` is the best one.
    ///
    /// A pause does not shorten the time until the next attempt.
    package func layer(afterPause desired: Int, at now: MonotonicInstant) -> Int {
        let isHeldDown = lastFailure.map { now.duration(since: $0) < upPatience } ?? false
        return isHeldDown ? min(desired, layer) : desired
    }

    /// Goes on with an encoding after a pause.
    package mutating func resume(at layer: Int) {
        change(to: layer)
        isWished = true
        isHurried = false
    }

    /// When to look again although nothing happens; `nil` if there is no need.
    package var nextLook: MonotonicInstant? {
        if let downSince { return downSince + Self.downPatience }
        // The test of the path looks again when it ends.
        if isTestWanted { return nil }
        return upSince.map { $0 + (isHurried ? .zero : upPatience) }
    }

    private mutating func change(to best: Int) {
        layer = best
        isWished = false
        isTestWanted = false
        (downSince, upSince) = (nil, nil)
    }
}
