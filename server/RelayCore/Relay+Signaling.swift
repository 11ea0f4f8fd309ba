package import MediaCore
import RoomProtocol

extension Relay {
    /// A text message came; `generator` makes the ids of rooms, participants and tracks.
    package mutating func receive(
        _ text: String,
        from id: SlotID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let phase = connections[id]?.phase else { return }
        if case .closing = phase { return }
        defer { dropSlowParticipants(at: now) }
        let isAllowed = connections[id]?.pay(interval: settings.messageInterval, burst: settings.messageBurst, at: now)
        guard isAllowed == true else {
            let sentence = "too many messages; allowed are \(settings.messageBurst) at once"
            return fail(id, ErrorMessage(.limitReached, sentence, fatal: true), at: now)
        }
        do {
            let message = try ClientMessage(reading: text)
            if case .joined(let participant) = phase {
                handle(message, from: id, participant, at: now, using: &generator)
            } else {
                handleFirst(message, from: id, at: now, using: &generator)
            }
        } catch {
            switch error {
            case .unknownType: send(.error(ErrorMessage(.unknownType, "\(error)", fatal: false)), to: id)
            case .malformed: fail(id, ErrorMessage(.malformedMessage, "\(error)", fatal: true), at: now)
            }
        }
    }

    private mutating func handleFirst(
        _ message: ClientMessage,
        from id: SlotID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        switch message {
        case .join(let join):
            if let error = refusal(of: join) { return fail(id, error, at: now) }
            enter(join, id, at: now, using: &generator)
        case .resume:
            let sentence = "this server does not keep sessions; join anew"
            send(.error(ErrorMessage(.cannotResume, sentence, fatal: false)), to: id)
        case .timeSync(let body): answer(body, to: id, at: now)
        default:
            fail(id, ErrorMessage(.malformedMessage, "the first message must be \"join\"", fatal: true), at: now)
        }
    }

    private mutating func handle(
        _ message: ClientMessage,
        from id: SlotID,
        _ participant: Connection.Participant,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        switch message {
        case .publish(let body): publish(body, by: id, participant, at: now, using: &generator)
        case .unpublish(let body):
            guard let track = ownTrack(body.trackId, of: id) else { return sayNotFound(body.trackId, to: id) }
            removeTrack(track)
        case .enable(let body): setEnabled(true, body.trackId, by: id, participant, at: now)
        case .disable(let body): setEnabled(false, body.trackId, by: id, participant, at: now)
        case .subscribe(let body): subscribe(to: body.trackId, id, participant, at: now)
        case .unsubscribe(let body): unsubscribe(from: body.trackId, id, at: now)
        case .keyframeRequest(let body): keyframeRequested(body.trackId, by: id, at: now)
        case .timeSync(let body): answer(body, to: id, at: now)
        case .leave:
            beginClosing(id, RoomErrorCode(rawValue: 1000), reason: "left", at: now)
        case .join, .resume:
            fail(id, ErrorMessage(.malformedMessage, "\"join\" and \"resume\" come first, once", fatal: true), at: now)
        }
    }

    private mutating func answer(_ body: TimeSync, to id: SlotID, at now: MonotonicInstant) {
        send(.timeSync(TimeSync(clientTime: body.clientTime, serverTime: now.microseconds)), to: id)
    }

    // MARK: Joining and leaving

    private func refusal(of join: Join) -> ErrorMessage? {
        if join.version != WireFormat.version {
            let sentence = "this server speaks protocol version \(WireFormat.version), the client \(join.version)"
            return ErrorMessage(.notSupported, sentence, fatal: true)
        }
        if let problem = problem(withName: join.room) {
            return ErrorMessage(.invalidArgument, "the room's name \(problem)", fatal: true)
        }
        if let problem = problem(withName: join.identity) {
            return ErrorMessage(.invalidArgument, "the identity \(problem)", fatal: true)
        }
        guard let room = rooms[join.room] else {
            guard rooms.count >= settings.maximumRooms else { return nil }
            return ErrorMessage(.limitReached, "the server has \(rooms.count) rooms, its limit", fatal: true)
        }
        guard room.participants.count >= settings.maximumParticipantsPerRoom else { return nil }
        // Whoever comes back before its old connection was found dead takes its own place.
        if room.participants.contains(where: { connections[$0]?.participant?.identity == join.identity }) { return nil }
        let sentence = "the room has \(room.participants.count) participants, its limit"
        return ErrorMessage(.limitReached, sentence, fatal: true)
    }

