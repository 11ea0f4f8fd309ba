import MediaCore

/// A subscriber's way from a cached or slow keyframe to the live frames.
///
/// What follows such a keyframe is late, however fast the link is. As long as its lag shrinks, it goes on: another
/// keyframe would only be late again. It is given up when the lag does not shrink fast enough.
struct Pursuit: Sendable {
    /// The time between two looks at the lag.
    private static let interval: Duration = .milliseconds(300)
    /// The time in which the rest of the lag must be caught up with, at the speed so far; a keyframe would be sooner.
    private static let longestRest: Duration = .seconds(5)
    /// The longest lag that is caught up with: the age of the cache, and the time that its keyframe takes.
    private static let longestLag: Duration = .seconds(5)

    private var isBegun = false
    /// The lag at the last look, and when that was.
    private var reference: (lag: Duration, time: MonotonicInstant)?

    /// Whether late frames have been passed since it began.
    var isRunning: Bool { reference != nil }

    /// A keyframe is sent, from which the live frames can be caught up with.
    mutating func begin() {
        isBegun = true
        reference = nil
    }

    /// The cache is sent, which begins with a keyframe that is late by `lag`.
    mutating func begin(from lag: Duration, at now: MonotonicInstant) {
        isBegun = true
        // A picture that stood still may have begun long ago.
        reference = (min(lag, Self.longestLag), now)
    }

    /// The live frames have been reached, or given up.
    mutating func end() {
        isBegun = false
        reference = nil
    }

    /// Whether a frame that is late by `lag` is still sent.
    mutating func goesOn(at lag: Duration, _ now: MonotonicInstant) -> Bool {
        guard isBegun, lag <= Self.longestLag else { return false }
        guard let (earlier, time) = reference else {
            reference = (lag, now)
            return true
        }
        let elapsed = now.duration(since: time)
        guard elapsed >= Self.interval else { return true }
        let progress = (earlier - lag).seconds / elapsed.seconds
        guard progress * Self.longestRest.seconds >= lag.seconds else { return false }
        reference = (lag, now)
        return true
    }
}
