public import MediaCore

/// Why a track is sent with less than its full size and frame rate, and how long that has been so.
///
/// The reasons and their durations are those of WebRTC's statistics, `qualityLimitationReason` and
/// `qualityLimitationDurations`.
public struct QualityLimitation: Hashable, Sendable {
    /// What limits the size or the frame rate most.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// Nothing: the track is sent whole, or the rate still rises from its start and the network has shown no limit.
        case none
        /// The rate: the network has shown that it carries no more, the publisher's or that of all who watch, or the
        /// highest rate that was set is too low for more.
        case bandwidth
        /// The CPU is too slow for more.
        case cpu
        /// Something else: for example, nobody wants more.
        case other
    }

    /// What limits the track now.
    public private(set) var reason: Reason
    /// When `reason` began; `nil` before the first update.
    private var since: MonotonicInstant?
    /// Nanoseconds, in the order of `Reason.allCases`; without the time since `since`.
    private var spent: [Int64]

    /// A track that nothing has limited yet; the time counts from the first update on.
    package init() {
        reason = .none
        spent = Array(repeating: 0, count: Reason.allCases.count)
    }

    /// The time up to `now` in which `reason` limited the track most.
    public func duration(of reason: Reason, at now: MonotonicInstant) -> Duration {
        let running = reason == self.reason ? time(until: now) : 0
        return .nanoseconds(spent[Self.index(reason)] &+ running)
    }

    /// The times up to `now` in which each reason limited the track most.
    public func durations(at now: MonotonicInstant) -> [Reason: Duration] {
        Dictionary(uniqueKeysWithValues: Reason.allCases.map { ($0, duration(of: $0, at: now)) })
    }

    /// Notes that `reason` limits the track from `now` on; a time that goes back counts as no time.
    package mutating func update(_ reason: Reason, at now: MonotonicInstant) {
        let start = since ?? now
        guard reason != self.reason else {
            since = start
            return
        }
        spent[Self.index(self.reason)] &+= time(until: now)
        since = max(start, now)
        self.reason = reason
    }

    private func time(until now: MonotonicInstant) -> Int64 {
        since.map { max(0, now.nanoseconds &- $0.nanoseconds) } ?? 0
    }

    private static func index(_ reason: Reason) -> Int {
        switch reason {
        case .none: 0
        case .bandwidth: 1
        case .cpu: 2
        case .other: 3
        }
    }
}