    func problem(withName name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > WireFormat.maximumNameBytes {
            return "has \(name.utf8.count) bytes; \(WireFormat.maximumNameBytes) are allowed"
        }
        let hasControl = name.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
        return hasControl ? "has control characters" : nil
    }

    private mutating func enter(
        _ join: Join,
        _ id: SlotID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        replaceNamesake(join.identity, in: join.room, at: now)
        var room = rooms[join.room] ?? Room(id: Self.makeID("RM", using: &generator), name: join.room)
        let participant = Connection.Participant(
            id: Self.makeID("PA", using: &generator),
            identity: join.identity,
            room: join.room,
            subscribesAutomatically: join.automaticSubscription ?? true
        )
        connections[id]?.phase = .joined(participant)
        let others = room.participants
        room.participants.append(id)
        rooms[join.room] = room
        let own = ParticipantInfo(id: participant.id, identity: participant.identity, tracks: [])
        let infos = others.compactMap { info(of: $0) }
        let fitting = Self.countFitting(infos)
        let joined = Joined(
            room: Joined.RoomInfo(id: room.id, name: room.name),
            participant: own,
            participants: Array(infos[..<fitting]),
            moreParticipants: fitting < infos.count ? true : nil,
            serverTime: now.microseconds,
            bootId: bootID,
            server: serverName
        )
        send(.joined(joined), to: id)
        notices.append(.joined(identity: join.identity, room: join.room, client: join.client))
        for info in infos[fitting...] {
            send(.participantConnected(ParticipantConnected(participant: info)), to: id)
        }
        if fitting < infos.count { send(.participantsComplete(ParticipantsComplete()), to: id) }
        broadcast(.participantConnected(ParticipantConnected(participant: own)), in: join.room, except: id)
        guard participant.subscribesAutomatically else { return }
        for other in others {
            for track in connections[other]?.publications ?? [] { addSubscription(of: id, to: track, at: now) }
        }
    }

    /// How many of `participants` fit into `joined`, which like every text message has a limit.
    ///
    /// A character of a name takes at most twice its bytes in JSON, control characters being refused; the other numbers
    /// are above what keys, ids and numbers take.
    private static func countFitting(_ participants: [ParticipantInfo]) -> Int {
        var room = WireFormat.maximumTextMessage.bytes - 4096
        for (index, participant) in participants.enumerated() {
            room -= 100 + 2 * participant.identity.utf8.count
            for track in participant.tracks { room -= 250 + 2 * (track.name.utf8.count + track.source.utf8.count) }
            if room < 0 { return index }
        }
        return participants.count
    }

    private mutating func replaceNamesake(_ identity: String, in room: String, at now: MonotonicInstant) {
        for id in rooms[room]?.participants ?? [] where connections[id]?.participant?.identity == identity {
            let sentence = "another participant joined with the identity \"\(identity)\""
            fail(id, ErrorMessage(.duplicateIdentity, sentence, fatal: true), at: now)
        }
    }

    private func info(of id: SlotID) -> ParticipantInfo? {
        guard let connection = connections[id], let participant = connection.participant else { return nil }
        return ParticipantInfo(
            id: participant.id,
            identity: participant.identity,
            tracks: connection.publications.compactMap { tracks[$0]?.info }
        )
    }

    /// Takes a participant, with its tracks and subscriptions, out of its room; does nothing for one that is in none.
    mutating func removeParticipant(of id: SlotID, at now: MonotonicInstant) {
        guard let connection = connections[id], let participant = connection.participant else { return }
        for track in connection.publications { removeTrack(track, isQuiet: true) }
        let subscriptions = outlets[id.index].subscriptions
        outlets[id.index].subscriptions = []
        for subscription in subscriptions { dropSubscriber(id, from: subscription.track, at: now) }
        connections[id]?.phase = .awaitingJoin(deadline: now + settings.joinTimeout)
        rooms[participant.room]?.participants.removeAll { $0 == id }
        if rooms[participant.room]?.participants.isEmpty == true { rooms[participant.room] = nil }
        notices.append(.left(identity: participant.identity, room: participant.room))
        let message = ParticipantDisconnected(participantId: participant.id)
        broadcast(.participantDisconnected(message), in: participant.room, except: id)
    }

    mutating func sayNotFound(_ trackID: String, to id: SlotID) {
        let sentence = "no such track in the room, or not yours: \"\(trackID.prefix(utf8Bytes: 64))\""
        send(.error(ErrorMessage(.notFound, sentence, fatal: false)), to: id)
    }

    /// An id that cannot be guessed: 72 bits.
    static func makeID(_ prefix: String, using generator: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var id = "\(prefix)_"
        for _ in 0..<12 { id.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]) }
        return id
    }
}
