import MediaCore
import RoomProtocol

/// What publishers are told of their tracks' subscribers, so that nobody encodes more than the best-placed one takes.
extension Relay {
    /// A subscriber whose rate is divided anew no sooner than this, unless it has broken down.
    private static var allotmentInterval: Duration { .milliseconds(100) }
    /// How long the change of one subscriber's rate waits for those of others, unless it has broken down.
    private static var reviewDelay: Duration { .milliseconds(50) }
    /// How soon a backlog is to be gone, in seconds: the publisher sends that much less.
    private static var backlogTime: Double { 0.5 }
    /// The least part of a path's rate that is offered while a backlog drains.
    private static var leastOffer: Double { 0.5 }
    /// How long after a subscriber's last lag its temporal layers are still wanted.
    private static var lagMemory: Duration { .seconds(10) }

    // MARK: A subscriber's rate

    /// Divides the rate of a subscriber's path among its tracks, after an acknowledgement.
    mutating func allot(_ participant: ParticipantID, on connection: ConnectionID, at now: MonotonicInstant) {
        let index = connection.index
        let rate = traffic[index].path.rate
        let last = traffic[index].allottedRate
        guard rate != nil || last != nil else { return }
        let isUrgent = (last == nil) != (rate == nil) || rate ?? 0 < 0.85 * (last ?? 0)
        if !isUrgent, let time = traffic[index].lastAllotment,
            now.duration(since: time) < Self.allotmentInterval
        {
            return
        }
        traffic[index].lastAllotment = now
        traffic[index].allottedRate = rate
        divide(rate, among: participant, at: now)
        for subscription in participants.hot[participant.index].subscriptions.indices {
            let track = participants.hot[participant.index].subscriptions[subscription].track
            if isUrgent {
                reviewWanted(track, at: now)
            } else {
                // Many subscribers of one track are compared once, and not once for each of them.
                tracks[track]?.wanted.lookAgain(at: now + Self.reviewDelay)
                refreshDeadline(of: track)
            }
        }
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
            let sent = tracks.hot[subscription.track.index].rate.bitsPerSecond(at: now.microseconds)
            claims.append(Allocator.Claim(weight: subscription.wish.weight, rate: isActive ? sent : 0))
            if isActive, !subscription.cursor.isCatchingUp { waiting += backlog(of: participant, subscription: index) }
        }
        let offer = max(rate * Self.leastOffer, rate - Double(waiting) * 8 / Self.backlogTime)
        for (index, share) in Allocator.shares(of: offer, among: claims).enumerated() {
            participants.hot[participant.index].subscriptions[index].share = share
        }
    }

    // MARK: A track's bounds

    /// Tells a publisher whether anybody receives its track, and the bounds.
    mutating func sayLayersWanted(_ track: TrackID, at now: MonotonicInstant) {
        let wanted = tracks.hot[track.index].subscribers.isEmpty ? nil : wantedLayer(of: track, at: now)
        say(wanted, of: track, at: now)
    }

    /// Tells a publisher the bounds of its track if they have changed by enough.
    mutating func reviewWanted(_ track: TrackID, at now: MonotonicInstant) {
        guard tracks[track]?.wanted.said != nil, !tracks.hot[track.index].subscribers.isEmpty else {
            // Whoever comes next is compared anew. If nobody comes, the publisher is told so.
            tracks[track]?.wanted.forgetDue()
            return
        }
        let wanted = wantedLayer(of: track, at: now)
        if tracks[track]?.wanted.isToBeSaid(wanted, at: now) == true { say(wanted, of: track, at: now) }
        if wanted.temporalLayers ?? 1 > 1 { tracks[track]?.wanted.lookAgain(at: now + Self.lagMemory) }
        refreshDeadline(of: track)
    }

    private mutating func say(_ wanted: WantedLayer?, of track: TrackID, at now: MonotonicInstant) {
        guard let info = tracks[track]?.info else { return }
        tracks[track]?.wanted.say(wanted, at: now)
        let message = LayersWanted(trackId: info.id, layers: wanted.map { [$0] } ?? [])
        send(.layersWanted(message), toParticipant: tracks.hot[track.index].publisher)
    }

    /// The bounds of a track that somebody receives: the most that any subscriber can use.
    private mutating func wantedLayer(of track: TrackID, at now: MonotonicInstant) -> WantedLayer {
        var bounds = WantedBounds()
        for subscriber in tracks.hot[track.index].subscribers {
            guard let index = participants.hot[subscriber.index].index(of: track) else { continue }
            countedWork.boundsSteps += 1
            let subscription = participants.hot[subscriber.index].subscriptions[index]
            let isLagging = subscription.lastLag.map { now.duration(since: $0) < Self.lagMemory } ?? false
            bounds.add(subscription.wish, share: subscription.share, isLagging: isLagging)
        }
        return bounds.layer(rate: tracks.hot[track.index].rate.bitsPerSecond(at: now.microseconds))
    }
}
