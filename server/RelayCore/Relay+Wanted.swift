import MediaCore
import RoomProtocol

/// Tells publishers what their tracks' subscribers can take, so that nobody encodes more than the best-placed one takes.
extension Relay {
    /// A subscriber whose rate is divided anew no sooner than this, unless it has broken down.
    private static var allotmentInterval: Duration { .milliseconds(100) }
    /// How long the change of one subscriber's rate waits for those of others, unless it has broken down.
    private static var reviewDelay: Duration { .milliseconds(50) }
    /// How soon a backlog is to be gone, in seconds: the publisher sends that much less.
    private static var backlogTime: Double { 0.5 }
    /// The least part of a path's rate that is offered while a backlog drains.
    private static var leastOffer: Double { 0.7 }
    /// How long after a subscriber's last lag its temporal layers are still wanted.
    private static var lagMemory: Duration { .seconds(10) }
    /// How long a new subscriber's path is unknown: its acknowledgements take a round trip, and a queue takes time.
    private static var newcomerTime: Duration { .seconds(1) }
    /// In a track with more subscribers than this, the change of one is compared together with those of others; and a
    /// participant with more subscriptions than this has changes of its rate compared for those that it changes.
    private static var crowd: Int { 16 }
    /// How long the change of a subscriber in a crowd waits, even if its rate has broken down.
    private static var crowdDelay: Duration { .milliseconds(20) }
    /// How long it waits at least for each subscriber of the track: a comparison costs a quarter of a microsecond.
    private static var delayPerSubscriber: Duration { .microseconds(50) }
    /// As `delayPerSubscriber`, for a participant with more subscriptions than `crowd`, which may all have changed.
    private static var delayPerSubscriberOfMany: Duration { .milliseconds(1) }
    /// With more subscriptions than `crowd`, a share that changes by less than this part is not compared anew.
    private static var leastChange: Double { 0.03 }
    /// How often the encodings of a track that has several are reviewed although nothing happens.
    private static var layerInterval: Duration { .seconds(1) }

    // MARK: A subscriber's rate

    /// Divides the rate of a subscriber's path among its tracks, after an acknowledgement.
    mutating func allot(_ participant: ParticipantID, on connection: ConnectionID, at now: MonotonicInstant) {
        let index = connection.index
        let rate = connections.bulk[index].path.rate
        let last = connections.bulk[index].allottedRate
        guard rate != nil || last != nil else { return }
        let isUrgent = (last == nil) != (rate == nil) || rate ?? 0 < 0.85 * (last ?? 0)
        if !isUrgent, let time = connections.bulk[index].lastAllotment,
            now.duration(since: time) < Self.allotmentInterval
        {
            return
        }
        connections.bulk[index].lastAllotment = now
        connections.bulk[index].allottedRate = rate
        divide(rate, among: participant, at: now)
        let count = participants.hot[participant.index].subscriptions.count
        for subscription in 0..<count {
            let share = participants.hot[participant.index].subscriptions[subscription].share
            let compared = participants.hot[participant.index].subscriptions[subscription].comparedShare
            // With hundreds of tracks, those of which nothing changes must not all be compared again and again.
            guard count <= Self.crowd || Self.differs(share, from: compared) else { continue }
            participants.hot[participant.index].subscriptions[subscription].comparedShare = share
            let track = participants.hot[participant.index].subscriptions[subscription].track
            let subscribers = subscriberCount(of: track)
            if isUrgent && subscribers <= Self.crowd {
                reviewWanted(track, at: now)
            } else {
                // Many subscribers of one track are compared once, and not once for each of them.
                let each = count <= Self.crowd ? Self.delayPerSubscriber : Self.delayPerSubscriberOfMany
                let delay = max(isUrgent ? Self.crowdDelay : Self.reviewDelay, each * subscribers)
                tracks[track]?.wanted.lookAgain(at: now + delay)
                refreshDeadline(of: track)
            }
        }
    }

    private static func differs(_ share: Double?, from compared: Double?) -> Bool {
        guard let share, let compared else { return (share == nil) != (compared == nil) }
        return abs(share - compared) > leastChange * compared
    }

    /// Divides a participant's rate among its tracks, if it is known.
    mutating func divideKnownRate(of participant: ParticipantID, at now: MonotonicInstant) {
        let connection = participants.hot[participant.index].connection
        divide(connection.flatMap { connections.bulk[$0.index].path.rate }, among: participant, at: now)
    }

    private mutating func divide(_ rate: Double?, among participant: ParticipantID, at now: MonotonicInstant) {
        let count = participants.hot[participant.index].subscriptions.count
        guard let rate else {
            for index in 0..<count { participants.hot[participant.index].subscriptions[index].share = nil }
            return
        }
        var waiting = 0
        var claims: [Allocator.Claim] = []
        for index in 0..<count {
            let subscription = participants.hot[participant.index].subscriptions[index]
            let isActive = !subscription.isPaused
            let sent = encodings.hot[subscription.encoding.index].rate.bitsPerSecond(at: now.microseconds)
            claims.append(Allocator.Claim(weight: subscription.wish.weight, rate: isActive ? sent : 0))
            if isActive, !subscription.cursor.isInCache { waiting += backlog(of: participant, subscription: index) }
        }
        let offer = max(rate * Self.leastOffer, rate - Double(waiting) * 8 / Self.backlogTime)
        for (index, share) in Allocator.shares(of: offer, among: claims).enumerated() {
            participants.hot[participant.index].subscriptions[index].share = share
        }
    }

