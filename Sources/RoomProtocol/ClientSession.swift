package import MediaCore

/// A client's side of a session, from the open connection to its end, as a value: events in, actions out.
///
/// Owns no socket and no timer: whoever drives it carries out the actions in order and calls `deadlineReached` at
/// `nextDeadline`.
package struct ClientSession: Sendable {
    /// What the client joins with.
    package struct Settings: Sendable {
        /// The body of the `join` message.
        package var join: Join
        /// How long the server may take from the open connection to `joined`.
        package var joinTimeout: Duration = .seconds(10)

        /// The settings as documented, for joining with `join`.
        package init(join: Join) {
            self.join = join
        }
    }

    /// Something that the driver must do.
    package enum Action: Hashable, Sendable {
        /// Send a message.
        case send(ClientMessage)
        /// Tell the room.
        case notify(Event)
        /// Close the connection, with the given WebSocket code; always the last action.
        case close(code: UInt16, reason: String)
    }

    /// Something that happened in the room.
    package enum Event: Hashable, Sendable {
        case joined(Joined)
        case participantConnected(ParticipantInfo)
        case participantDisconnected(ParticipantInfo)
        case trackPublished(TrackInfo, by: ParticipantInfo)
        case trackUnpublished(TrackInfo, by: ParticipantInfo)
        case trackEnabled(TrackInfo, by: ParticipantInfo)
        case trackDisabled(TrackInfo, by: ParticipantInfo)
        case subscribed(TrackInfo, by: ParticipantInfo, catchUpThrough: UInt32?)
        case unsubscribed(TrackInfo, by: ParticipantInfo)
        /// A track of our own was accepted.
        case published(requestID: Int, TrackInfo)
        /// A request of our own was refused.
        case refused(ErrorMessage)
        /// Which encodings of our own track somebody receives.
        case layersWanted(trackID: String, simulcastLayers: [Int])
        /// Somebody needs a keyframe of our own track.
        case keyframeRequested(trackID: String)
        /// The session is over; nothing comes after it.
        case ended(Ending)
    }

    /// Why a session is over.
    package enum Ending: Error, Hashable, Sendable {
        /// We left.
        case left
        /// The server told us to go.
        case dismissed(reason: String, reconnect: Bool)
        /// The server refused us, or ended the session with an error.
        case refused(ErrorMessage)
        /// The connection broke.
        case connectionLost(String)
        /// The server breaks the protocol.
        case protocolViolation(String)
        /// The server did not answer `join` in time.
        case joinTimedOut
    }

    private enum State {
        case connecting
        case joining(asked: MonotonicInstant)
        case joined
        case ended
    }

    /// Round trips right after joining, so that the clock is known early; then one each `syncInterval`.
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

    /// A session that waits for its connection.
    package init(_ settings: Settings) {
        self.settings = settings
    }

    /// What is known of the server's clock; `nil` until the first answer of a server on another machine.
    package var clockEstimate: ClockEstimate? { clock.estimate }

    /// The other participants, by id.
    package var remoteParticipants: [String: ParticipantInfo] { participants }

    /// When `deadlineReached` must be called.
    package var nextDeadline: MonotonicInstant? {
        switch state {
        case .joining(let asked): asked + settings.joinTimeout
        case .joined: nextSync
        case .connecting, .ended: nil
        }
    }

    /// The connection is open.
    package mutating func connectionOpened(at now: MonotonicInstant) -> [Action] {
        guard case .connecting = state else { return [] }
        state = .joining(asked: now)
        return [.send(.join(settings.join))]
    }

    /// The connection is closed, by the server or the network.
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

    /// `nextDeadline` has come.
    package mutating func deadlineReached(at now: MonotonicInstant) -> [Action] {
        guard let deadline = nextDeadline, now >= deadline else { return [] }
        switch state {
        case .joining:
            return end(.joinTimedOut) + [.close(code: 1000, reason: "no answer to join")]
        case .joined:
            syncsSent += 1
            nextSync = now + (syncsSent < Self.firstSyncs ? Self.firstSyncInterval : Self.syncInterval)
            return [.send(.timeSync(TimeSync(clientTime: now.microseconds)))]
        case .connecting, .ended:
            return []
        }
    }

    /// A text message came.
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
        // The server closes after these; a close of ours as well makes sure of it.
        case (_, .error(let error)) where error.fatal:
            return end(.refused(error)) + [.close(code: 1000, reason: "refused")]
        case (_, .leave(let leave)):
            return end(.dismissed(reason: leave.reason, reconnect: leave.reconnect ?? false))
                + [.close(code: 1000, reason: "dismissed")]
        case (.joining(let asked), .joined(let joined)): return enter(joined, asked: asked, at: now)
        case (.joining, .error(let error)): return [.notify(.refused(error))]
        case (.joining, _): return violation("the server answered \"join\" with something else")
        case (.joined, .joined): return violation("the server said \"joined\" twice")
        case (.joined, let message): return handle(message, at: now)
        case (.connecting, _), (.ended, _): return []
        }
    }

    private mutating func enter(_ joined: Joined, asked: MonotonicInstant, at now: MonotonicInstant) -> [Action] {
        guard joined.version == WireFormat.version else {
            return violation("the server speaks version \(joined.version), this client \(WireFormat.version)")
        }
        state = .joined
        let isSameHost = joined.bootId != nil && joined.bootId == settings.join.bootId
        clock = ClockOffsetEstimator(claimsSameHost: isSameHost)
        clock.receive(sent: asked, serverTime: RoomTime(microseconds: joined.serverTime), received: now)
        nextSync = now
        for participant in joined.participants { remember(participant) }
        return [.notify(.joined(joined))] + deadlineReached(at: now)
    }

    private mutating func handle(_ message: ServerMessage, at now: MonotonicInstant) -> [Action] {
        switch message {
        case .participantConnected(let body):
            remember(body.participant)
            return [.notify(.participantConnected(body.participant))]
        case .participantDisconnected(let body):
            guard let participant = participants.removeValue(forKey: body.participantId) else { return [] }
            for track in participant.tracks { publisherOfTrack[track.id] = nil }
            return [.notify(.participantDisconnected(participant))]
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
            return about(body.trackId) { .subscribed($0, by: $1, catchUpThrough: body.catchUpThrough) }
        case .unsubscribed(let body):
            return about(body.trackId) { .unsubscribed($0, by: $1) }
        case .published(let body):
            return [.notify(.published(requestID: body.requestId, body.track))]
        case .layersWanted(let body):
            return [.notify(.layersWanted(trackID: body.trackId, simulcastLayers: body.simulcastLayers))]
        case .keyframeRequest(let body):
            return [.notify(.keyframeRequested(trackID: body.trackId))]
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

    private mutating func remember(_ participant: ParticipantInfo) {
        for track in participants[participant.id]?.tracks ?? [] { publisherOfTrack[track.id] = nil }
        participants[participant.id] = participant
        for track in participant.tracks { publisherOfTrack[track.id] = participant.id }
    }

    private mutating func setEnabled(_ enabled: Bool, track trackID: String) {
        guard let participantID = publisherOfTrack[trackID] else { return }
        let index = participants[participantID]?.tracks.firstIndex { $0.id == trackID }
        if let index { participants[participantID]?.tracks[index].enabled = enabled }
    }

    /// The event about a remote track that is known; nothing for one that is not, as when it left in the meantime.
    private func about(_ trackID: String, _ event: (TrackInfo, ParticipantInfo) -> Event) -> [Action] {
        guard
            let participantID = publisherOfTrack[trackID], let participant = participants[participantID],
            let track = participant.tracks.first(where: { $0.id == trackID })
        else { return [] }
        return [.notify(event(track, participant))]
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
