/// Tells a path on which each message takes long from one that was silent, and from one on which others are ahead.
///
/// After a silence, what waited comes fast. Messages that all come after a gap show what the path carries. If smaller ones
/// then come after gaps that are as long, the gaps are not theirs: others fill the queue, or the way became longer.
struct Slowness: Hashable, Sendable {
    /// As many messages in a row are no chance.
    private static let least = 3
    /// The rest of a frame comes at most this many times as fast as the messages before it.
    private static let alikeRate = 1.5
    /// Messages that a frame has several of have more bytes than this, unlike the bursts of cellular links.
    private static let leastOfSeveral: Int64 = 6_000
    /// The part of bytes below which messages count as smaller.
    private static let smaller = 0.65
    /// The part of the time above which gaps count as as long.
    private static let alike = 0.8
    /// How long gaps that are not ours are left alone, in microseconds: the shortest delay of 30 s is forgotten then.
    private static let rest: Int64 = 30_000_000

    private var gaps: [PathEstimator.Gap] = []
    /// The gap of the largest message for which the rate went down.
    private var heeded: PathEstimator.Gap?
    private var heededAt = Int64.min
    private var restsUntil = Int64.min

    /// The highest rate at which the last messages came, each after a gap, in bits per second; `nil` if they did not.
    var rate: Double? { gaps.count < Self.least ? nil : gaps.lazy.map(\.rate).max() }

    /// Notes a message with the gap before it, or `nil` for one that came without a gap.
    mutating func note(_ gap: PathEstimator.Gap?, at now: Int64) {
        guard let gap, now >= restsUntil, gap.isLong || isRest(gap) else {
            return gaps.removeAll(keepingCapacity: true)
        }
        guard gap.isLong else { return }
        if gaps.count == Self.least { gaps.removeFirst() }
        gaps.append(gap)
        guard gaps.count == Self.least, let heeded else { return }
        // The link has become another one meanwhile.
        guard now - heededAt <= Self.rest else { return self.heeded = nil }
        let areSmaller = gaps.allSatisfy { Double($0.bytes) < Self.smaller * Double(heeded.bytes) }
        guard areSmaller else { return }
        self.heeded = nil
        guard gaps.allSatisfy({ Double($0.time) > Self.alike * Double(heeded.time) }) else { return }
        restsUntil = now + Self.rest
        gaps.removeAll(keepingCapacity: true)
    }

    /// Whether a short gap is that of a frame's last message, which is smaller than the ones before, on the same slow path.
    ///
    /// After a silence, what waited comes much faster.
    private func isRest(_ gap: PathEstimator.Gap) -> Bool {
        guard let fastest = gaps.lazy.map(\.rate).max() else { return false }
        return gap.rate <= Self.alikeRate * fastest && gaps.allSatisfy { $0.bytes >= Self.leastOfSeveral }
    }

    /// Notes that the sender went below `rate`.
    mutating func wasHeeded(at now: Int64) {
        heededAt = now
        heeded = gaps.max { $0.bytes < $1.bytes }
        gaps.removeAll(keepingCapacity: true)
    }
}
