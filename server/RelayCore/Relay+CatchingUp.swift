import MediaCore
import RoomProtocol

/// Late joiners: from the cached frames to the live ones, or from a new keyframe if that is sooner.
extension Relay {
    /// With no more bytes than this on its way, two packets, a path is not fully used.
    private static var emptyPath: Int64 { 2_896 }

    /// Looks at a participant's late joins again, after an acknowledgement.
    mutating func reviewCatchUps(
        of id: ParticipantID,
        on connection: ConnectionID,
        _ acknowledgement: MediaAcknowledgement,
        at now: MonotonicInstant
    ) {
        var sum = (waiting: 0, production: 0.0)
        var isCounted = false
        for index in participants.hot[id.index].subscriptions.indices
        where
            (participants.hot[id.index].subscriptions[index].catchUp.isOpen
            || participants.hot[id.index].subscriptions[index].catchUp.isWaiting)
            && !participants.hot[id.index].subscriptions[index].isPaused
        {
            // Counted once: not all subscriptions anew for each of them.
            if !isCounted { sum = catchUpSum(of: id, at: now) }
            isCounted = true
            let before = sent(to: id, subscription: index, at: now).waiting
            reviewCatchUp(of: id, subscription: index, on: connection, acknowledgement, sum, at: now)
            sum.waiting += sent(to: id, subscription: index, at: now).waiting - before
        }
    }

    /// Whether a participant's path is still full of cached frames whose rest was left out.
    func isDraining(_ id: ParticipantID, on connection: ConnectionID) -> Bool {
        guard connections.bulk[connection.index].path.unacknowledgedBytes > Self.emptyPath else { return false }
        return participants.hot[id.index].subscriptions.contains { $0.catchUp.isWaiting }
    }

    private mutating func reviewCatchUp(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        _ acknowledgement: MediaAcknowledgement,
        _ sum: (waiting: Int, production: Double),
        at now: MonotonicInstant
    ) {
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let isWaiting = participants.hot[id.index].subscriptions[index].catchUp.isWaiting
        let isNeeded =
            isWaiting
            ? awaitsKeyframe(id, subscription: index)
            : participants.hot[id.index].subscriptions[index].cursor.isCatchingUp
        guard isNeeded else { return participants.hot[id.index].subscriptions[index].catchUp.close() }
        // A keyframe that came for somebody else costs nothing.
        if participants.hot[id.index].subscriptions[index].cursor.skipToNewerKeyframe(
            in: encodings.hot[encoding.index].stream
        ) {
            participants.hot[id.index].subscriptions[index].catchUp.close()
            return wakeForMedia(id)
        }
        // A source that does not answer requests sends its own keyframes only: the cache is all there is.
        if encodings[encoding]?.keyframes.isUnresponsive(at: now) == true { return }
        let load = catchUpLoad(of: id, subscription: index, on: connection, sum, at: now)
        let delay = participants.hot[id.index].subscriptions[index].catchUp.delayOfKeyframe(
            acknowledged: connections.bulk[connection.index].path.acknowledgedBytes,
            at: acknowledgement.receiveTime,
            load
        )
        guard let delay else { return }
        if isWaiting {
            let granted = participants.hot[id.index].subscriptions[index].catchUp.granted ?? now
            return hastenKeyframe(of: encoding, to: max(granted, now + delay), at: now)
        }
        participants.hot[id.index].subscriptions[index].cursor.giveUpCache(in: encodings.hot[encoding.index].stream)
        let moment = keyframeMoment(of: encoding, for: id, subscription: index, because: .other, at: now)
        participants.hot[id.index].subscriptions[index].catchUp.granted = moment
        wantKeyframe(of: encoding, notBefore: max(moment, now + delay), at: now)
    }

    /// Lets a keyframe that is wanted later be requested at `moment`, if that is sooner.
    private mutating func hastenKeyframe(of encoding: EncodingID, to moment: MonotonicInstant, at now: MonotonicInstant)
    {
        guard let due = encodings[encoding]?.keyframes.nextDeadline, moment < due else { return }
        wantKeyframe(of: encoding, notBefore: moment, at: now)
    }

    /// What waits for a participant, and what is added all the time: of all its tracks, which share the path.
    private func catchUpSum(of id: ParticipantID, at now: MonotonicInstant) -> (waiting: Int, production: Double) {
        var sum = (waiting: 0, production: 0.0)
        for index in participants.hot[id.index].subscriptions.indices
        where !participants.hot[id.index].subscriptions[index].isPaused {
            let (waiting, production) = sent(to: id, subscription: index, at: now)
            sum.waiting += waiting
            sum.production += production
        }
        return sum
    }

    /// What waits of a track and is sent to a participant, and what is added all the time, in bits per second.
    ///
    /// Who catches up gets the lowest temporal layer only.
    private func sent(
        to id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> (waiting: Int, production: Double) {
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let all = backlog(of: id, subscription: index)
        let rate = encodings.hot[encoding.index].rate.bitsPerSecond(at: now.microseconds)
        guard all > 0, participants.hot[id.index].subscriptions[index].cursor.isCatchingUp else { return (all, rate) }
        let base = encodings.hot[encoding.index].stream.packets.baseBytes(
            from: participants.hot[id.index].subscriptions[index].cursor.position
        )
        return (base, rate * Double(base) / Double(all))
    }

    /// What stands between a late joiner and the live picture.
    private func catchUpLoad(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        _ sum: (waiting: Int, production: Double),
        at now: MonotonicInstant
    ) -> CatchUpChoice.Load {
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        var moment = encodings[encoding]?.keyframes.restsUntil(at: now) ?? now
        if !participants.hot[id.index].subscriptions[index].catchUp.isWaiting {
            let next = nextKeyframeMoment(of: encoding, for: id, subscription: index, because: .other, at: now)
            moment = max(moment, next.moment)
        }
        return CatchUpChoice.Load(
            waiting: sum.waiting,
            underway: Int(connections.bulk[connection.index].path.unacknowledgedBytes),
            roundTrip: connections.bulk[connection.index].path.shortestRoundTrip.seconds,
            keyframe: encodings.hot[encoding.index].stream.newestKeyframeSize,
            production: sum.production,
            pause: moment.duration(since: now)
        )
    }
}
