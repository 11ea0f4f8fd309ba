/// Why a packet was not sent to a subscriber.
package enum DropReason: Int, CaseIterable, Sendable {
    /// Temporal layer 2, left out because the subscriber lags.
    case topLayerLate
    /// Temporal layer 1, left out because the subscriber lags more.
    case middleLayerLate
    /// Of a temporal layer that was left out before, and whose next sync has not come yet.
    case awaitingLayerSync
    /// Of no use before a keyframe.
    case awaitingKeyframe
    /// Passed over on the way to a keyframe, because the subscriber had fallen behind too far.
    case fellBehind
    /// Passed over on the way to a keyframe, for which the subscriber had asked.
    case keyframeRequested
    /// A higher temporal layer among the frames that a late joiner is given to catch up.
    case catchUp
    /// Of a frame that its publisher abandoned.
    case abandoned
    /// Of a track that was disabled.
    case disabled
    /// Let go of because the server's memory for packets was used up.
    case overBudget
    /// Not sent when the subscription ended or was paused.
    case ended
}

/// Packets that were not sent, by reason.
package struct DropCounts: Sendable {
    private var counts = InlineArray<11, Int>(repeating: 0)

    /// No packets.
    package init() {}

    /// Those with `reason`.
    package subscript(_ reason: DropReason) -> Int {
        get { counts[reason.rawValue] }
        set { counts[reason.rawValue] = newValue }
    }

    /// All of them.
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

/// What became of the packets of a track for one subscriber, or of several for several: received = forwarded + waiting +
/// dropped.
package struct PacketCounts: Sendable {
    /// Packets that the server received of the track while it was subscribed to, and those of its cache that were there
    /// already.
    package var received = 0
    /// Packets that were handed to the subscriber's connection.
    package var forwarded = 0
    /// Packets that may still be sent.
    package var waiting = 0
    /// Packets that were not sent.
    package var dropped = DropCounts()

    /// No packets.
    package init() {}

    /// Adds `other` to these.
    package mutating func add(_ other: PacketCounts) {
        received += other.received
        forwarded += other.forwarded
        waiting += other.waiting
        dropped.add(other.dropped)
    }
}
