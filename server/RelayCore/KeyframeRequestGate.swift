package import MediaCore

/// Decides when to ask a track's publisher for a keyframe: requests are merged, and at most one a second is sent.
package struct KeyframeRequestGate: Sendable {
    /// The gate's times.
    package struct Settings: Sendable {
        /// The least time between two requests; an unanswered request is repeated after the same time.
        package var interval: Duration = .seconds(1)
        /// The number of requests in a row without an answer after which the time between two doubles, up to 32 times.
        ///
        /// A publisher that does not answer so many is not going to, and each subscriber that joins would ask it anew.
        package var patience = 5

        /// Creates the default settings.
        package init() {}
    }

    private let settings: Settings
    private var lastRequest: MonotonicInstant?
    private var due: MonotonicInstant?
    /// Requests since the last keyframe came.
    private var unanswered = 0
    /// Whether a subscriber wants a keyframe that can decode what comes; it asks once, and no other state tells of it.
    package var isWantedByRecorder = false
    /// When the first of the requests was sent that are not answered yet.
    private var askedSince: MonotonicInstant?
    /// Whether the last keyframe that was asked for came after several requests: the source makes its own only.
    private var ignoresRequests = false
    /// As many requests in a row are not answered late by a publisher that makes keyframes when it is asked.
    private static let leastIgnored = 3

    /// The time from the last request to the next one.
    private var pause: Duration {
        settings.interval * (1 << min(max(unanswered - settings.patience + 1, 0), 5))
    }

    /// Creates a gate that has passed no request yet.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// When `deadlineReached` must be called; `nil` while no keyframe is wanted.
    package var nextDeadline: MonotonicInstant? { due }

    /// Records that a subscriber needs a keyframe, at `earliest` or later.
    ///
    /// - Returns: Whether the publisher must be asked now.
    package mutating func wanted(notBefore earliest: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        var moment = max(earliest, now)
        if let lastRequest { moment = max(moment, lastRequest + pause) }
        due = min(due ?? moment, moment)
        return deadlineReached(at: now)
    }

    /// Checks whether a request is due; call it at `nextDeadline`.
    ///
    /// - Returns: Whether the publisher must be asked now.
    package mutating func deadlineReached(at now: MonotonicInstant) -> Bool {
        guard let due, due <= now else { return false }
        lastRequest = now
        askedSince = askedSince ?? now
        unanswered += 1
        self.due = now + pause
        return true
    }

    /// Records that the publisher will begin with a keyframe anyway, as when its first subscriber comes.
    package mutating func keyframeExpected(at now: MonotonicInstant) {
        lastRequest = now
        askedSince = askedSince ?? now
        due = now + pause
    }

    /// The time until which the last request delays the next one; `nil` if nothing delays it.
    package func restsUntil(at now: MonotonicInstant) -> MonotonicInstant? {
        guard let lastRequest, now < lastRequest + settings.interval else { return nil }
        return lastRequest + settings.interval
    }

    /// Whether the publisher has been asked for a keyframe, or must begin with one, and none came in time.
    package func isUnanswered(at now: MonotonicInstant) -> Bool {
        askedSince.map { now >= $0 + settings.interval } ?? false
    }

    /// Whether it is of no use to ask: no keyframe has come in time, or the last one came long after it was asked for.
    package func isUnresponsive(at now: MonotonicInstant) -> Bool { ignoresRequests || isUnanswered(at: now) }

    /// Records that nobody needs a keyframe any more.
    package mutating func satisfied() {
        due = nil
        askedSince = nil
        isWantedByRecorder = false
    }

    /// Records that a keyframe arrived.
    package mutating func keyframeArrived() {
        if unanswered > 0 { ignoresRequests = unanswered >= Self.leastIgnored }
        satisfied()
        unanswered = 0
    }
}

/// Limits how often one subscriber may cost the others a keyframe.
///
/// All who receive an encoding pay for its keyframes. So a subscriber's needs are served after 1, 2, 4 … seconds while
/// others receive the encoding too. One that receives it alone pays itself, and waits only for the limit of one request
/// a second.
package struct KeyframeBackoff: Hashable, Sendable {
    /// Why a subscriber needs a keyframe.
    package enum Need: Hashable, Sendable {
        /// Its network held up the live picture, which its last keyframe had led to.
        case outage
        /// It can decode what comes, and needs a place from which something else, such as a file, can begin.
        case refresh
        /// It wishes for a smaller encoding: what it receives is more than it needs.
        case smaller
        /// Anything else: its last keyframe did not lead to the live picture, it asked for one, it came back to the
        /// track, or it wishes for a larger encoding.
        case other
    }

    /// What the needs of one kind have to wait for.
    private struct Wait: Hashable, Sendable {
        private static let first: Duration = .seconds(1)

        private var interval = first
        /// When the newest need may be served.
        private var granted: MonotonicInstant?

        mutating func needed(upTo longest: Duration, at now: MonotonicInstant) -> MonotonicInstant {
            guard let granted, now < granted + interval * 5 else {
                interval = Self.first
                granted = now
                return now
            }
            if now <= granted { return granted }
            let moment = max(granted + interval, now)
            interval = min(interval * 2, longest)
            self.granted = moment
            return moment
        }
    }

    /// An outage every few seconds must not freeze the picture for much longer than it lasts.
    private static let longestAfterOutage: Duration = .seconds(4)
    /// Keyframes that do not help, and those that can be had for the asking, must become few.
    private static let longestOtherwise: Duration = .seconds(32)

    private var outages = Wait()
    private var refreshes = Wait()
    private var smaller = Wait()
    private var others = Wait()

    /// Creates the backoff of a subscriber that has needed no keyframe yet.
    package init() {}

    /// Records that the subscriber needs a keyframe.
    ///
    /// Needs before the time to which an earlier one was delayed are the same need: a receiver may repeat itself for
    /// each frame that it cannot decode, and is not delayed further for this. The backoff starts again when there was
    /// no need of the kind for four intervals after the next one would be allowed.
    ///
    /// - Parameters:
    ///   - need: Why it needs the keyframe.
    ///   - othersPay: Whether others receive the encoding. If not, the need is served at once and is not counted.
    ///   - now: The time.
    /// - Returns: When the publisher may be asked for the keyframe.
    package mutating func needed(
        because need: Need,
        othersPay: Bool,
        at now: MonotonicInstant
    ) -> MonotonicInstant {
        guard othersPay else { return now }
        switch need {
        case .outage: return outages.needed(upTo: Self.longestAfterOutage, at: now)
        case .refresh: return refreshes.needed(upTo: Self.longestOtherwise, at: now)
        case .smaller: return smaller.needed(upTo: Self.longestOtherwise, at: now)
        case .other: return others.needed(upTo: Self.longestOtherwise, at: now)
        }
    }
}
