package import MediaCore
import RoomProtocol

/// Tells participants the quality of their networks (`docs/protocol.md`, section 10.2).
extension Relay {
    /// How often a participant's network is looked at while media flow.
    private static var reviewInterval: Duration { .seconds(1) }
    /// A track of which nothing was sent for this long, although packets came, is switched off.
    private static var switchOffTime: Duration { .seconds(2) }
    /// With nothing sent of any track for this long, the network is broken.
    private static var outageTime: Duration { .seconds(5) }
    /// How long a lag or a skip counts.
    private static var memory: Duration { .seconds(10) }
    /// Packets have come within this time if a publisher sends.
    static var flowTime: Duration { .seconds(2) }
    /// The delays of published frames above which the level is 4, 3, 2 and 1.
    private static let uplinkDelays: [Duration] = [
        .milliseconds(150), .milliseconds(300), .milliseconds(600), .milliseconds(1500),
    ]

    /// Looks are taken together at multiples of this time, because each moment of its own would wake the driver.
    private static var reviewGrid: Int64 { 500_000_000 }

    /// Looks at a participant's network in a second or a little later, so that not all are looked at in one moment.
    mutating func planReview(of id: ParticipantID, at now: MonotonicInstant) {
        setReview(of: id, at: now + Self.reviewInterval + .milliseconds(id.index &* 37 % 500))
    }

    private mutating func setReview(of id: ParticipantID, at time: MonotonicInstant) {
        participants.hot[id.index].isReviewDue = true
        let moment = (time.nanoseconds / Self.reviewGrid + 1) * Self.reviewGrid
        participantDeadlines.set(MonotonicInstant(nanoseconds: moment), for: id)
    }

    /// Looks at a participant's network, and again in a second as long as media flow, or should.
    mutating func reviewNetwork(of id: ParticipantID, at now: MonotonicInstant) {
        participants.hot[id.index].isReviewDue = false
        guard let connection = participants.hot[id.index].connection else { return }
        let excess = connections.bulk[connection.index].uplink.takeExcess()
        let isExpected = isAnyFrameExpected(from: id)
        var up = excess.map { delay in 5 - Self.uplinkDelays.count { delay > $0 } }
        // Behind what does not arrive, a ping would tell nothing.
        let mayPing = !isSilent(connection, at: now)
        if connections.bulk[connection.index].hasJustSent || !isExpected {
            participants[id]?.pulse.sign(at: now)
        } else if participants[id]?.pulse.review(at: now, mayPing: mayPing) == true {
            pinged.append(connection)
        }
        connections.bulk[connection.index].hasJustSent = false
        let isLost = participants[id]?.pulse.isLost == true
        if isLost { up = 0 }
        let down = reviewSubscriptions(of: id, on: connection, at: now)
        let before = participants[id]?.quality.level ?? 5
        participants[id]?.quality.update(min(up ?? 5, down ?? 5), at: now)
        if !isLost, !isSilent(connection, at: now) { sayQuality(of: id) }
        shareQuality(of: id, at: now)
        // After a silence the next packet plans the next look, unless one is missed.
        let isFlowing = up != nil || down != nil || before < 5
        guard isFlowing || isExpected else { return }
        let interval = isFlowing ? Self.reviewInterval : PublisherPulse.patience
        setReview(of: id, at: now + interval - .nanoseconds(Self.reviewGrid))
    }

    /// Whether somebody receives a track of a participant that is enabled.
    private func isAnyFrameExpected(from id: ParticipantID) -> Bool {
        (participants[id]?.publications ?? []).contains { track in
            tracks[track]?.info.enabled == true
                && tracks.hot[track.index].encodings.contains { encodings.hot[$0.index].hasUsers }
        }
    }

    /// The peer of a connection has answered a ping.
    package mutating func answered(_ connection: SlotID, at now: MonotonicInstant) {
        guard connections.contains(connection), let id = connections.hot[connection.index].participant else { return }
        participants[id]?.pulse.sign(at: now)
    }