    // MARK: A track's bounds

    /// Tells a publisher which encodings of its track anybody receives, and the bounds.
    mutating func sayLayersWanted(_ track: TrackID, at now: MonotonicInstant) {
        let (wanted, _) = wantedLayers(of: track, at: now)
        say(wanted, of: track, at: now)
        let all = tracks.hot[track.index].encodings
        guard all.count > 1, all.contains(where: { encodings.hot[$0.index].hasUsers }) else { return }
        // The subscribers of the other encodings are still looked at.
        tracks[track]?.wanted.lookAgain(at: now + Self.layerInterval)
        refreshDeadline(of: track)
    }

    private func subscriberCount(of track: TrackID) -> Int {
        var count = 0
        for encoding in tracks.hot[track.index].encodings { count += encodings.hot[encoding.index].subscribers.count }
        return count
    }

    /// As `reviewWanted`, for the change of one subscriber; in a crowd a moment later, together with those of others.
    ///
    /// Otherwise many that join, change or lag at one time would each be compared with all others.
    mutating func reviewSoon(_ track: TrackID, at now: MonotonicInstant) {
        let count = subscriberCount(of: track)
        guard count > Self.crowd else { return reviewWanted(track, at: now) }
        tracks[track]?.wanted.lookAgain(at: now + max(Self.crowdDelay, Self.delayPerSubscriber * count))
        refreshDeadline(of: track)
    }

    /// Tells a publisher the encodings and bounds of its track if they have changed by enough.
    mutating func reviewWanted(_ track: TrackID, at now: MonotonicInstant) {
        let all = tracks.hot[track.index].encodings
        guard all.contains(where: { encodings.hot[$0.index].hasUsers }) else {
            // The next subscriber is compared anew. If none comes, the publisher is told so.
            tracks[track]?.wanted.forgetDue()
            return
        }
        let (wanted, hasNewcomer) = wantedLayers(of: track, at: now)
        if tracks[track]?.wanted.note(wanted, at: now) == true { say(wanted, of: track, at: now) }
        if wanted.contains(where: { $0.temporalLayers ?? 1 > 1 }) {
            tracks[track]?.wanted.lookAgain(at: now + Self.lagMemory)
        }
        if hasNewcomer { tracks[track]?.wanted.lookAgain(at: now + Self.newcomerTime) }
        if all.count > 1 {
            tracks[track]?.wanted.lookAgain(at: now + Self.layerInterval)
            chooseEncodings(of: track, at: now)
            let (chosen, _) = wantedLayers(of: track, at: now)
            if chosen.map(\.simulcastLayer) != tracks[track]?.wanted.said.map(\.simulcastLayer) {
                say(chosen, of: track, at: now)
            }
        }
        refreshDeadline(of: track)
    }

    private mutating func say(_ wanted: [WantedLayer], of track: TrackID, at now: MonotonicInstant) {
        guard let info = tracks[track]?.info else { return }
        tracks[track]?.wanted.say(wanted, at: now)
        let message = LayersWanted(trackId: info.id, layers: wanted)
        send(.layersWanted(message), toParticipant: tracks.hot[track.index].publisher)
    }

    /// The encodings that somebody receives, each with its bounds: the most that any of its subscribers can use.
    ///
    /// Says also whether a subscriber is new and may yet lift a bound.
    private mutating func wantedLayers(
        of track: TrackID,
        at now: MonotonicInstant
    ) -> (layers: [WantedLayer], hasNewcomer: Bool) {
        var layers: [WantedLayer] = []
        var hasNewcomer = false
        for encoding in tracks.hot[track.index].encodings where encodings.hot[encoding.index].isReceived {
            let number = encodings.hot[encoding.index].simulcastLayer
            guard encodings.hot[encoding.index].hasUsers else {
                // The last subscriber has only just gone.
                let said = tracks[track]?.wanted.said.first { $0.simulcastLayer == number }
                if let said { layers.append(said) }
                continue
            }
            var bounds = WantedBounds()
            for subscriber in encodings.hot[encoding.index].subscribers {
                add(subscriber, of: track, number, to: &bounds, at: now)
            }
            for subscriber in encodings.hot[encoding.index].waiting {
                add(subscriber, of: track, number, to: &bounds, at: now)
            }
            let rate = encodings.hot[encoding.index].rate.bitsPerSecond(at: now.microseconds)
            let layer = bounds.layer(number, rate: rate, announced: tracks[track]?.info.frameRate)
            if layer.bitrate != nil, bounds.hasNewcomer { hasNewcomer = true }
            layers.append(layer)
        }
        return (layers, hasNewcomer)
    }

    private mutating func add(
        _ id: ParticipantID,
        of track: TrackID,
        _ number: Int,
        to bounds: inout WantedBounds,
        at now: MonotonicInstant
    ) {
        guard let index = participants.hot[id.index].index(of: track) else { return }
        countedWork.boundsSteps += 1
        let wish = participants.hot[id.index].subscriptions[index].wish
        let share = participants.hot[id.index].subscriptions[index].share
        let age = now.duration(since: participants.hot[id.index].subscriptions[index].began)
        let isNew = share == nil && age < Self.newcomerTime
        // With several encodings, a subscriber that lags gets a smaller one first.
        let isLagging =
            number == 0 && participants.hot[id.index].subscriptions[index].lag.isWithin(Self.lagMemory, of: now)
        bounds.add(wish, share: share, isNew: isNew, isLagging: isLagging)
    }
}
