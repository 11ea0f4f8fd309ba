import MediaCore
import RoomProtocol

extension Relay {
    mutating func unsubscribe(_ request: Unsubscribe, _ id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], let index = participants.hot[id.index].index(of: track) else {
            return sayNotFound(request.trackId, request.requestId, to: id, needing: .subscription)
        }
        let subscription = participants.hot[id.index].removeSubscription(at: index)
        end(subscription, of: id)
        let gone = participants[id]?.earlier.keys.filter { !tracks.contains($0) } ?? []
        for track in gone { participants[id]?.earlier[track] = nil }
        participants[id]?.earlier[track] = EarlierSubscription(
            backoff: subscription.backoff,
            choice: subscription.choice
        )
        dropSubscriber(id, subscription, at: now)
        let message = Unsubscribed(trackId: request.trackId, requestId: request.requestId)
        send(.unsubscribed(message), toParticipant: id)
    }

    /// Removes a subscriber from the encodings of its subscription.
    mutating func dropSubscriber(
        _ id: ParticipantID,
        _ subscription: SubscriberState.Subscription,
        at now: MonotonicInstant
    ) {
        let track = subscription.track
        guard tracks.contains(track) else { return }
        guard !subscription.isPaused else {
            tracks[track]?.pausedSubscribers.removeAll { $0 == id }
            return
        }
        abandonTest(of: id, for: track)
        if let target = subscription.target { withdraw(id, from: \.waiting, of: target, at: now) }
        withdraw(id, from: \.subscribers, of: subscription.encoding, at: now)
        guard tracks[track]?.wanted.isBounded == true || tracks[track]?.hasWishes == true else { return }
        reviewSoon(track, at: now)
    }

    /// Removes a participant from those who receive an encoding, or wait for it; its publisher may stop if nobody is
    /// left.
    ///
    /// The publisher begins with a keyframe when it resumes. Subscribers that come and go must not cause more keyframes
    /// than requests can. So the publisher is not told to stop as long as a keyframe request would not be allowed
    /// either. A subscriber that comes back by then finds the encoding as it was.
    mutating func withdraw(
        _ id: ParticipantID,
        from list: WritableKeyPath<EncodingFanout, [ParticipantID]>,
        of encoding: EncodingID,
        at now: MonotonicInstant
    ) {
        guard let index = encodings.hot[encoding.index][keyPath: list].firstIndex(of: id) else { return }
        encodings.hot[encoding.index][keyPath: list].remove(at: index)
        guard !encodings.hot[encoding.index].hasUsers else {
            forgetKeyframe(of: encoding, unlessNeededBesides: id)
            return hurryKeyframe(of: encoding, at: now)
        }
        guard let deadline = encodings[encoding]?.keyframes.restsUntil(at: now) else {
            return becomeIdle(encoding, at: now)
        }
        encodings[encoding]?.keyframes.satisfied()
        encodings.hot[encoding.index].idleDeadline = deadline
        refreshDeadline(of: encodings.hot[encoding.index].track)
    }

    /// Handles an encoding that nobody receives any more.
    mutating func becomeIdle(_ encoding: EncodingID, at now: MonotonicInstant) {
        encodings.hot[encoding.index].idleDeadline = nil
        restart(encoding, because: .ended)
        sayLayersWanted(encodings.hot[encoding.index].track, at: now)
    }

    // MARK: Counting

    /// Counts the end of a subscription, and adds its packet counts to those of its participant and to the total.
    ///
    /// Its track must still be there.
    mutating func end(_ subscription: SubscriberState.Subscription, of id: ParticipantID) {
        let counts = finalCounts(of: subscription)
        participants[id]?.endedCounts.add(counts)
        endedCounts.add(counts)
        subscriptionCount -= 1
    }

    /// A subscription's packet counts if it receives nothing more of its present encoding.
    func finalCounts(
        of subscription: SubscriberState.Subscription,
        leftOutAs reason: DropReason = .ended
    ) -> PacketCounts {
        var counts = counts(of: subscription)
        counts.dropped[reason] += counts.waiting
        counts.waiting = 0
        return counts
    }
}
