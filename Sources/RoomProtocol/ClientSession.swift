package import MediaCore

/// A client's side of a session, from the open connection to its end, as a value: events in, actions out.
///
/// It owns no socket and no timer. Its driver executes the actions in order and calls `deadlineReached` at
/// `nextDeadline`.
package struct ClientSession: Sendable {
    /// The settings of a session.
    package struct Settings: Sendable {
        /// The body of the `join` message.
        package var join: Join
        /// The time from the open connection within which the server must send `joined`.
        package var joinTimeout: Duration = .seconds(10)
        /// The video codecs that the client can decode; a subscription to a track with another codec is ended.
        package var videoCodecs: Set<String>

        /// Creates the settings for joining with `join`, with the default time limit.
        package init(join: Join, videoCodecs: Set<String>) {
            self.join = join
            self.videoCodecs = videoCodecs
        }
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
    private var roster = RemoteRoster()
    /// The participants that were in the room, while their list is not complete.
    private var arriving: [ParticipantInfo] = []

    /// Creates a session that waits for its connection.
    package init(_ settings: Settings) {
        self.settings = settings
    }

    /// The estimate of the server's clock; `nil` until the first answer of a server on another machine.
    package var clockEstimate: ClockEstimate? { clock.estimate }

    /// The last round trips of `join` and `timeSync`, oldest first.
    package var roundTrips: [Duration] { clock.roundTrips }

    /// The other participants by id, with only those tracks whose kind this version knows.
    package var remoteParticipants: [String: ParticipantInfo] { roster.participants.mapValues(\.withKnownTracks) }

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

    /// The server has closed the connection with a code (`docs/protocol.md`, section 12).
    ///
    /// A message that said why may not have come, or not have been read, so the code itself must say whether to return.
    package mutating func connectionClosed(byServerWith code: Int, _ reason: String) -> [Action] {
        let words = reason.isEmpty ? "\(RoomErrorCode(rawValue: code).name), without a word" : reason
        switch code {
        case 4000...4999: return end(.refused(ErrorMessage(RoomErrorCode(rawValue: code), words, fatal: true)))
        // 1005 and 1006 stand for no code at all (RFC 6455, section 7.4.1). libwebsockets 4.1 reports 1012 to 1014, with
        // which a server or proxy says that it is back soon, as 1002; so 1002 does not keep anybody away.
        case 1003, 1007...1010: return end(.faulted(code: code, reason: reason))
        default:
            let text = reason.isEmpty ? "" : ": \(reason)"
            return end(.connectionLost("The server closed the connection (\(code))\(text)."))
        }
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
        case (.completing(let joined, _), let message):
            return complete(joined, with: message, at: now)
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
        arriving = joined.participants.compactMap { roster.add($0) }
        if roster.isFull { return violation(Self.tooMany) }
        guard joined.moreParticipants == true else { return begin(joined, at: now) }
        state = .completing(joined, asked: asked)
        return []
    }

    /// Takes a message after a `joined` that did not hold all participants.
    private mutating func complete(
        _ joined: Joined,
        with message: ServerMessage,
        at now: MonotonicInstant
    ) -> [Action] {
        switch message {
        case .participantConnected(let body):
            if let added = roster.add(body.participant) { arriving.append(added) }
            return roster.isFull ? violation(Self.tooMany) : []
        case .participantsComplete:
            return begin(joined, at: now)
        // These are about no participant or track, and may come at any time.
        case .error, .timeSync:
            return handle(message, at: now)
        default:
            return violation("the server broke off the participants after \"joined\"")
        }
    }

    private mutating func begin(_ joined: Joined, at now: MonotonicInstant) -> [Action] {
        state = .joined
        nextSync = now
        var known = joined
        known.participants = arriving.map(\.withKnownTracks)
        arriving = []
        return [.notify(.joined(known))] + deadlineReached(at: now)
    }

    private mutating func handle(_ message: ServerMessage, at now: MonotonicInstant) -> [Action] {
        switch message {
        case .participantConnected(let body):
            return connected(body.participant)
        case .participantsComplete:
            return []
        case .participantDisconnected(let body):
            guard let participant = roster.remove(body.participantId) else { return [] }
            return [.notify(.participantDisconnected(participant.withKnownTracks))]
        case .trackPublished(let body):
            guard roster.add(body.track, of: body.participantId) else { return [] }
            return about(body.track.id) { .trackPublished($0, by: $1) }
        case .trackUnpublished(let body):
            let actions = about(body.trackId) { .trackUnpublished($0, by: $1) }
            roster.remove(track: body.trackId)
            return actions
        case .trackEnabled(let body):
            roster.change(body.trackId) { $0.enabled = true }
            return about(body.trackId) { .trackEnabled($0, by: $1) }
        case .trackDisabled(let body):
            roster.change(body.trackId) { $0.enabled = false }
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

    /// A participant has come; one that was there already has come again, and what it had is gone.
    private mutating func connected(_ participant: ParticipantInfo) -> [Action] {
        let former = roster.remove(participant.id).map { Action.notify(.participantDisconnected($0.withKnownTracks)) }
        guard let added = roster.add(participant) else { return violation(Self.tooMany) }
        return [former, .notify(.participantConnected(added.withKnownTracks))].compactMap(\.self)
    }

    private static let tooMany = "the server named more than \(RemoteRoster.mostParticipants) participants"

    /// Accepts a subscription to a usable track; ends any other, so that the server sends no useless packets.
    private mutating func subscribed(_ body: Subscribed) -> [Action] {
        guard case (var track, let publisher)? = roster.track(body.trackId) else { return [] }
        track.alias = body.alias
        roster.change(body.trackId) { $0.alias = body.alias }
        let refusal = Action.send(.unsubscribe(Unsubscribe(trackId: track.id)))
        guard track.kind == TrackKind.video else { return [refusal] }
        let visible = publisher.withKnownTracks
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

    /// The event about a remote track of a known kind.
    ///
    /// Returns nothing for other tracks, such as one that has just been withdrawn.
    private func about(_ trackID: String, _ event: (TrackInfo, ParticipantInfo) -> Event) -> [Action] {
        guard let (track, publisher) = roster.track(trackID), track.kind == TrackKind.video else { return [] }
        return [.notify(event(track, publisher.withKnownTracks))]
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
