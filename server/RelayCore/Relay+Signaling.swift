package import MediaCore
import RoomProtocol

extension Relay {
    /// Handles a text message; `generator` makes the ids of rooms, participants and tracks.
    package mutating func receive(
        _ text: String,
        from id: SlotID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        guard connections[id]?.isClosing == false else { return }
        countText(text.utf8.count, from: id, at: now)
        defer { dropSlowConnections(at: now) }
        guard connections[id]?.budget.chargeMessage(of: text.utf8.count, to: limits.signaling, at: now) == true else {
            let sentence = "too many messages; allowed are \(settings.messageBurst) at once"
            return fail(id, ErrorMessage(.limitReached, sentence, fatal: true), at: now)
        }
        guard readsAnswers(id) else {
            let sentence = "\(Self.mostUnreadRequests) messages came from a client that reads nothing"
            return fail(id, ErrorMessage(.tooSlow, sentence, fatal: true), at: now)
        }
        do {
            let message = try ClientMessage(reading: text)
            if let participant = connections.hot[id.index].participant {
                handle(message, from: participant, on: id, at: now, using: &generator)
            } else {
                handleFirst(message, from: id, at: now, using: &generator)
            }
        } catch {
            switch error {
            case .unknownType(let head): refuse(head, "\(error)", on: id)
            case .malformed: fail(id, ErrorMessage(.malformedMessage, "\(error)", fatal: true), at: now)
            }
        }
    }

    /// The messages that a client may send while it reads none of ours: each may cause an answer that is kept for it.
    static var mostUnreadRequests: Int { 1000 }

    /// Counts a message of a client for which messages of ours wait.
    ///
    /// - Returns: Whether the client may send it.
    private mutating func readsAnswers(_ id: ConnectionID) -> Bool {
        guard !connections.hot[id.index].messages.isEmpty else { return true }
        connections.hot[id.index].unreadRequests += 1
        return connections.hot[id.index].unreadRequests <= Self.mostUnreadRequests
    }

    /// Refuses a message of an unknown type, as the answer to its request if it is one.
    private mutating func refuse(_ head: MessageHead, _ sentence: String, on id: ConnectionID) {
        let error = ErrorMessage(
            .unknownType,
            sentence,
            fatal: false,
            requestId: head.requestId,
            trackId: head.trackId?.prefix(utf8Bytes: 64)
        )
        send(.error(error), to: id)
    }

    private mutating func handleFirst(
        _ message: ClientMessage,
        from id: ConnectionID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        switch message {
        case .join(let join):
            if let error = refusal(of: join, on: id) ?? chargeJoining(join, at: now) { return fail(id, error, at: now) }
            enter(join, id, at: now, using: &generator)
        case .resume(let body):
            let sentence = "this server does not keep sessions; join anew"
            let error = ErrorMessage(.cannotResume, sentence, fatal: false, requestId: body.requestId)
            send(.error(error), to: id)
        case .timeSync(let body): answer(body, to: id, at: now)
        default:
            fail(id, ErrorMessage(.malformedMessage, "the first message must be \"join\"", fatal: true), at: now)
        }
    }

    private mutating func handle(
        _ message: ClientMessage,
        from participant: ParticipantID,
        on id: ConnectionID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        let deliveries = deliveries(of: message, from: participant)
        guard connections[id]?.budget.chargeDeliveries(deliveries, to: limits.signaling, at: now) == true else {
            let sentence = "too many messages for the others in the room; allowed are \(settings.deliveryBurst) at once"
            return fail(id, ErrorMessage(.limitReached, sentence, fatal: true), at: now)
        }
        switch message {
        case .publish(let body): publish(body, by: participant, at: now, using: &generator)
        case .unpublish(let body): unpublish(body, by: participant, at: now)
        case .enable(let body): enable(body, by: participant, at: now)
        case .disable(let body): disable(body, by: participant)
        case .updateTrack(let body): updateTrack(body, by: participant, at: now)
        case .subscribe(let body): subscribe(body, participant, at: now)
        case .unsubscribe(let body): unsubscribe(body, participant, at: now)
        case .keyframeRequest(let body): keyframeRequested(body, by: participant, at: now)
        case .timeSync(let body): answer(body, to: id, at: now)
        case .leave:
            beginClosing(id, RoomErrorCode(rawValue: 1000), reason: "left", at: now)
        case .join, .resume:
            fail(id, ErrorMessage(.malformedMessage, "\"join\" and \"resume\" come first, once", fatal: true), at: now)
        }
    }

