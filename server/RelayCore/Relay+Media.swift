import MediaCore
import RoomProtocol

extension Relay {
    /// The next packet for the participant of a connection, from the track that has the turn.
    mutating func nextPacket(
        for id: ParticipantID,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> PacketBuffer? {
        let count = participants.hot[id.index].subscriptions.count
        guard count > 0 else { return nil }
        let turns = participants.hot[id.index].turns
        let isAdmitted = connections.bulk[connection.index].path.admitsFrame(at: now)
        if count > 1, sharesByPriority(id, on: connection, at: now) {
            return nextPacketByShare(for: id, on: connection, isAdmitted: isAdmitted, at: now)
        }
        for offset in 0..<count {
            let index = turns.index(offset, of: count)
            guard hasPacket(for: id, subscription: index) else { continue }
            if let packet = packet(for: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now) {
                return packet
            }
        }
        return nil
    }

    /// The next packet of a track that has packets; `nil` if none of them is sent now.
    @inline(__always)
    mutating func packet(
        for id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        isAdmitted: Bool,
        at now: MonotonicInstant
    ) -> PacketBuffer? {
        let step =
            participants.hot[id.index].subscriptions[index].isSwitchedOff
            ? stepAfterSilence(of: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now)
            : step(of: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now)
        switch step {
        case .send(let packet):
            participants.hot[id.index].turns.served(index)
            let isWithinFrame = participants.hot[id.index].subscriptions[index].cursor.isWithinFrame
            connections.bulk[connection.index].path.endsFrame = !isWithinFrame
            if connections.bulk[connection.index].path.isTested
                || connections.bulk[connection.index].path.isLimited
            {
                describeFrame(to: id, subscription: index, on: connection, at: now)
            }
            noteSent(to: id, subscription: index, at: now)
            noteProgress(of: id, subscription: index, at: now)
            return packet
        case .idle:
            if !isAdmitted { holdBack(connection, at: now) }
        case .needsKeyframe:
            participants.hot[id.index].subscriptions[index].lastSkip = now
            let wasLive = participants.hot[id.index].subscriptions[index].cursor.wasLiveBeforeSkip
            // Beside its other tracks, a keyframe of a track may take long, and be all that it is sent of the track.
            let isShared = sharesByPriority(id, on: connection, at: now)
            let need: KeyframeBackoff.Need = wasLive || isShared ? .outage : .other
            requestKeyframe(for: id, subscription: index, because: need, at: now)
            noteProgress(of: id, subscription: index, at: now)
        }
        return nil
    }

    /// Tells a path that has a limit, or is tested for one, which frame the packet belongs to that is written next.
    private mutating func describeFrame(
        to id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) {
        let track = participants.hot[id.index].subscriptions[index].track
        connections.bulk[connection.index].path.servesTestedTrack =
            connections.bulk[connection.index].probingTrack == track
        guard connections.bulk[connection.index].path.endsFrame else { return }
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        let number = encodings.hot[encoding.index].stream.packets[position - 1].frameNumber
        let frames = participants.hot[id.index].subscriptions[index].progress.advance(to: number)
        connections.bulk[connection.index].path.noteFrames(frames, at: now)
    }

    private mutating func noteSent(to id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        participants.hot[id.index].subscriptions[index].lastSent = now
        if !participants.hot[id.index].isReviewDue { planReview(of: id, at: now) }
    }

    /// Notes, after a packet, that a subscription lags, or that it needs the cache for a while.
    private mutating func noteProgress(of id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        let isLagging = participants.hot[id.index].subscriptions[index].cursor.takeLag()
        let isCatchingUp = participants.hot[id.index].subscriptions[index].cursor.isCatchingUp
        guard isLagging || isCatchingUp else { return }
        if isCatchingUp {
            let encoding = participants.hot[id.index].subscriptions[index].encoding
            encodings.hot[encoding.index].stream.pin(until: now + settings.stream.pinTime)
        }
        guard isLagging else { return }
        let isNew = participants.hot[id.index].subscriptions[index].lag.note(at: now)
        // While it goes on lagging nothing is new.
        if isNew { lagged(participants.hot[id.index].subscriptions[index].track, at: now) }
    }

    /// Whether any of a subscriber's tracks has packets that it was not sent, worth sending or not.
    @inline(__always)  // The call of a function that does not mutate would copy the relay to the stack.
    func hasPacket(for id: ParticipantID) -> Bool {
        for index in participants.hot[id.index].subscriptions.indices where hasPacket(for: id, subscription: index) {
            return true
        }
        return false
    }

    /// Whether a track has packets that the subscriber was not sent, worth sending or not.
    @inline(__always)
    func hasPacket(for id: ParticipantID, subscription index: Int) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        return
            (position < encodings.hot[fanout].stream.endPosition
            || participants.hot[id.index].subscriptions[index].isChangeReady)
            && !participants.hot[id.index].subscriptions[index].isPaused
    }

