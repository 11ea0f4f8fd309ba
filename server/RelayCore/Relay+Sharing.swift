import MediaCore

/// The turns of a subscriber's tracks while the limit of its path is known.
///
/// They are turns by bytes and priority (start-time fair queueing): the next packet is that of the track which has been
/// sent the least, divided by its weight. What a track does not use goes to the others. A track of which nothing waited
/// begins at the place of the others. Each track leaves out frames by its own lag, which grows only while the track
/// brings more than its share.
extension Relay {
    /// A subscription's place in the order: what it has been sent, and its turn among those that have been sent as much.
    struct Place: Comparable {
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
        countedWork.shareSearches += 1
        let count = participants.hot[id.index].subscriptions.count
        guard var place = firstPlace(of: id, on: connection) else { return nil }
        // Mostly the first place has a packet. Without one, the others are put in order, once.
        var next: Int?
        while true {
            let index = participants.hot[id.index].turns.index(place.turn, of: count)
            if let packet = packet(for: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now) {
                charge(packet.count, to: id, subscription: index, from: place.sent, on: connection)
                return packet
            }
            guard isAdmitted || awaitsKeyframe(id, subscription: index) else { return nil }
            if next == nil { findPlaces(of: id, on: connection, after: place) }
            let later = next ?? 0
            guard later < places.count else { return nil }
            place = places[later]
            next = later + 1
        }
    }

    /// Whether a track has packets of which none will be sent, because its keyframe has not come.
    func awaitsKeyframe(_ id: ParticipantID, subscription index: Int) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        let newest = encodings.hot[fanout].stream.newestKeyframe
        return participants.hot[id.index].subscriptions[index].cursor.awaitsKeyframe(after: newest)
    }

    /// The first of the places of the tracks that have packets.
    private mutating func firstPlace(of id: ParticipantID, on connection: ConnectionID) -> Place? {
        var first: Place?
        for turn in 0..<participants.hot[id.index].subscriptions.count {
            guard let place = place(of: id, on: connection, turn: turn) else { continue }
            first = min(first ?? place, place)
        }
        return first
    }

    /// Puts the places after `last` of the tracks that have packets into `places`, in their order.
    private mutating func findPlaces(of id: ParticipantID, on connection: ConnectionID, after last: Place) {
        places.removeAll(keepingCapacity: true)
        for turn in 0..<participants.hot[id.index].subscriptions.count {
            guard let place = place(of: id, on: connection, turn: turn), last < place else { continue }
            places.append(place)
        }
        places.sort()
    }

    /// The place of the track that has the turn `turn`; `nil` if it has no packets.
    ///
    /// It changes nothing but the count of the work, as `isBacklogged`.
    @inline(__always)
    private mutating func place(of id: ParticipantID, on connection: ConnectionID, turn: Int) -> Place? {
        countedWork.shareSteps += 1
        let count = participants.hot[id.index].subscriptions.count
        let index = participants.hot[id.index].turns.index(turn, of: count)
        guard hasPacket(for: id, subscription: index) else { return nil }
        let least = connections.bulk[connection.index].virtualTime
        return Place(sent: max(participants.hot[id.index].subscriptions[index].finishTag, least), turn: turn)
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