    /// The number of messages that a participant's message causes for the others in the room.
    private func deliveries(of message: ClientMessage, from participant: ParticipantID) -> Int {
        let others = participants[participant].flatMap { rooms[$0.room] }.map { $0.participants.count - 1 } ?? 0
        return switch message {
        case .publish: 2 * others
        case .unpublish(let body): ownTrack(body.trackId, of: participant) == nil ? 0 : others
        case .enable(let body): changesEnabled(body.trackId, to: true, by: participant) ? others : 0
        case .disable(let body): changesEnabled(body.trackId, to: false, by: participant) ? others : 0
        // The wishes of all subscribers are looked at.
        case .updateTrack(let body): changesWishedSizes(body, by: participant) ? others : 0
        default: 0
        }
    }

    private func changesWishedSizes(_ request: UpdateTrack, by participant: ParticipantID) -> Bool {
        guard let sizes = request.sizes, let track = ownTrack(request.trackId, of: participant),
            tracks[track]?.hasWishes == true
        else { return false }
        return sizes != tracks[track]?.info.simulcastLayers?.map(\.size)
    }

    private func changesEnabled(_ trackID: String, to isEnabled: Bool, by participant: ParticipantID) -> Bool {
        ownTrack(trackID, of: participant).map { tracks[$0]?.info.enabled == !isEnabled } ?? false
    }

    private mutating func answer(_ body: TimeSync, to id: ConnectionID, at now: MonotonicInstant) {
        // An answer that comes late says nothing of the time.
        guard connections.contains(id), !isSilent(id, at: now) else { return }
        let answer = TimeSync(clientTime: body.clientTime, serverTime: now.microseconds, requestId: body.requestId)
        send(.timeSync(answer), to: id)
    }

    /// What a request about a track needs.
    enum TrackNeed {
        /// The track is this participant's.
        case ownership
        /// The track is another participant's.
        case otherPublisher
        /// This participant is subscribed to the track.
        case subscription
    }

    /// Refuses a request about a track that is not there, or that this participant may not make.
    mutating func sayNotFound(
        _ trackID: String,
        _ requestID: Int?,
        to participant: ParticipantID,
        needing need: TrackNeed
    ) {
        let error = ErrorMessage(
            .notFound,
            reasonNotFound(trackID, for: participant, need),
            fatal: false,
            requestId: requestID,
            trackId: trackID.prefix(utf8Bytes: 64)
        )
        send(.error(error), toParticipant: participant)
    }

    private func reasonNotFound(_ trackID: String, for participant: ParticipantID, _ need: TrackNeed) -> String {
        guard let track = trackOfID[trackID], let info = tracks[track]?.info,
            let publisher = participants[tracks.hot[track.index].publisher],
            publisher.room == participants[participant]?.room
        else {
            let cited = trackID.prefix(utf8Bytes: 64)
            return "this room has no track \"\(cited)\"; use the id of one that is published now"
        }
        let name = "the track \"\(info.name)\" (\(trackID))"
        return switch need {
        case .ownership: "\(name) can only be changed by its publisher, \"\(publisher.identity)\""
        case .otherPublisher: "\(name) is this participant's own; only others can subscribe to it"
        case .subscription: "this participant is not subscribed to \(name)"
        }
    }

    /// Makes an id of 72 random bits, which cannot be guessed.
    static func makeID(_ prefix: String, using generator: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var id = "\(prefix)_"
        for _ in 0..<12 { id.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]) }
        return id
    }
}
