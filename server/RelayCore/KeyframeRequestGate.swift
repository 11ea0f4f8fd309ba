package import MediaCore

/// Decides when a track's publisher is asked for a keyframe: requests are coalesced, and at most one a second goes out.
package struct KeyframeRequestGate: Sendable {
    /// The gate's times.
    package struct Settings: Sendable {
        /// The least time between two requests, and the time after which one that had no effect is repeated.
        package var interval: Duration = .seconds(1)

        /// The settings as documented.
        package init() {}
    }

    private let settings: Settings
    private var lastRequest: MonotonicInstant?
    private var due: MonotonicInstant?

    /// A gate that has let nothing through yet.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// When `deadlineReached` must be called; `nil` while no keyframe is wanted.
    package var nextDeadline: MonotonicInstant? { due }

    /// Somebody needs a keyframe, at `earliest` or later.
    ///
    /// - Returns: Whether the publisher must be asked now.
    package mutating func wanted(notBefore earliest: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        var moment = max(earliest, now)
        if let lastRequest { moment = max(moment, lastRequest + settings.interval) }
        due = min(due ?? moment, moment)
        return deadlineReached(at: now)
    }

    /// The time may have come.
    ///
    /// - Returns: Whether the publisher must be asked now.
    package mutating func deadlineReached(at now: MonotonicInstant) -> Bool {
        guard let due, due <= now else { return false }
        lastRequest = now
        self.due = now + settings.interval
        return true
    }

    /// The publisher has been told to begin with a keyframe anyway, as when its first subscriber comes.
    package mutating func keyframeExpected(at now: MonotonicInstant) {
        lastRequest = now
        due = now + settings.interval
    }

    /// Until when a request that has just gone out stands in the way of the next; `nil` if nothing does.
    package func restsUntil(at now: MonotonicInstant) -> MonotonicInstant? {
        guard let lastRequest, now < lastRequest + settings.interval else { return nil }
        return lastRequest + settings.interval
    }

    /// A keyframe came, or nobody needs one any more.
    package mutating func satisfied() {
        due = nil
    }
}

/// How often one subscriber may ask for keyframes: once, then after 1, 2, 4 … seconds, so that a subscriber that cannot
/// keep up does not make everybody pay.
package struct KeyframeBackoff: Hashable, Sendable {
    private static let first: Duration = .seconds(1)
    private static let longest: Duration = .seconds(32)

    private var interval = first
    /// When the newest need may be answered.
    private var granted: MonotonicInstant?

    /// A subscriber that has not asked yet.
    package init() {}

    /// The subscriber needs a keyframe.
    ///
    /// Needs before the moment that an earlier one was put off to are the same need: a receiver may repeat itself with
    /// each frame that it cannot decode, and is not put off further for that. A subscriber that has gone without one
    /// for four times its interval starts afresh.
    ///
    /// - Returns: When the publisher may be asked for it.
    package mutating func needed(at now: MonotonicInstant) -> MonotonicInstant {
        guard let granted, now < granted + interval * 5 else {
            interval = Self.first
            granted = now
            return now
        }
        if now <= granted { return granted }
        let moment = max(granted + interval, now)
        interval = min(interval * 2, Self.longest)
        self.granted = moment
        return moment
    }
}
