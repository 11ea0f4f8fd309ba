/// The reason why a packet was not sent to a subscriber.
package enum DropReason: Int, CaseIterable, Sendable {
    /// It belongs to temporal layer 2, which was left out because the subscriber lags.
    case topLayerLate
    /// It belongs to temporal layer 1, which was left out because the subscriber lags more.
    case middleLayerLate
    /// Its temporal layer was left out before, and the layer's next sync has not arrived yet.
    case awaitingLayerSync
    /// It cannot be decoded before a keyframe.
    case awaitingKeyframe
    /// It was skipped up to a keyframe, because the subscriber had fallen too far behind.
    case fellBehind
    /// It was skipped up to a keyframe that the subscriber had asked for.
    case keyframeRequested
    /// It belongs to a higher temporal layer, which late joiners do not get from the cache.
    case catchUp
    /// Its frame was abandoned by the publisher.
    case abandoned
    /// Its track was disabled.
    case disabled
    /// It was discarded because the server's memory for packets was used up.
    case overBudget
    /// It had not been sent when the subscription ended or was paused.
    case ended
    /// It had not been sent when the subscriber changed to another encoding of the track.
    case otherEncoding
    /// It belongs to a temporal layer that exceeds the frame rate for which the subscriber has wished.
    case unwanted
}

extension DropReason: CustomStringConvertible {
    /// The reason in words that follow a number of packets.
    package var description: String {
        switch self {
        case .topLayerLate: "late in layer 2"
        case .middleLayerLate: "late in layer 1"
        case .awaitingLayerSync: "before their layer could go on"
        case .awaitingKeyframe: "before a keyframe"
        case .fellBehind: "skipped as too late"
        case .keyframeRequested: "skipped for a requested keyframe"
        case .catchUp: "of higher layers at a late join"
        case .abandoned: "of abandoned frames"
        case .disabled: "while the track was disabled"
        case .overBudget: "for want of memory"
        case .ended: "unsent at the end"
        case .otherEncoding: "unsent at a change of encoding"
        case .unwanted: "beyond the wished frame rate"
        }
    }
}

/// The numbers of packets that were not sent, by reason.
package struct DropCounts: Sendable {
    private var counts = InlineArray<13, Int>(repeating: 0)

    /// Creates counts of zero.
    package init() {}

    /// The number of packets not sent for `reason`.
    package subscript(_ reason: DropReason) -> Int {
        get { counts[reason.rawValue] }
        set { counts[reason.rawValue] = newValue }
    }

    /// The number for all reasons together.
    package var total: Int {
        var sum = 0
        for index in counts.indices { sum += counts[index] }
        return sum
    }

    /// Adds `other` to these.
    package mutating func add(_ other: DropCounts) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }
}

/// The counts of a track's packets for one subscriber, or the sums for several.
///
/// received = forwarded + waiting + dropped.
package struct PacketCounts: Sendable {
    /// Packets of the track that the server received during the subscription, and those already in its cache.
    package var received = 0
    /// Packets that were passed to the subscriber's connection.
    package var forwarded = 0
    /// Packets that may still be sent.
    package var waiting = 0
    /// Packets that were not sent.
    package var dropped = DropCounts()

    /// Creates counts of zero.
    package init() {}

    /// Adds `other` to these.
    package mutating func add(_ other: PacketCounts) {
        received += other.received
        forwarded += other.forwarded
        waiting += other.waiting
        dropped.add(other.dropped)
    }

    /// Counts `count` packets that were to be forwarded as dropped.
    mutating func withdraw(_ count: Int, because reason: DropReason) {
        forwarded -= count
        dropped[reason] += count
    }
}

extension PacketCounts: CustomStringConvertible {
    /// The counts in words: "120 packets; 14 were left out: 10 late in layer 2, 4 before a keyframe".
    package var description: String {
        let sent = "\(forwarded) packets"
        guard dropped.total > 0 else { return sent }
        let reasons = DropReason.allCases.filter { dropped[$0] > 0 }.map { "\(dropped[$0]) \($0)" }
        return "\(sent); \(dropped.total) were left out: " + reasons.joined(separator: ", ")
    }
}
