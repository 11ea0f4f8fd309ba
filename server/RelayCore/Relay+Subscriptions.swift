import MediaCore
import RoomProtocol

extension Relay {
    mutating func subscribe(_ request: Subscribe, _ id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], tracks.hot[track.index].publisher != id,
            participants[tracks.hot[track.index].publisher]?.room == participants[id]?.room
        else { return sayNotFound(request.trackId, request.requestId, to: id) }
        if let problem = SubscriptionWish.problem(with: request) {
            let error = ErrorMessage(
                .invalidArgument,
                problem,
                fatal: false,
                requestId: request.requestId,
                trackId: request.trackId
            )
            return send(.error(error), toParticipant: id)
        }
        let isPaused = request.paused ?? false
        let wish = SubscriptionWish(
            width: request.width,
            height: request.height,
            frameRate: request.frameRate,
            priority: request.priority
        )
        guard let index = participants.hot[id.index].index(of: track) else {
            return addSubscription(of: id, to: track, wish, isPaused: isPaused, request.requestId, at: now)
        }
        if participants.hot[id.index].subscriptions[index].wish != wish {
            participants.hot[id.index].subscriptions[index].wish = wish
            tracks[track]?.hasWishes = true
            reviewWanted(track, at: now)
        }
        guard participants.hot[id.index].subscriptions[index].isPaused != isPaused else { return }
        if isPaused {
            pause(id, index, request.requestId, at: now)
        } else {
            resume(id, index, request.requestId, at: now)
        }
    }

    mutating func addSubscription(
        of id: ParticipantID,
        to track: TrackID,
        _ wish: SubscriptionWish = SubscriptionWish(),
        isPaused: Bool = false,
        _ requestID: Int? = nil,
        at now: MonotonicInstant
    ) {
        guard tracks.contains(track) else { return }
        let backoff = participants[id]?.earlierBackoffs.removeValue(forKey: track) ?? KeyframeBackoff()
        let subscription = SubscriberState.Subscription(
            track: track,
            isPaused: true,
            cursor: ForwardingCursor(joining: tracks.hot[track.index].stream, at: now),
            backoff: backoff,
            unstoredBefore: tracks.hot[track.index].unstored,
            wish: wish
        )
        participants.hot[id.index].subscriptions.append(subscription)
        if wish != SubscriptionWish() { tracks[track]?.hasWishes = true }
        tracks[track]?.pausedSubscribers.append(id)
        let index = participants.hot[id.index].subscriptions.count - 1
        if isPaused {
            saySubscribed(id, index, requestID)
        } else {
            resume(id, index, requestID, at: now)
        }
    }

    /// Begins to send the track's packets again, as to a late joiner.
    private mutating func resume(_ id: ParticipantID, _ index: Int, _ requestID: Int?, at now: MonotonicInstant) {
        let track = participants.hot[id.index].subscriptions[index].track
        let isFirst = !tracks.hot[track.index].isReceived
        let wish = participants.hot[id.index].subscriptions[index].wish
        let cursor = ForwardingCursor(joining: tracks.hot[track.index].stream, at: now)
        participants.hot[id.index].subscriptions[index].cursor = cursor
        participants.hot[id.index].subscriptions[index].isPaused = false
        participants.hot[id.index].subscriptions[index].share = nil
        participants.hot[id.index].subscriptions[index].lastLag = nil
        participants.hot[id.index].subscriptions[index].unstoredBefore = tracks.hot[track.index].unstored
        tracks[track]?.pausedSubscribers.removeAll { $0 == id }
        tracks.hot[track.index].subscribers.append(id)
        tracks.hot[track.index].idleDeadline = nil
        refreshDeadline(of: track)
        saySubscribed(id, index, requestID)
        if isFirst {
            // The publisher begins with a keyframe when it is told to send again.
            expectKeyframe(of: track, at: now)
            sayLayersWanted(track, at: now)
            return
        }
        // Without a wish and a known limit, a further subscriber changes only what was bounded.
        if tracks[track]?.wanted.isBounded == true || wish != SubscriptionWish() { reviewWanted(track, at: now) }
        if cursor.isWaitingForKeyframe(in: tracks.hot[track.index].stream) {
            wantKeyframe(of: track, notBefore: now, at: now)
        }
    }

    /// Stops sending a track's packets and keeps the subscription.
    private mutating func pause(_ id: ParticipantID, _ index: Int, _ requestID: Int?, at now: MonotonicInstant) {
        let track = participants.hot[id.index].subscriptions[index].track
        let counts = finalCounts(of: participants.hot[id.index].subscriptions[index])
        participants.hot[id.index].subscriptions[index].earlierCounts = counts
        participants.hot[id.index].subscriptions[index].isPaused = true
        dropSubscriber(id, from: track, at: now)
        tracks[track]?.pausedSubscribers.append(id)
        saySubscribed(id, index, requestID)
    }

    /// Tells a participant the state of one of its subscriptions.
    private mutating func saySubscribed(_ id: ParticipantID, _ index: Int, _ requestID: Int?) {
        guard let connection = participants.hot[id.index].connection else { return }
        let subscription = participants.hot[id.index].subscriptions[index]
        guard let info = tracks[subscription.track]?.info else { return }
        let isPlain = requestID == nil && !subscription.isPaused
        let catchUpThrough = subscription.isPaused ? nil : subscription.cursor.catchUpThrough
        if isPlain, let made = tracks[subscription.track]?.subscribedText, made.catchUpThrough == catchUpThrough {
            return send(text: made.text, to: connection)
        }
        let message = Subscribed(
            trackId: info.id,
            alias: info.alias,
            simulcastLayer: 0,
            catchUpThrough: catchUpThrough,
            paused: subscription.isPaused ? true : nil,
            requestId: requestID
        )
        let text = encode(.subscribed(message))
        if isPlain {
            tracks[subscription.track]?.subscribedText = Track.SubscribedText(
                catchUpThrough: catchUpThrough,
                text: text
            )
        }
        send(text: text, to: connection)
    }

    mutating func unsubscribe(_ request: Unsubscribe, _ id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], let index = participants.hot[id.index].index(of: track) else {
            return sayNotFound(request.trackId, request.requestId, to: id)
        }
        let subscription = participants.hot[id.index].subscriptions.remove(at: index)
        end(subscription)
        let gone = participants[id]?.earlierBackoffs.keys.filter { !tracks.contains($0) } ?? []
        for track in gone { participants[id]?.earlierBackoffs[track] = nil }
        participants[id]?.earlierBackoffs[track] = subscription.backoff
        dropSubscriber(id, from: track, at: now)
        let message = Unsubscribed(trackId: request.trackId, requestId: request.requestId)
        send(.unsubscribed(message), toParticipant: id)
    }

    /// Removes a subscriber from a track; the publisher of a track that nobody receives may stop.
    ///
    /// The publisher begins with a keyframe when it resumes. Subscribers that come and go must not cause more keyframes
    /// than requests can. So the publisher is not told to stop as long as a keyframe request would not be allowed
    /// either. A subscriber that comes back by then finds the track as it was.
    mutating func dropSubscriber(_ id: ParticipantID, from track: TrackID, at now: MonotonicInstant) {
        guard tracks.contains(track) else { return }
        tracks[track]?.pausedSubscribers.removeAll { $0 == id }
        guard let index = tracks.hot[track.index].subscribers.firstIndex(of: id) else { return }
        tracks.hot[track.index].subscribers.remove(at: index)
        guard tracks.hot[track.index].subscribers.isEmpty else {
            if tracks[track]?.wanted.isBounded == true || tracks[track]?.hasWishes == true {
                reviewWanted(track, at: now)
            }
            return
        }
        guard let deadline = tracks[track]?.keyframes.restsUntil(at: now) else { return becomeIdle(track, at: now) }
        tracks[track]?.keyframes.satisfied()
        tracks.hot[track.index].idleDeadline = deadline
        refreshDeadline(of: track)
    }

    /// Handles a track that nobody receives any more.
    mutating func becomeIdle(_ track: TrackID, at now: MonotonicInstant) {
        tracks.hot[track.index].idleDeadline = nil
        restart(track, because: .ended)
        sayLayersWanted(track, at: now)
    }

    mutating func keyframeRequested(_ request: KeyframeRequest, by id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], let index = participants.hot[id.index].index(of: track) else {
            return sayNotFound(request.trackId, request.requestId, to: id)
        }
        guard !participants.hot[id.index].subscriptions[index].isPaused else { return }
        let isNeeded = participants.hot[id.index].subscriptions[index].cursor.keyframeRequested(
            in: tracks.hot[track.index].stream
        )
        if isNeeded { requestKeyframe(for: id, subscription: index, at: now) }
    }

    // MARK: Counting

    /// Adds the packet counts of a subscription that has ended to the total; its track must still be there.
    mutating func end(_ subscription: SubscriberState.Subscription) {
        endedCounts.add(finalCounts(of: subscription))
    }

    /// A subscription's packet counts if it receives nothing more.
    private func finalCounts(of subscription: SubscriberState.Subscription) -> PacketCounts {
        var counts = counts(of: subscription)
        counts.dropped[.ended] += counts.waiting
        counts.waiting = 0
        return counts
    }
}
