package import MediaCore

/// Which encoding of a track one subscriber gets, over time: down soon, up only after a while.
///
/// A change costs a keyframe and is seen. So a smaller encoding must be the better one for a moment, and a larger one
/// for some seconds. If the subscriber had to come down again, the time until the next attempt doubles.
package struct LayerChoice: Sendable {
    /// How long a smaller encoding must be the better one.
    private static let downPatience: Duration = .milliseconds(300)
    /// How long a larger encoding must be the better one: at first, and at most.
    private static let shortestUpPatience: Duration = .seconds(5)
    private static let longestUpPatience: Duration = .seconds(80)
    /// A subscriber that comes down within this time had gone up in vain.
    private static let trial: Duration = .seconds(20)

    /// The number of the encoding.
    package private(set) var layer: Int
    private var downSince: MonotonicInstant?
    private var upSince: MonotonicInstant?
    private var lastUp: MonotonicInstant?
    private var upPatience = shortestUpPatience

    /// Creates the choice of a subscriber that begins with an encoding.
    package init(layer: Int) { self.layer = layer }

    /// Takes what would be best for the subscriber now; `isUrgent` says that it suffers already.
    package mutating func update(best: Int, isUrgent: Bool, at now: MonotonicInstant) {
        if best < layer {
            upSince = nil
            let since = downSince ?? now
            downSince = since
            guard isUrgent || now.duration(since: since) >= Self.downPatience else { return }
            if let lastUp, now.duration(since: lastUp) < Self.trial {
                upPatience = min(upPatience * 2, Self.longestUpPatience)
            } else {
                upPatience = Self.shortestUpPatience
            }
            change(to: best)
        } else if best > layer {
            downSince = nil
            let since = upSince ?? now
            upSince = since
            guard now.duration(since: since) >= upPatience else { return }
            // One step at a time: what carries the next encoding need not carry the one after it.
            change(to: layer + 1)
            lastUp = now
        } else {
            (downSince, upSince) = (nil, nil)
        }
    }

    /// Takes what the subscriber has wished for: it is not an attempt.
    package mutating func follow(wish best: Int) {
        if best != layer { change(to: best) }
    }

    /// When to look again although nothing happens; `nil` if there is no need.
    package var nextLook: MonotonicInstant? {
        if let downSince { return downSince + Self.downPatience }
        return upSince.map { $0 + upPatience }
    }

    private mutating func change(to best: Int) {
        layer = best
        (downSince, upSince) = (nil, nil)
    }
}
