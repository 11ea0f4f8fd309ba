import MediaCore
import RoomProtocol

/// Late joiners: from the cached frames to the live ones, or from a new keyframe if that is sooner.
extension Relay {
    /// Looks at a participant's late joins again, after an acknowledgement.
    mutating func reviewCatchUps(
        of id: ParticipantID,
        on connection: ConnectionID,
        _ acknowledgement: MediaAcknowledgement,
        at now: MonotonicInstant
    ) {
        for index in participants.hot[id.index].subscriptions.indices
        where participants.hot[id.index].subscriptions[index].catchUp.isOpen {
            reviewCatchUp(of: id, subscription: index, on: connection, acknowledgement, at: now)
        }
    }

    private mutating func reviewCatchUp(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        _ acknowledgement: MediaAcknowledgement,
        at now: MonotonicInstant
    ) {
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        guard participants.hot[id.index].subscriptions[index].cursor.isCatchingUp else {
            return participants.hot[id.index].subscriptions[index].catchUp.close()
        }
        // A keyframe that came for somebody else costs nothing.
        if participants.hot[id.index].subscriptions[index].cursor.skipToNewerKeyframe(
            in: encodings.hot[encoding.index].stream
        ) {
            participants.hot[id.index].subscriptions[index].catchUp.close()
            return wakeForMedia(id)
        }
        let load = catchUpLoad(of: id, subscription: index, on: connection, at: now)
        let delay = participants.hot[id.index].subscriptions[index].catchUp.delayOfKeyframe(
            acknowledged: traffic[connection.index].path.acknowledgedBytes,
            at: acknowledgement.receiveTime,
            load
        )
        guard let delay else { return }
        participants.hot[id.index].subscriptions[index].cursor.giveUpCache(in: encodings.hot[encoding.index].stream)
        let moment = participants.hot[id.index].subscriptions[index].backoff.needed(at: now)
        wantKeyframe(of: encoding, notBefore: max(moment, now + delay), at: now)
    }

    /// What stands between a late joiner and the live picture: of all its tracks, which share the path.
    private func catchUpLoad(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> CatchUpChoice.Load {
        var (waiting, production) = (0, 0.0)
        for other in participants.hot[id.index].subscriptions.indices {
            let subscription = participants.hot[id.index].subscriptions[other]
            guard !subscription.isPaused else { continue }
            waiting += backlog(of: id, subscription: other)
            production += encodings.hot[subscription.encoding.index].rate.bitsPerSecond(at: now.microseconds)
        }
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let rest = encodings[encoding]?.keyframes.restsUntil(at: now)
        return CatchUpChoice.Load(
            waiting: waiting,
            underway: Int(traffic[connection.index].path.unacknowledgedBytes),
            roundTrip: traffic[connection.index].path.shortestRoundTrip.seconds,
            keyframe: encodings.hot[encoding.index].stream.newestKeyframeSize,
            production: production,
            pause: rest.map { $0.duration(since: now) } ?? .zero
        )
    }
}