    /// The level of what a participant receives; `nil` if nothing comes that it could receive.
    private mutating func reviewSubscriptions(
        of id: ParticipantID,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> Int? {
        var level: Int?
        var isOut = true
        for index in participants.hot[id.index].subscriptions.indices {
            let (encoding, isPaused) = (
                participants.hot[id.index].subscriptions[index].encoding,
                participants.hot[id.index].subscriptions[index].isPaused
            )
            guard !isPaused, encodings.hot[encoding.index].hasFlowed(within: Self.flowTime, at: now) else { continue }
            // While the publisher was silent there was nothing to send.
            let lastSent = participants.hot[id.index].subscriptions[index].lastSent
            var silence = now.duration(since: max(lastSent, encodings.hot[encoding.index].flowSince ?? lastSent))
            if silence > Self.switchOffTime, awaitsPublisher(id, subscription: index, at: now) { silence = .zero }
            if silence <= Self.outageTime { isOut = false }
            if silence > Self.switchOffTime, !isSilent(connection, at: now) { saySwitchedOff(id, subscription: index) }
            level = min(level ?? 5, quality(of: id, subscription: index, silence: silence, at: now))
        }
        guard let level else { return nil }
        if isOut { return 0 }
        return connections.bulk[connection.index].path.rate == nil ? level : min(level, 4)
    }

    /// Whether a subscriber is sent nothing only because it waits for a keyframe, for which its network is not the
    /// reason.
    private func awaitsPublisher(_ id: ParticipantID, subscription index: Int, at now: MonotonicInstant) -> Bool {
        let subscription = participants.hot[id.index].subscriptions[index]
        let encoding = subscription.encoding
        guard subscription.cursor.isWaitingForKeyframe(in: encodings.hot[encoding.index].stream) else { return false }
        if encodings[encoding]?.keyframes.isUnanswered(at: now) == true { return true }
        // After a skip its network is the reason, also while it waits for the next request that is allowed.
        return subscription.lastSkip.map { now.duration(since: $0) >= Self.memory } ?? true
    }

    private func quality(
        of id: ParticipantID,
        subscription index: Int,
        silence: Duration,
        at now: MonotonicInstant
    ) -> Int {
        let subscription = participants.hot[id.index].subscriptions[index]
        if silence > Self.switchOffTime { return 1 }
        if let skip = subscription.lastSkip, now.duration(since: skip) < Self.memory { return 2 }
        return subscription.lag.isWithin(Self.memory, of: now) || isHeldDown(subscription, at: now) ? 3 : 5
    }

    /// Whether nothing reaches the peer of a connection, so that it is told nothing that counts only now.
    ///
    /// What is told comes when the path is back, and is wrong then. It would also delay the first picture: TCP sends
    /// what is new before it repeats what was lost, to find out whether anything was (RFC 5682, F-RTO).
    mutating func isSilent(_ connection: ConnectionID, at now: MonotonicInstant) -> Bool {
        connections.bulk[connection.index].path.isSilent(at: now)
    }

    // MARK: Messages

    /// Tells a participant its level, if it knows another one.
    private mutating func sayQuality(of id: ParticipantID) {
        guard let participant = participants[id], participant.quality.level != participant.knownQuality else { return }
        participants[id]?.knownQuality = participant.quality.level
        let message = NetworkQuality(participantId: participant.id, level: participant.quality.level)
        send(.networkQuality(message), toParticipant: id)
    }

    /// Tells the others in the room the level of a participant that publishes, if they know another one.
    ///
    /// They also hear that it is 5 again if the participant publishes nothing any more.
    mutating func shareQuality(of id: ParticipantID, at now: MonotonicInstant) {
        let level = participants[id]?.quality.level ?? 5
        guard let known = participants[id]?.sharedQuality.level, level != known,
            known < 5 || participants[id]?.publications.isEmpty == false,
            let participant = participants[id], let connection = participants.hot[id.index].connection
        else { return }
        let others = (rooms[participant.room]?.participants.count ?? 1) - 1
        // They must not use up what the participant may cause itself: a message that exceeds it waits.
        guard connections[connection]?.budget.chargeDeliveries(others, to: limits.signaling, at: now) == true else {
            return
        }
        let text = encode(.networkQuality(NetworkQuality(participantId: participant.id, level: level)))
        participants[id]?.sharedQuality = (level, text)
        broadcast(text: text, in: participant.room, except: id)
    }

    /// Tells a newcomer the level of a participant, unless it is the one that counts without a message.
    mutating func saySharedQuality(of id: ParticipantID, to connection: ConnectionID) {
        guard let known = participants[id]?.sharedQuality, known.level < 5 else { return }
        send(text: known.text, to: connection)
    }

    private mutating func saySwitchedOff(_ id: ParticipantID, subscription index: Int) {
        guard !participants.hot[id.index].subscriptions[index].isSwitchedOff else { return }
        participants.hot[id.index].subscriptions[index].isSwitchedOff = true
        guard let (publisher, track) = names(ofTrack: participants.hot[id.index].subscriptions[index].track) else {
            return
        }
        let message = TrackSwitchedOff(participantId: publisher, trackId: track, reason: SwitchOffReason.network)
        send(.trackSwitchedOff(message), toParticipant: id)
    }

    /// Tells a subscriber that a track which was switched off is sent again.
    mutating func saySwitchedOn(_ id: ParticipantID, subscription index: Int) {
        participants.hot[id.index].subscriptions[index].isSwitchedOff = false
        guard let (publisher, track) = names(ofTrack: participants.hot[id.index].subscriptions[index].track) else {
            return
        }
        send(.trackSwitchedOn(TrackSwitchedOn(participantId: publisher, trackId: track)), toParticipant: id)
    }

    private func names(ofTrack track: TrackID) -> (publisher: String, track: String)? {
        guard let info = tracks[track]?.info, let publisher = participants[tracks.hot[track.index].publisher] else {
            return nil
        }
        return (publisher.id, info.id)
    }
}
