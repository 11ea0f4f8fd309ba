import MediaCore
import RoomProtocol

/// Which of a track's encodings each subscriber gets (`docs/protocol.md`, section 10.1).
extension Relay {
    /// A keyframe that came at most this long ago is as good as a new one, which could not be requested sooner.
    private static var cachedKeyframeAge: Duration { .seconds(1) }
    /// How long frames must have been late before a subscriber changes to a smaller encoding because of it.
    private static var lagPatience: Duration { .milliseconds(300) }
    /// A subscriber that acknowledges does so within this time, even if its first keyframe takes long.
    private static var acquaintance: Duration { .seconds(3) }
    /// An encoding that was told to be sent is missing after this time.
    private static var missingAfter: Duration { .seconds(2) }

    // MARK: At the beginning

    /// The encoding that a subscriber gets first, and the one that is best for it.
    ///
    /// The first picture comes soonest from an encoding that is being sent.
    func firstEncoding(
        for id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> (first: Int, best: Int) {
        let subscription = participants.hot[id.index].subscriptions[index]
        let all = tracks.hot[subscription.track.index].encodings
        guard all.count > 1 else { return (0, 0) }
        var best = largestUseful(subscription.wish, of: subscription.track)
        while best > 0, let share = subscription.share, let rate = rate(of: all[best], at: now), share < 0.6 * rate,
            encodings.hot[all[best].index].hasUsers
        {
            best -= 1
        }
        best = subscription.choice.layer(afterPause: best, at: now)
        let sent = all.indices.filter { encodings.hot[all[$0].index].stream.cachedKeyframe(at: now) != nil }
        let first = sent.last { $0 <= best } ?? sent.first ?? best
        return (encodings.hot[all[best].index].isReceived ? best : first, best)
    }

    /// The smallest encoding that covers the size that a subscriber wishes; the largest one if it has no such wish.
    private func largestUseful(_ wish: SubscriptionWish, of track: TrackID) -> Int {
        let largest = tracks.hot[track.index].encodings.count - 1
        guard largest > 0, let width = wish.width, let height = wish.height,
            let layers = tracks[track]?.info.simulcastLayers
        else { return largest }
        let box = Dimensions(width: width, height: height)
        return layers.firstIndex { Dimensions(width: $0.width, height: $0.height).covers(box) } ?? largest
    }

    /// Whether a subscriber gets a smaller encoding than it could use, although its publisher sends a larger one.
    func isHeldDown(_ subscription: SubscriberState.Subscription, at now: MonotonicInstant) -> Bool {
        let all = tracks.hot[subscription.track.index].encodings
        guard all.count > 1 else { return false }
        let largest = largestUseful(subscription.wish, of: subscription.track)
        let present = encodings.hot[subscription.encoding.index].simulcastLayer
        guard present < largest else { return false }
        return all[(present + 1)...largest].contains {
            encodings.hot[$0.index].hasFlowed(within: Self.missingAfter, at: now)
        }
    }

    /// The highest rate of an encoding: as announced, or else as it comes.
    private func rate(of encoding: EncodingID, at now: MonotonicInstant) -> Double? {
        if let announced = encodings[encoding]?.announcedRate { return announced }
        let rate = encodings.hot[encoding.index].rate.bitsPerSecond(at: now.microseconds)
        return rate > 0 ? rate : nil
    }

    // MARK: Choosing

    /// A subscriber began to lag.
    mutating func lagged(_ track: TrackID, at now: MonotonicInstant) {
        reviewSoon(track, at: now)
        guard tracks.hot[track.index].encodings.count > 1 else { return }
        tracks[track]?.wanted.lookAgain(at: now + Self.lagPatience)
        refreshDeadline(of: track)
    }

    /// The subscriber wishes something else than `former`; it need not wait for a larger picture.
    mutating func wishChanged(of id: ParticipantID, subscription index: Int, from former: SubscriptionWish) {
        let frameRate = participants.hot[id.index].subscriptions[index].wish.frameRate
        participants.hot[id.index].subscriptions[index].cursor.setFrameRate(frameRate)
        let track = participants.hot[id.index].subscriptions[index].track
        largestUsefulChanged(of: id, subscription: index, from: largestUseful(former, of: track))
    }

    /// Sets the encodings of a track as they are announced now.
    ///
    /// If a subscriber wishes for a size that is in a larger encoding now, it need not wait for that.
    mutating func setSimulcastLayers(_ layers: [SimulcastLayer], of track: TrackID) {
        let viewers = tracks[track]?.hasWishes == true && areSizesChanged(layers, track) ? subscribers(of: track) : []
        let subscriptions = viewers.compactMap { id in participants.hot[id.index].index(of: track).map { (id, $0) } }
        let bounds = subscriptions.map { id, index in
            largestUseful(participants.hot[id.index].subscriptions[index].wish, of: track)
        }
        tracks[track]?.info.simulcastLayers = layers
        for ((id, index), bound) in zip(subscriptions, bounds) {
            largestUsefulChanged(of: id, subscription: index, from: bound)
        }
    }

    private func areSizesChanged(_ layers: [SimulcastLayer], _ track: TrackID) -> Bool {
        let former = tracks[track]?.info.simulcastLayers ?? []
        return layers.map(\.size) != former.map(\.size)
    }

    /// The largest encoding that a subscriber can use was `bound` so far.
    private mutating func largestUsefulChanged(of id: ParticipantID, subscription index: Int, from bound: Int) {
        let subscription = participants.hot[id.index].subscriptions[index]
        let largest = largestUseful(subscription.wish, of: subscription.track)
        // One that got less than it wished before was held back by its network.
        guard largest > bound, subscription.choice.layer >= bound else { return }
        participants.hot[id.index].subscriptions[index].choice.hurry()
    }

    /// Chooses an encoding for each subscriber of a track that has several.
    mutating func chooseEncodings(of track: TrackID, at now: MonotonicInstant) {
        let all = tracks.hot[track.index].encodings
        let isFlowing = hasLongFlowed(all, at: now)
        let layers = all.map { encoding in
            LayerPlan.Layer(rate: rate(of: encoding, at: now), isMissing: isFlowing && isMissing(encoding, at: now))
        }
        let ids = subscribers(of: track)
        var viewers: [LayerPlan.Viewer] = []
        for id in ids {
            guard let index = participants.hot[id.index].index(of: track) else { continue }
            countedWork.boundsSteps += 1
            let largest = largestUseful(participants.hot[id.index].subscriptions[index].wish, of: track)
            participants.hot[id.index].subscriptions[index].choice.limit(to: largest)
            viewers.append(viewer(id, index, largest: largest, at: now))
        }
        guard viewers.count == ids.count else { return }
        // One that must give evidence first counts where it is.
        let places = zip(ids, viewers).map { id, viewer in bounded(viewer, id, of: track) }
        let plan = LayerPlan.plan(for: places, of: layers)
        for (id, (viewer, best)) in zip(ids, zip(viewers, plan.best)) {
            guard let index = participants.hot[id.index].index(of: track) else { continue }
            choose(for: id, subscription: index, viewer, planned: best, rates: plan.rates, at: now)
            aim(id, subscription: index, at: participants.hot[id.index].subscriptions[index].choice.layer, now)
            if let look = participants.hot[id.index].subscriptions[index].choice.nextLook {
                tracks[track]?.wanted.lookAgain(at: max(look, now + .milliseconds(20)))
            }
        }
    }

    private func viewer(
        _ id: ParticipantID,
        _ index: Int,
        largest: Int,
        at now: MonotonicInstant
    ) -> LayerPlan.Viewer {
        let subscription = participants.hot[id.index].subscriptions[index]
        let connection = participants.hot[id.index].connection
        let acknowledges = connection.map { connections.bulk[$0.index].path.isAcknowledged } ?? false
        // While a path is known to have no limit, lateness was a stall that is over. A subscriber that does not
        // acknowledge yet may do so later: its first acknowledgement comes after the first keyframe.
        let isKnown = now.duration(since: subscription.began) > Self.acquaintance
        let counts = subscription.share != nil || !acknowledges && isKnown
        return LayerPlan.Viewer(
            share: subscription.share,
            largest: largest,
            current: subscription.choice.layer,
            isLagging: counts && subscription.lag.hasLasted(Self.lagPatience, at: now)
        )
    }

    /// Whether one of these encodings has come for so long that the others should have come, too.
    private func hasLongFlowed(_ all: [EncodingID], at now: MonotonicInstant) -> Bool {
        all.contains { encoding in
            guard encodings.hot[encoding.index].hasFlowed(within: Self.missingAfter, at: now),
                let since = encodings.hot[encoding.index].flowSince
            else { return false }
            return now.duration(since: since) > Self.missingAfter
        }
    }

    /// Whether an encoding that was told to be sent has not come for a while.
    func isMissing(_ encoding: EncodingID, at now: MonotonicInstant) -> Bool {
        // A publisher far away has needed longer before, if it came too late for those who had wanted it.
        let patience = max(Self.missingAfter, .microseconds(encodings.hot[encoding.index].answerTime * 3 / 2))
        guard encodings.hot[encoding.index].hasUsers, let since = encodings.hot[encoding.index].wantedSince,
            now.duration(since: since) > patience
        else { return false }
        return !encodings.hot[encoding.index].hasFlowed(within: Self.missingAfter, at: now)
    }

    // MARK: Changing

    /// Lets a subscriber change to the encoding `number` as soon as that can be decoded.
    ///
    /// An encoding that nobody receives begins with a keyframe once the publisher is told. Meanwhile the subscriber
    /// gets the one that it has.
    mutating func aim(_ id: ParticipantID, subscription index: Int, at number: Int, _ now: MonotonicInstant) {
        let track = participants.hot[id.index].subscriptions[index].track
        let current = participants.hot[id.index].subscriptions[index].encoding
        let former = participants.hot[id.index].subscriptions[index].target
        let encoding = tracks.hot[track.index].encodings[number]
        guard encoding != former ?? current else {
            return hurryChange(of: id, subscription: index, at: now)
        }
        participants.hot[id.index].subscriptions[index].target = nil
        participants.hot[id.index].subscriptions[index].isChangeReady = false
        if let former {
            withdraw(id, from: \.waiting, of: former, at: now)
        }
        guard encoding != current else { return renewRequest(of: current, for: id, subscription: index, at: now) }
        participants.hot[id.index].subscriptions[index].target = encoding
        leaveCatchUp(of: current, for: id, subscription: index)
        let isFirst = !encodings.hot[encoding.index].isReceived
        encodings.hot[encoding.index].waiting.append(id)
        encodings.hot[encoding.index].idleDeadline = nil
        if isFirst {
            encodings.hot[encoding.index].wantedSince = now
            expectKeyframe(of: encoding, at: now)
        } else if isKeyframeRecent(of: encoding, at: now) {
            readyToChange(id, to: encoding)
        } else {
            let moment = changeMoment(to: encoding, for: id, subscription: index, at: now)
            wantKeyframe(of: encoding, notBefore: moment, at: now)
        }
    }

    /// Lets a subscriber without a live picture have the keyframe at once with which it goes down; if that does not come,
    /// it gets one of the encoding that it has.
    private mutating func hurryChange(of id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        guard let smaller = smallerTarget(of: id, subscription: index), isPressed(id, subscription: index, at: now),
            !participants.hot[id.index].subscriptions[index].isChangeReady
        else { return }
        if encodings[smaller]?.keyframes.isUnanswered(at: now) == true {
            let current = participants.hot[id.index].subscriptions[index].encoding
            renewRequest(of: current, for: id, subscription: index, at: now)
        } else {
            let moment = descentMoment(to: smaller, for: id, subscription: index, at: now)
            wantKeyframe(of: smaller, notBefore: moment, at: now)
        }
    }

    /// Requests the keyframe of the encoding that a subscriber does not leave after all, if it waits for that: the
    /// request was forgotten when it was to leave.
    private mutating func renewRequest(
        of encoding: EncodingID,
        for id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) {
        let isRequested = encodings[encoding]?.keyframes.nextDeadline != nil
        guard !isRequested, awaitsKeyframe(id, subscription: index) else { return }
        requestKeyframe(for: id, subscription: index, because: .other, at: now)
    }

    /// Requests no keyframe of the encoding that a late joiner leaves, unless somebody else waits for it.
    private mutating func leaveCatchUp(of encoding: EncodingID, for id: ParticipantID, subscription index: Int) {
        guard participants.hot[id.index].subscriptions[index].catchUp.isWaiting else { return }
        participants.hot[id.index].subscriptions[index].catchUp.close()
        forgetKeyframe(of: encoding, unlessNeededBesides: id)
    }

    /// Requests no keyframe of an encoding that a subscriber leaves, or does not change to after all, unless somebody
    /// else waits for it.
    ///
    /// An encoding that accepts nothing but a keyframe is one that all wait for.
    mutating func forgetKeyframe(of encoding: EncodingID, unlessNeededBesides id: ParticipantID) {
        guard let keyframes = encodings[encoding]?.keyframes, keyframes.nextDeadline != nil,
            !keyframes.isWantedByRecorder, case .all = encodings.hot[encoding.index].acceptance
        else { return }
        let track = encodings.hot[encoding.index].track
        let isAlone =
            encodings.hot[encoding.index].waiting.isEmpty
            && encodings.hot[encoding.index].subscribers.allSatisfy {
                guard $0 != id, let other = participants.hot[$0.index].index(of: track) else { return true }
                return !awaitsKeyframe($0, subscription: other)
            }
        guard isAlone else { return }
        encodings[encoding]?.keyframes.satisfied()
        refreshDeadline(of: track)
    }

    /// When the keyframe may be requested with which a subscriber changes its encoding.
    ///
    /// Wishes that come and go must not cost the other subscribers a keyframe each time.
    private mutating func changeMoment(
        to encoding: EncodingID,
        for id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> MonotonicInstant {
        let subscription = participants.hot[id.index].subscriptions[index]
        let present = encodings.hot[subscription.encoding.index].simulcastLayer
        let isLarger = subscription.choice.layer > present
        guard subscription.choice.isWished else { return now }
        if !isLarger, isPressed(id, subscription: index, at: now) {
            return descentMoment(to: encoding, for: id, subscription: index, at: now)
        }
        let need: KeyframeBackoff.Need = isLarger ? .other : .smaller
        return keyframeMoment(of: encoding, for: id, subscription: index, because: need, at: now)
    }

    /// When the keyframe may be requested with which a subscriber without a live picture goes down.
    ///
    /// It is at once, but where the subscriber wishes for that, no more often than after outages: it could be without a
    /// picture because of its wishes.
    mutating func descentMoment(
        to smaller: EncodingID,
        for id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> MonotonicInstant {
        guard participants.hot[id.index].subscriptions[index].choice.isWished else { return now }
        return keyframeMoment(of: smaller, for: id, subscription: index, because: .outage, at: now)
    }

    /// The smaller encoding to which a subscriber changes; `nil` if it does not.
    func smallerTarget(of id: ParticipantID, subscription index: Int) -> EncodingID? {
        guard let target = participants.hot[id.index].subscriptions[index].target else { return nil }
        let current = participants.hot[id.index].subscriptions[index].encoding
        let isSmaller = encodings.hot[target.index].simulcastLayer < encodings.hot[current.index].simulcastLayer
        return isSmaller ? target : nil
    }

    /// Whether a subscriber is sent no live picture of the encoding that it has.
    private func isPressed(_ id: ParticipantID, subscription index: Int, at now: MonotonicInstant) -> Bool {
        awaitsKeyframe(id, subscription: index)
            || participants.hot[id.index].subscriptions[index].lag.hasLasted(Self.lagPatience, at: now)
    }

    /// Whether the last keyframe of an encoding is as good as a new one.
    private func isKeyframeRecent(of encoding: EncodingID, at now: MonotonicInstant) -> Bool {
        guard let keyframe = encodings.hot[encoding.index].stream.cachedKeyframe(at: now) else { return false }
        return now.duration(since: encodings.hot[encoding.index].stream[keyframe].arrival) <= Self.cachedKeyframeAge
    }

    /// A keyframe of the encoding that a subscriber waits for is there.
    mutating func readyToChange(_ id: ParticipantID, to encoding: EncodingID) {
        let track = encodings.hot[encoding.index].track
        guard let index = participants.hot[id.index].index(of: track) else { return }
        participants.hot[id.index].subscriptions[index].isChangeReady = true
        wakeForMedia(id)
    }

    /// Whether a subscriber for which nothing new may begin leaves the frame that has begun for a smaller encoding.
    ///
    /// It does if the keyframe of that is smaller than the rest, as when the rest is that of a keyframe itself.
    mutating func leavesFrame(_ id: ParticipantID, subscription index: Int) -> Bool {
        guard let target = smallerTarget(of: id, subscription: index) else { return false }
        let current = participants.hot[id.index].subscriptions[index].encoding
        let rest = participants.hot[id.index].subscriptions[index].cursor.restOfFrame(
            in: encodings.hot[current.index].stream.packets
        )
        return rest > encodings.hot[target.index].stream.newestKeyframeSize
    }

    /// Sends a subscriber the encoding that it waits for, from its last keyframe on.
    ///
    /// The rest of a frame that has begun is sent before a larger encoding; before a smaller one it would take the time
    /// that the path lacks.
    mutating func changeEncoding(of id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        let subscription = participants.hot[id.index].subscriptions[index]
        guard let target = subscription.target else {
            participants.hot[id.index].subscriptions[index].isChangeReady = false
            return
        }
        let former = subscription.encoding
        let isLarger = encodings.hot[target.index].simulcastLayer > encodings.hot[former.index].simulcastLayer
        let hasRest = subscription.cursor.position < encodings.hot[former.index].stream.endPosition
        if isLarger, hasRest, subscription.cursor.isWithinFrame { return }
        participants.hot[id.index].subscriptions[index].isChangeReady = false
        guard isKeyframeRecent(of: target, at: now) else {
            // It was held back for too long, because its path had no room.
            let moment = changeMoment(to: target, for: id, subscription: index, at: now)
            return wantKeyframe(of: target, notBefore: moment, at: now)
        }
        let counts = finalCounts(of: subscription, leftOutAs: .otherEncoding)
        participants.hot[id.index].subscriptions[index].earlierCounts = counts
        participants.hot[id.index].subscriptions[index].unstoredBefore = encodings.hot[target.index].unstored
        participants.hot[id.index].subscriptions[index].encoding = target
        participants.hot[id.index].subscriptions[index].target = nil
        participants.hot[id.index].subscriptions[index].lag = LagEpisode()
        participants.hot[id.index].subscriptions[index].progress = FrameProgress()
        participants.hot[id.index].subscriptions[index].cursor = ForwardingCursor(
            joining: encodings.hot[target.index].stream,
            frameRate: subscription.wish.frameRate,
            at: now
        )
        encodings.hot[target.index].subscribers.append(id)
        withdraw(id, from: \.waiting, of: target, at: now)
        withdraw(id, from: \.subscribers, of: former, at: now)
        reviewSoon(subscription.track, at: now)
    }
}