    /// As `step`, for a subscriber that was told that nothing is sent: before the first packet it is told otherwise.
    ///
    /// The packet is found again when the message has gone out.
    private mutating func stepAfterSilence(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        isAdmitted: Bool,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step {
        if participants.hot[id.index].subscriptions[index].isChangeReady,
            isAdmitted || leavesFrame(id, subscription: index)
        {
            changeEncoding(of: id, subscription: index, at: now)
        }
        let cursor = participants.hot[id.index].subscriptions[index].cursor
        // A second change, to a stream with other positions, waits for the next call.
        let isChangeReady = participants.hot[id.index].subscriptions[index].isChangeReady
        participants.hot[id.index].subscriptions[index].isChangeReady = false
        let step = step(of: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now)
        if isChangeReady { participants.hot[id.index].subscriptions[index].isChangeReady = true }
        guard case .send = step else { return step }
        participants.hot[id.index].subscriptions[index].cursor = cursor
        saySwitchedOn(id, subscription: index)
        return .idle
    }

    /// Puts into a subscriber's outbox what it would be sent next of a track that ends: the path may have held it back,
    /// or the track's end came right behind it.
    ///
    /// What is too late is left out as ever. So is what is more than `longestRest`, or takes the path so long that it
    /// would delay the other tracks, or fills half of the outbox.
    mutating func keepRest(for id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        guard let connection = participants.hot[id.index].connection,
            !participants.hot[id.index].subscriptions[index].isSwitchedOff
        else { return }
        let most = settings.maximumOutbox.bytes / 2
        let rest = min(backlog(of: id, subscription: index), Self.longestRest.bytes)
        let waiting = connections.hot[connection.index].size.bytes + rest
        guard waiting <= most, waitingSignaling.bytes <= settings.maximumOutboxes.bytes / 2,
            connections.bulk[connection.index].path.drainTime(of: waiting) <= settings.forwarding.longestBacklog
        else { return }
        var bytes = 0
        while hasPacket(for: id, subscription: index), connections.hot[connection.index].size.bytes <= most {
            let isWithinFrame = participants.hot[id.index].subscriptions[index].cursor.isWithinFrame
            guard bytes < Self.longestRest.bytes || isWithinFrame,
                case .send(let packet) = step(of: id, subscription: index, on: connection, isAdmitted: true, at: now)
            else { return }
            bytes += packet.count
            put(.packet(packet), into: connection)
        }
    }

    /// What is sent of a track after its end: 0.4 s, the most that a frame may be late, at 2.5 Mbit/s.
    static var longestRest: DataSize { DataSize(bytes: 125_000) }

    private mutating func step(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        isAdmitted: Bool,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step {
        if participants.hot[id.index].subscriptions[index].isChangeReady,
            isAdmitted || leavesFrame(id, subscription: index)
        {
            changeEncoding(of: id, subscription: index, at: now)
        }
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        var isBacklogged = false
        if isAdmitted, connections.bulk[connection.index].path.isLimited {
            isBacklogged = self.isBacklogged(id, subscription: index, on: connection, at: now)
        }
        while true {
            let step = participants.hot[id.index].subscriptions[index].cursor.next(
                in: encodings.hot[fanout].stream.packets,
                at: now,
                limits: limits.forwarding,
                isAdmitted: isAdmitted,
                isBacklogged: isBacklogged
            )
            if let step { return step }
            if fallBehind(id, subscription: index, on: connection, at: now) { return .needsKeyframe }
            isBacklogged = false
        }
    }

    /// Moves a subscriber that has fallen behind; returns whether it needs a keyframe.
    @inline(never)  // Inlined, it would copy the stream for each packet.
    private mutating func fallBehind(
        _ id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        if participants.hot[id.index].subscriptions[index].cursor.isTooSlow(for: encodings.hot[fanout].stream) {
            connections.bulk[connection.index].path.noteTooSlow(at: now)
            allot(id, on: connection, at: now)
        }
        return participants.hot[id.index].subscriptions[index].cursor.fallBehind(
            in: encodings.hot[fanout].stream,
            at: now,
            policy: settings.forwarding
        )
    }

    /// Whether what waits for a subscriber would take its limited path longer than anything may be late.
    ///
    /// It changes nothing; it is mutating because the relay is then lent, and not copied to the stack.
    private mutating func isBacklogged(
        _ id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        // If a backlog has temporal layers, only the lowest layer of it is sent in the end.
        guard !encodings.hot[fanout].stream.packets.hasLayers(from: position) else { return false }
        if hasSeveralTracks(id), position >= encodings.hot[fanout].stream.startPosition,
            position < encodings.hot[fanout].stream.endPosition
        {
            let arrival = encodings.hot[fanout].stream.packets[position].arrival
            guard now.duration(since: arrival) > settings.forwarding.backlogAfter else { return false }
        }
        return connections.bulk[connection.index].path.drainTime(of: backlog(of: id, subscription: index))
            > settings.forwarding.longestBacklog
    }

    /// The bytes of a track that wait for a subscriber.
    func backlog(of id: ParticipantID, subscription index: Int) -> Int {
        let fanout = participants.hot[id.index].subscriptions[index].encoding.index
        return encodings.hot[fanout].stream.packets.bytes(
            from: participants.hot[id.index].subscriptions[index].cursor.position
        )
    }
}
