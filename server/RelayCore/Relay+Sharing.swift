import MediaCore

/// The turns of a subscriber's tracks while the limit of its path is known.
///
/// They are turns by bytes and priority (start-time fair queueing): the next packet is that of the track which has been
/// sent the least, divided by its weight. What a track does not use goes to the others. A track of which nothing waited
/// begins at the place of the others. Each track leaves out frames by its own lag, which grows only while the track
/// brings more than its share.
extension Relay {
    /// A subscription's place in the order: what it has been sent, and its turn among those that have been sent as much.
    private struct Place: Comparable {
        var sent: Int
        var turn: Int

        static func < (left: Self, right: Self) -> Bool { (left.sent, left.turn) < (right.sent, right.turn) }
    }

    /// Whether a participant's tracks share its path by priority, and not packet by packet.
    ///
    /// While nothing is acknowledged, the rest of each frame follows at once: a peer may acknowledge only whole frames.
    @inline(__always)
    mutating func sharesByPriority(
        _ id: ParticipantID,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> Bool {
        connections.bulk[connection.index].path.isLimited && connections.bulk[connection.index].path.isHeard(at: now)
            && hasSeveralTracks(id)
    }

    /// Whether a participant receives more than one track; those that are paused do not count.
    @inline(__always)
    mutating func hasSeveralTracks(_ id: ParticipantID) -> Bool {
        var count = 0
        for index in participants.hot[id.index].subscriptions.indices
        where !participants.hot[id.index].subscriptions[index].isPaused {
            count += 1
        }
        return count > 1
    }

    /// The next packet for a participant, of the track that has used the smallest part of its share.
    ///
    /// If a frame of that track waits until the path has room, the rest of other tracks' frames waits, too.
    @inline(never)  // The loop for all others stays short.
    mutating func nextPacketByShare(
        for id: ParticipantID,
        on connection: ConnectionID,
        isAdmitted: Bool,
        at now: MonotonicInstant
    ) -> PacketBuffer? {
        let count = participants.hot[id.index].subscriptions.count
        var place = nextPlace(of: id, on: connection, after: nil)
        while let tried = place {
            let index = participants.hot[id.index].turns.index(tried.turn, of: count)
            if let packet = packet(for: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now) {
                charge(packet.count, to: id, subscription: index, from: tried.sent, on: connection)
                return packet
            }
            guard isAdmitted || awaitsKeyframe(id, subscription: index) else { return nil }
            place = nextPlace(of: id, on: connection, after: tried)
        }
        return nil
    }

    /// Whether a track has packets of which none will be sent, because its keyframe has not come.
    func awaitsKeyframe(_ id: ParticipantID, subscription index: Int) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        let newest = encodings.hot[fanout].stream.newestKeyframe
        return participants.hot[id.index].subscriptions[index].cursor.awaitsKeyframe(after: newest)
    }

    /// The first place after `last` of a track that has packets; it changes nothing, as `isBacklogged`.
    private mutating func nextPlace(
        of id: ParticipantID,
        on connection: ConnectionID,
        after last: Place?
    ) -> Place? {
        let count = participants.hot[id.index].subscriptions.count
        let turns = participants.hot[id.index].turns
        let least = connections.bulk[connection.index].virtualTime
        var next: Place?
        for turn in 0..<count {
            let index = turns.index(turn, of: count)
            guard hasPacket(for: id, subscription: index) else { continue }
            let sent = max(participants.hot[id.index].subscriptions[index].finishTag, least)
            let place = Place(sent: sent, turn: turn)
            if let last, place <= last { continue }
            if let first = next, first <= place { continue }
            next = place
        }
        return next
    }

    /// Counts a packet to a track whose place was at `sent`.
    private mutating func charge(
        _ bytes: Int,
        to id: ParticipantID,
        subscription index: Int,
        from sent: Int,
        on connection: ConnectionID
    ) {
        let weight = participants.hot[id.index].subscriptions[index].wish.weight
        participants.hot[id.index].subscriptions[index].finishTag = sent + Int(Double(bytes * 4) / weight)
        connections.bulk[connection.index].virtualTime = sent
    }
}
