import MediaCore
import RoomProtocol
import Wording

extension Relay {
    mutating func subscribe(_ request: Subscribe, _ id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], tracks.hot[track.index].publisher != id,
            participants[tracks.hot[track.index].publisher]?.room == participants[id]?.room
        else { return sayNotFound(request.trackId, request.requestId, to: id, needing: .otherPublisher) }
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
        let wish = SubscriptionWish(reading: request)
        guard let index = participants.hot[id.index].index(of: track) else {
            if let sentence = refusal(ofSubscriptions: 1) {
                let error = ErrorMessage(
                    .limitReached,
                    sentence,
                    fatal: false,
                    requestId: request.requestId,
                    trackId: request.trackId
                )
                return send(.error(error), toParticipant: id)
            }
            return addSubscription(of: id, to: track, wish, isPaused: isPaused, request.requestId, at: now)
        }
        let former = participants.hot[id.index].subscriptions[index].wish
        if former != wish {
            participants.hot[id.index].subscriptions[index].wish = wish
            tracks[track]?.hasWishes = true
            wishChanged(of: id, subscription: index, from: former)
            reviewSoon(track, at: now)
        }
        guard participants.hot[id.index].subscriptions[index].isPaused != isPaused else { return }
        if isPaused {
            pause(id, index, request.requestId, at: now)
        } else {
            resume(id, index, request.requestId, isAgain: true, at: now)
        }
    }

    /// The reason to refuse what would add `count` subscriptions; `nil` if the server has room for them.
    func refusal(ofSubscriptions count: Int) -> String? {
        guard count > 0, subscriptionCount + count > settings.maximumSubscriptions else { return nil }
        return "the server has \(counted(subscriptionCount, "subscription")); "
            + "its limit is \(settings.maximumSubscriptions)"
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
        let earlier = participants[id]?.earlier.removeValue(forKey: track)
        let encoding = tracks.hot[track.index].encodings[0]
        let subscription = SubscriberState.Subscription(
            track: track,
            encoding: encoding,
            isPaused: true,
            lastSent: now,
            cursor: ForwardingCursor(
                joining: encodings.hot[encoding.index].stream,
                frameRate: wish.frameRate,
                at: now
            ),
            choice: earlier?.choice ?? LayerChoice(layer: 0),
            began: now,
            backoff: earlier?.backoff ?? KeyframeBackoff(),
            unstoredBefore: encodings.hot[encoding.index].unstored,
            wish: wish
        )
        participants.hot[id.index].add(subscription)
        subscriptionCount += 1
        if wish != SubscriptionWish() { tracks[track]?.hasWishes = true }
        tracks[track]?.pausedSubscribers.append(id)
        let index = participants.hot[id.index].subscriptions.count - 1
        if isPaused {
            saySubscribed(id, index, requestID)
        } else {
            resume(id, index, requestID, isAgain: earlier != nil, at: now)
        }
    }

    /// Begins to send the track's packets, or sends them again, as to a late joiner.
    private mutating func resume(
        _ id: ParticipantID,
        _ index: Int,
        _ requestID: Int?,
        isAgain: Bool,
        at now: MonotonicInstant
    ) {
        let track = participants.hot[id.index].subscriptions[index].track
        let wish = participants.hot[id.index].subscriptions[index].wish
        // A limit that is known from other tracks, or from before the pause, holds at once.
        divideKnownRate(of: id, at: now)
        participants.hot[id.index].subscriptions[index].isPaused = false
        let (layer, desired) = firstEncoding(for: id, subscription: index, at: now)
        let encoding = tracks.hot[track.index].encodings[layer]
        let isFirst = !encodings.hot[encoding.index].isReceived
        begin(id, index, in: encoding, desired: desired, at: now)
        tracks[track]?.pausedSubscribers.removeAll { $0 == id }
        encodings.hot[encoding.index].subscribers.append(id)
        encodings.hot[encoding.index].idleDeadline = nil
        refreshDeadline(of: track)
        saySubscribed(id, index, requestID)
        planReview(of: id, at: now)
        let publisher = tracks.hot[track.index].publisher
        if !participants.hot[publisher.index].isReviewDue { planReview(of: publisher, at: now) }
        if desired != layer { aim(id, subscription: index, at: desired, now) }
        if isFirst {
            encodings.hot[encoding.index].wantedSince = now
            // The publisher begins with a keyframe when it is told to send again.
            expectKeyframe(of: encoding, at: now)
            sayLayersWanted(track, at: now)
            return
        }
        // An abandoned frame let nothing follow but a keyframe, and whoever waited for that may have gone.
        // One that is expected already is not put off by those who come.
        if case .fromKeyframe = encodings.hot[encoding.index].acceptance,
            encodings[encoding]?.keyframes.nextDeadline == nil
        {
            expectKeyframe(of: encoding, at: now)
        }
        let isSimulcast = tracks.hot[track.index].encodings.count > 1
        // Without a wish and a known limit, a further subscriber changes only what was bounded.
        if tracks[track]?.wanted.isBounded == true || wish != SubscriptionWish() || isSimulcast {
            reviewSoon(track, at: now)
        }
        if participants.hot[id.index].subscriptions[index].cursor.isWaitingForKeyframe(
            in: encodings.hot[encoding.index].stream
        ) {
            // One that pauses and comes back again and again must not cost all others a keyframe each time.
            guard isAgain else { return wantKeyframe(of: encoding, notBefore: now, at: now) }
            requestKeyframe(for: id, subscription: index, because: .other, at: now)
        }
    }

    /// Sets a subscription to the beginning of its reception in `encoding`.
    private mutating func begin(
        _ id: ParticipantID,
        _ index: Int,
        in encoding: EncodingID,
        desired: Int,
        at now: MonotonicInstant
    ) {
        participants.hot[id.index].subscriptions[index].encoding = encoding
        participants.hot[id.index].subscriptions[index].cursor = ForwardingCursor(
            joining: encodings.hot[encoding.index].stream,
            frameRate: participants.hot[id.index].subscriptions[index].wish.frameRate,
            at: now
        )
        participants.hot[id.index].subscriptions[index].unstoredBefore = encodings.hot[encoding.index].unstored
        participants.hot[id.index].subscriptions[index].choice.resume(at: desired)
        let isFromCache = participants.hot[id.index].subscriptions[index].cursor.catchUpThrough != nil
        participants.hot[id.index].subscriptions[index].catchUp = CatchUpChoice(fromCache: isFromCache)
        participants.hot[id.index].subscriptions[index].lag = LagEpisode()
        participants.hot[id.index].subscriptions[index].progress = FrameProgress()
        participants.hot[id.index].subscriptions[index].lastSkip = nil
        participants.hot[id.index].subscriptions[index].began = now
        participants.hot[id.index].subscriptions[index].lastSent = now
        participants.hot[id.index].subscriptions[index].isSwitchedOff = false
    }

    /// Stops sending a track's packets and keeps the subscription.
    private mutating func pause(_ id: ParticipantID, _ index: Int, _ requestID: Int?, at now: MonotonicInstant) {
        let track = participants.hot[id.index].subscriptions[index].track
        // A pause ends that state, and what follows is told by `subscribed`.
        if participants.hot[id.index].subscriptions[index].isSwitchedOff { saySwitchedOn(id, subscription: index) }
        let counts = finalCounts(of: participants.hot[id.index].subscriptions[index])
        participants.hot[id.index].subscriptions[index].earlierCounts = counts
        let subscription = participants.hot[id.index].subscriptions[index]
        participants.hot[id.index].subscriptions[index].isPaused = true
        participants.hot[id.index].subscriptions[index].target = nil
        participants.hot[id.index].subscriptions[index].isChangeReady = false
        dropSubscriber(id, subscription, at: now)
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
        let layer = encodings.hot[subscription.encoding.index].simulcastLayer
        if isPlain, let made = tracks[subscription.track]?.subscribedText, made.catchUpThrough == catchUpThrough,
            made.simulcastLayer == layer
        {
            return send(text: made.text, to: connection)
        }
        let message = Subscribed(
            trackId: info.id,
            alias: info.alias,
            simulcastLayer: layer,
            catchUpThrough: catchUpThrough,
            paused: subscription.isPaused ? true : nil,
            requestId: requestID
        )
        let text = encode(.subscribed(message))
        if isPlain {
            tracks[subscription.track]?.subscribedText = Track.SubscribedText(
                simulcastLayer: layer,
                catchUpThrough: catchUpThrough,
                text: text
            )
        }
        send(text: text, to: connection)
    }

    mutating func keyframeRequested(_ request: KeyframeRequest, by id: ParticipantID, at now: MonotonicInstant) {
        guard let track = trackOfID[request.trackId], let index = participants.hot[id.index].index(of: track) else {
            return sayNotFound(request.trackId, request.requestId, to: id, needing: .subscription)
        }
        // A publisher that is paused resumes with a keyframe.
        guard !participants.hot[id.index].subscriptions[index].isPaused, tracks[track]?.info.enabled == true else {
            return
        }
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let stream = encodings.hot[encoding.index].stream
        let skips = request.skip ?? true
        let isNeeded =
            skips
            ? participants.hot[id.index].subscriptions[index].cursor.keyframeRequested(in: stream)
            : !participants.hot[id.index].subscriptions[index].cursor.isKeyframeOnItsWay(in: stream)
        guard isNeeded else { return }
        let need: KeyframeBackoff.Need = skips ? .other : .refresh
        var moment = keyframeMoment(of: encoding, for: id, subscription: index, because: need, at: now)
        if now.duration(since: participants.hot[id.index].subscriptions[index].began) < Self.sharedRequestTime {
            // One that comes, asks and goes again and again would have a backoff of its own each time. It must not keep
            // others waiting for long that come and cannot decode: 4 s is the longest wait after an outage, too.
            let othersPay = encodings.hot[encoding.index].hasUsers(besides: id)
            let shared = encodings[encoding]?.newcomerRequests.needed(because: .outage, othersPay: othersPay, at: now)
            moment = max(moment, shared ?? moment)
        }
        wantKeyframe(of: encoding, notBefore: moment, byRecorder: !skips, at: now)
    }

    /// For how long a subscription's requests for keyframes count together with those of others that have come.
    private static var sharedRequestTime: Duration { .seconds(10) }
}
