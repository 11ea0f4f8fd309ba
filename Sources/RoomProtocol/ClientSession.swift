package import MediaCore

/// A client's side of a session, from the open connection to its end, as a value: events in, actions out.
///
/// It owns no socket and no timer. Its driver carries out the actions in order and calls `deadlineReached` at
/// `nextDeadline`.
package struct ClientSession: Sendable {
    /// The settings of a session.
    package struct Settings: Sendable {
        /// The body of the `join` message.
        package var join: Join
        /// The time from the open connection within which the server must send `joined`.
        package var joinTimeout: Duration = .seconds(10)
        /// The video codecs that the client can decode; a subscription to a track with another codec is ended.
        package var videoCodecs: Set<String> = [VideoCodec.vp8]

        /// Creates the default settings for joining with `join`.
        package init(join: Join) {
            self.join = join
        }
    }

    /// An action for the driver.
    package enum Action: Hashable, Sendable {
        /// Send a message.
        case send(ClientMessage)
        /// Report an event to the room.
        case notify(Event)
        /// Close the connection, with the given WebSocket code; always the last action.
        case close(code: UInt16, reason: String)
    }

    /// An event in the room.
    package enum Event: Hashable, Sendable {
        case joined(Joined)
        case participantConnected(ParticipantInfo)
        case participantDisconnected(ParticipantInfo)
        case trackPublished(TrackInfo, by: ParticipantInfo)
        case trackUnpublished(TrackInfo, by: ParticipantInfo)
        case trackEnabled(TrackInfo, by: ParticipantInfo)
        case trackDisabled(TrackInfo, by: ParticipantInfo)
        case subscribed(TrackInfo, by: ParticipantInfo, Subscription)
        /// The server subscribed this client to a track that it cannot use, and the client has unsubscribed.
        case subscriptionFailed(TrackInfo, by: ParticipantInfo, SubscriptionFailure)
        case unsubscribed(TrackInfo, by: ParticipantInfo)
        /// The server accepted a track of our own.
        case published(requestID: Int, TrackInfo)
        /// The server refused a request of our own.
        case refused(ErrorMessage)
        /// The simulcast layers of our own track that somebody receives.
        case layersWanted(trackID: String, layers: [WantedLayer])
        /// Somebody needs a keyframe of our own track, in one simulcast layer or (`nil`) in all.
        case keyframeRequested(trackID: String, simulcastLayer: Int?)
        /// The network of a participant, which may be this one, carries its media better or worse: 0 to 5.
        case networkQuality(participantID: String, level: Int)
        /// The server sends nothing of a track for now; `reason` is one of `SwitchOffReason`, or unknown.
        case trackSwitchedOff(TrackInfo, by: ParticipantInfo, reason: String)
        /// The server sends a track again.
        case trackSwitchedOn(TrackInfo, by: ParticipantInfo)
        /// The session is over; no event follows.
        case ended(Ending)
    }

    /// Describes the first packets of a subscription.
    package struct Subscription: Hashable, Sendable {
        /// The simulcast layer that is sent first; `catchUpThrough` applies only to it.
        package var simulcastLayer: UInt8
        /// The last frame number of the cached frames that are sent first: decode these frames, but do not show them.
        package var catchUpThrough: UInt32?
        /// Whether no packets come until the client subscribes to the track again.
        package var isPaused: Bool

        package init(simulcastLayer: UInt8 = 0, catchUpThrough: UInt32? = nil, isPaused: Bool = false) {
            self.simulcastLayer = simulcastLayer
            self.catchUpThrough = catchUpThrough
            self.isPaused = isPaused
        }

        /// Whether a frame comes from the server's cache: decode it, but do not show it.
        package func isCatchUp(_ frame: EncodedFrameInfo) -> Bool {
            guard let catchUpThrough, frame.simulcastLayer == simulcastLayer else { return false }
            return frame.number <= catchUpThrough
        }
    }

    /// The reason why a track cannot be received.
    package enum SubscriptionFailure: Error, Hashable, Sendable {
        /// The track's codec is not one of `Settings.videoCodecs`.
        case unknownCodec(String)
        /// The track lacks its codec, size or frame rate.
        case incompleteDescription
    }

    /// The reason why a session is over.
    package enum Ending: Error, Hashable, Sendable {
        /// This client left.
        case left
        /// The server asked this client to leave.
        case dismissed(reason: String, reconnect: Bool, url: String?)
        /// The server refused this client, or ended the session with an error.
        case refused(ErrorMessage)
        /// The connection broke.
        case connectionLost(String)
        /// The server broke the protocol.
        case protocolViolation(String)
        /// The server did not answer `join` in time.
        case joinTimedOut
    }

    private enum State {
        case connecting
        case joining(asked: MonotonicInstant)
        /// `joined` arrived, and more participants follow it.
        case completing(Joined, asked: MonotonicInstant)
        case joined
        case ended
    }

    /// The number of round trips right after joining, so that the clock is known early; then one follows each
    /// `syncInterval`.
    private static let firstSyncs = 5
    private static let firstSyncInterval: Duration = .milliseconds(50)
    private static let syncInterval: Duration = .seconds(5)

    private let settings: Settings
    private var state = State.connecting
    private var clock = ClockOffsetEstimator(claimsSameHost: false)
    private var nextSync: MonotonicInstant?
    private var syncsSent = 0
    private var participants: [String: ParticipantInfo] = [:]
    private var publisherOfTrack: [String: String] = [:]

    /// Creates a session that waits for its connection.
    package init(_ settings: Settings) {
        self.settings = settings
    }

    /// The estimate of the server's clock; `nil` until the first answer of a server on another machine.
    package var clockEstimate: ClockEstimate? { clock.estimate }

    /// The other participants by id, with only those tracks whose kind this version knows.
    package var remoteParticipants: [String: ParticipantInfo] { participants.mapValues(Self.withKnownTracks) }

    /// When `deadlineReached` must be called.
    package var nextDeadline: MonotonicInstant? {
        switch state {
        case .joining(let asked), .completing(_, let asked): asked + settings.joinTimeout
        case .joined: nextSync
        case .connecting, .ended: nil
        }
    }

    /// The connection has opened.
    package mutating func connectionOpened(at now: MonotonicInstant) -> [Action] {
        guard case .connecting = state else { return [] }
        state = .joining(asked: now)
        return [.send(.join(settings.join))]
    }

    /// The server or the network has closed the connection.
    package mutating func connectionClosed(_ reason: String) -> [Action] {
        end(.connectionLost(reason))
    }

    /// The server sent something that could not even be received as a message.
    package mutating func violated(_ problem: String) -> [Action] {
        violation(problem)
    }

    /// Leaves the room.
    package mutating func leave() -> [Action] {
        if case .ended = state { return [] }
        guard case .joined = state else { return end(.left) + [.close(code: 1000, reason: "left")] }
        return [.send(.leave(Leave(reason: "left")))] + end(.left) + [.close(code: 1000, reason: "left")]
    }

    /// Call this when `nextDeadline` has passed.
    package mutating func deadlineReached(at now: MonotonicInstant) -> [Action] {
        guard let deadline = nextDeadline, now >= deadline else { return [] }
        switch state {
        case .joining, .completing:
            return end(.joinTimedOut) + [.close(code: 1000, reason: "no answer to join")]
        case .joined:
            syncsSent += 1
            nextSync = now + (syncsSent < Self.firstSyncs ? Self.firstSyncInterval : Self.syncInterval)
            return [.send(.timeSync(TimeSync(clientTime: now.microseconds)))]
        case .connecting, .ended:
            return []
        }
    }

    /// A text message has arrived.
    package mutating func received(_ text: String, at now: MonotonicInstant) -> [Action] {
        if case .ended = state { return [] }
        let message: ServerMessage
        do {
            message = try ServerMessage(reading: text)
        } catch {
            guard case .malformed = error else { return [] }
            return violation("the server sent \(error)")
        }
        switch (state, message) {
        // The server closes after a fatal error; closing here as well makes sure of it.
        case (_, .error(let error)) where error.fatal:
            return end(.refused(error)) + [.close(code: 1000, reason: "refused")]
        case (_, .leave(let leave)):
            return end(.dismissed(reason: leave.reason, reconnect: leave.reconnect ?? false, url: leave.url))
                + [.close(code: 1000, reason: "dismissed")]
        case (.joining(let asked), .joined(let joined)): return enter(joined, asked: asked, at: now)
        case (.joining, .error(let error)): return [.notify(.refused(error))]
        case (.joining, _): return violation("the server answered \"join\" with something else")
        case (.completing, .joined): return violation("the server said \"joined\" twice")
        case (.completing(let joined, let asked), let message):
            return complete(joined, with: message, asked: asked, at: now)
        case (.joined, .joined): return violation("the server said \"joined\" twice")
        case (.joined, let message): return handle(message, at: now)
        case (.connecting, _), (.ended, _): return []
        }
    }

    private mutating func enter(_ joined: Joined, asked: MonotonicInstant, at now: MonotonicInstant) -> [Action] {
        guard joined.version == WireFormat.version else {
            return violation("the server speaks version \(joined.version), this client \(WireFormat.version)")
        }
        let isSameHost = joined.bootId != nil && joined.bootId == settings.join.bootId
        clock = ClockOffsetEstimator(claimsSameHost: isSameHost)
        clock.receive(sent: asked, serverTime: RoomTime(microseconds: joined.serverTime), received: now)
        for participant in joined.participants { remember(participant) }
        guard joined.moreParticipants == true else { return begin(joined, at: now) }
        state = .completing(joined, asked: asked)
        return []
    }

    /// Takes a message after a `joined` that did not hold all participants.
    private mutating func complete(
        _ joined: Joined,
        with message: ServerMessage,
        asked: MonotonicInstant,
        at now: MonotonicInstant
    ) -> [Action] {
        switch message {
        case .participantConnected(let body):
            remember(body.participant)
            var longer = joined
            longer.participants.append(body.participant)
            state = .completing(longer, asked: asked)
            return []
        case .participantsComplete:
            return begin(joined, at: now)
        default:
            return violation("the server broke off the participants after \"joined\"")
        }
    }

    private mutating func begin(_ joined: Joined, at now: MonotonicInstant) -> [Action] {
        state = .joined
        nextSync = now
        var known = joined
        known.participants = joined.participants.map(Self.withKnownTracks)
        return [.notify(.joined(known))] + deadlineReached(at: now)
    }

    private mutating func handle(_ message: ServerMessage, at now: MonotonicInstant) -> [Action] {
        switch message {
        case .participantConnected(let body):
            remember(body.participant)
            return [.notify(.participantConnected(Self.withKnownTracks(body.participant)))]
        case .participantsComplete:
            return []
        case .participantDisconnected(let body):
            guard let participant = participants.removeValue(forKey: body.participantId) else { return [] }
            for track in participant.tracks { publisherOfTrack[track.id] = nil }
            return [.notify(.participantDisconnected(Self.withKnownTracks(participant)))]
        case .trackPublished(let body):
            guard participants[body.participantId] != nil else { return [] }
            participants[body.participantId]?.tracks.append(body.track)
            publisherOfTrack[body.track.id] = body.participantId
            return about(body.track.id) { .trackPublished($0, by: $1) }
        case .trackUnpublished(let body):
            let actions = about(body.trackId) { .trackUnpublished($0, by: $1) }
            participants[body.participantId]?.tracks.removeAll { $0.id == body.trackId }
            publisherOfTrack[body.trackId] = nil
            return actions
        case .trackEnabled(let body):
            setEnabled(true, track: body.trackId)
            return about(body.trackId) { .trackEnabled($0, by: $1) }
        case .trackDisabled(let body):
            setEnabled(false, track: body.trackId)
            return about(body.trackId) { .trackDisabled($0, by: $1) }
        case .subscribed(let body):
            return subscribed(body)
        case .unsubscribed(let body):
            return about(body.trackId) { .unsubscribed($0, by: $1) }
        case .published(let body):
            return [.notify(.published(requestID: body.requestId, body.track))]
        case .layersWanted(let body):
            return [.notify(.layersWanted(trackID: body.trackId, layers: body.layers))]
        case .keyframeRequest(let body):
            return [.notify(.keyframeRequested(trackID: body.trackId, simulcastLayer: body.simulcastLayer))]
        case .networkQuality(let body):
            guard (0...5).contains(body.level) else { return [] }
            return [.notify(.networkQuality(participantID: body.participantId, level: body.level))]
        case .trackSwitchedOff(let body):
            return about(body.trackId) { .trackSwitchedOff($0, by: $1, reason: body.reason) }
        case .trackSwitchedOn(let body):
            return about(body.trackId) { .trackSwitchedOn($0, by: $1) }
        case .timeSync(let body):
            guard let serverTime = body.serverTime else { return [] }
            clock.receive(
                sent: MonotonicInstant(microseconds: body.clientTime),
                serverTime: RoomTime(microseconds: serverTime),
                received: now
            )
            return []
        case .error(let error):
            return [.notify(.refused(error))]
        case .joined, .leave:
            return []
        }
    }

    /// Accepts a subscription to a usable track; ends any other, so that the server sends no useless packets.
    private mutating func subscribed(_ body: Subscribed) -> [Action] {
        guard let (publisherID, index) = place(ofTrack: body.trackId), let publisher = participants[publisherID] else {
            return []
        }
        participants[publisherID]?.tracks[index].alias = body.alias
        var track = publisher.tracks[index]
        track.alias = body.alias
        let refusal = Action.send(.unsubscribe(Unsubscribe(trackId: track.id)))
        guard track.kind == TrackKind.video else { return [refusal] }
        let visible = Self.withKnownTracks(publisher)
        guard let video = track.video else {
            return [refusal, .notify(.subscriptionFailed(track, by: visible, .incompleteDescription))]
        }
        guard settings.videoCodecs.contains(video.codec) else {
            return [refusal, .notify(.subscriptionFailed(track, by: visible, .unknownCodec(video.codec)))]
        }
        let subscription = Subscription(
            simulcastLayer: UInt8(clamping: body.simulcastLayer ?? 0),
            catchUpThrough: body.catchUpThrough,
            isPaused: body.paused ?? false
        )
        return [.notify(.subscribed(track, by: visible, subscription))]
    }

    /// The participant with only those tracks whose kind this version knows.
    private static func withKnownTracks(_ participant: ParticipantInfo) -> ParticipantInfo {
        var known = participant
        known.tracks.removeAll { $0.kind != TrackKind.video }
        return known
    }

    private func place(ofTrack trackID: String) -> (publisherID: String, index: Int)? {
        guard
            let publisherID = publisherOfTrack[trackID],
            let index = participants[publisherID]?.tracks.firstIndex(where: { $0.id == trackID })
        else { return nil }
        return (publisherID, index)
    }

    private mutating func remember(_ participant: ParticipantInfo) {
        for track in participants[participant.id]?.tracks ?? [] { publisherOfTrack[track.id] = nil }
        participants[participant.id] = participant
        for track in participant.tracks { publisherOfTrack[track.id] = participant.id }
    }

    private mutating func setEnabled(_ enabled: Bool, track trackID: String) {
        guard let (publisherID, index) = place(ofTrack: trackID) else { return }
        participants[publisherID]?.tracks[index].enabled = enabled
    }

    /// The event about a remote track of a known kind.
    ///
    /// Returns nothing for other tracks, such as one that has just been withdrawn.
    private func about(_ trackID: String, _ event: (TrackInfo, ParticipantInfo) -> Event) -> [Action] {
        guard let (publisherID, index) = place(ofTrack: trackID), let publisher = participants[publisherID],
            publisher.tracks[index].kind == TrackKind.video
        else { return [] }
        return [.notify(event(publisher.tracks[index], Self.withKnownTracks(publisher)))]
    }

    private mutating func violation(_ problem: String) -> [Action] {
        end(.protocolViolation(problem))
            + [.close(code: 1002, reason: problem.prefix(utf8Bytes: WireFormat.maximumCloseReasonBytes))]
    }

    private mutating func end(_ ending: Ending) -> [Action] {
        if case .ended = state { return [] }
        state = .ended
        return [.notify(.ended(ending))]
    }
}
