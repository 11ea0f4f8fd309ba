import MediaCore
import RoomProtocol
import Wording

extension Relay {
    /// The reason to refuse a `join`; `nil` if it is allowed.
    func refusal(of join: Join, on id: ConnectionID) -> ErrorMessage? {
        if join.version != WireFormat.version {
            let sentence = "this server speaks protocol version \(WireFormat.version), the client \(join.version)"
            return ErrorMessage(.notSupported, sentence, fatal: true)
        }
        if let problem = WireFormat.problem(withName: join.room) {
            return ErrorMessage(.invalidArgument, "the room's name \(problem)", fatal: true)
        }
        if let problem = WireFormat.problem(withName: join.identity) {
            return ErrorMessage(.invalidArgument, "the identity \(problem)", fatal: true)
        }
        guard connections[id]?.path.admits(room: join.room) == true else {
            let sentence = "the URL names another room than \"join\""
            return ErrorMessage(.invalidArgument, sentence, fatal: true)
        }
        guard let room = rooms[join.room] else {
            guard rooms.count >= settings.maximumRooms else { return nil }
            return ErrorMessage(.limitReached, "the server has \(counted(rooms.count, "room")), its limit", fatal: true)
        }
        // A participant may come back before its old connection is found dead; it then takes its own place.
        let namesake = room.participantsByIdentity[join.identity]
        if namesake == nil, room.participants.count >= settings.maximumParticipantsPerRoom {
            let sentence = "the room has \(counted(room.participants.count, "participant")), its limit"
            return ErrorMessage(.limitReached, sentence, fatal: true)
        }
        guard join.automaticSubscription ?? true else { return nil }
        let former = namesake.map { participants.hot[$0.index].subscriptions.count } ?? 0
        // Its own tracks end with it.
        let own = namesake.flatMap { participants[$0]?.publications.count } ?? 0
        return refusal(ofSubscriptions: room.trackCount - own - former).map {
            ErrorMessage(.limitReached, $0 + "; join without automatic subscription", fatal: true)
        }
    }

    /// Charges a `join` to the budgets of the room and of the identity, which others would have to read.
    ///
    /// - Returns: The reason to refuse it; `nil` if it is within the limits.
    mutating func chargeJoining(_ join: Join, at now: MonotonicInstant) -> ErrorMessage? {
        guard let others = rooms[join.room]?.participants.count else { return nil }
        if let namesake = rooms[join.room]?.participantsByIdentity[join.identity],
            participants[namesake]?.replacements.take(1, of: limits.replacements, at: now) == false
        {
            let most = "\(settings.replacementBurst) times at once"
            let sentence = "others joined with the identity \"\(join.identity)\" too often; allowed are \(most)"
            return ErrorMessage(.limitReached, sentence, fatal: true)
        }
        if rooms[join.room]?.joins.take(1, of: limits.joins, at: now) == false {
            let sentence = "too many participants join the room; allowed are \(settings.joinBurst) at once"
            return ErrorMessage(.limitReached, sentence, fatal: true)
        }
        if rooms[join.room]?.joinDeliveries.take(2 * others, of: limits.joinDeliveries, at: now) == false {
            let sentence = "too many participants join a room of \(others); come back in a minute"
            return ErrorMessage(.limitReached, sentence, fatal: true)
        }
        return nil
    }

    /// Brings a new participant into a room.
    mutating func enter(
        _ join: Join,
        _ connection: ConnectionID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        let replacements = replaceNamesake(join.identity, in: join.room, at: now) ?? TokenBucket(fullAt: now)
        let others = rooms[join.room]?.participants ?? []
        let room =
            rooms[join.room]
            ?? Room(
                id: Self.makeID("RM", using: &generator),
                name: join.room,
                joins: TokenBucket(fullAt: now),
                joinDeliveries: TokenBucket(fullAt: now)
            )
        rooms[join.room] = room
        let info = ParticipantInfo(id: Self.makeID("PA", using: &generator), identity: join.identity, tracks: [])
        let participant = add(info, to: join.room, automatic: join.automaticSubscription ?? true, at: now)
        participants[participant]?.replacements = replacements
        attach(connection, to: participant)
        let joined = Joined(
            room: Joined.RoomInfo(id: room.id, name: room.name),
            participant: info,
            participants: [],
            serverTime: now.microseconds,
            bootId: bootID,
            server: serverName
        )
        describe(others, in: joined, to: connection)
        for other in others { saySharedQuality(of: other, to: connection) }
        notices.append(.joined(identity: join.identity, room: join.room, client: join.client))
        let announcement = snapshot(of: participant)?.connectedText
        if let announcement { broadcast(text: announcement, in: join.room, except: participant) }
        guard participants.hot[participant.index].subscribesAutomatically else { return }
        for other in others {
            for track in participants[other]?.publications ?? [] {
                addSubscription(of: participant, to: track, at: now)
            }
        }
    }

    private mutating func add(
        _ info: ParticipantInfo,
        to room: String,
        automatic: Bool,
        at now: MonotonicInstant
    ) -> ParticipantID {
        let id = participants.insert(
            Participant(id: info.id, identity: info.identity, room: room, replacements: TokenBucket(fullAt: now)),
            SubscriberState(subscribesAutomatically: automatic, budget: MediaBudget(fullAt: now))
        )
        rooms[room]?.participants.append(id)
        rooms[room]?.participantsByIdentity[info.identity] = id
        return id
    }

    /// Makes `connection` the participant's connection from now on.
    private mutating func attach(_ connection: ConnectionID, to participant: ParticipantID) {
        connections[connection]?.phase = .joined
        connections.hot[connection.index].participant = participant
        connectionDeadlines.set(nil, for: connection)
        participants.hot[participant.index].connection = connection
    }

    /// Sends `joined`, and the participants that do not fit into it.
    private mutating func describe(_ others: [ParticipantID], in joined: Joined, to connection: ConnectionID) {
        let snapshots = others.compactMap { snapshot(of: $0) }
        countedWork.encodings += 1
        let (text, count) = joined.text(with: snapshots, limit: WireFormat.maximumTextMessage.bytes)
        send(text: text, to: connection)
        guard count < snapshots.count else { return }
        for snapshot in snapshots[count...] { send(text: snapshot.connectedText, to: connection) }
        send(.participantsComplete(ParticipantsComplete()), to: connection)
    }

    /// The participant's description for others; it is encoded again after a change.
    private mutating func snapshot(of id: ParticipantID) -> ParticipantSnapshot? {
        guard let participant = participants[id] else { return nil }
        if let snapshot = participant.snapshot { return snapshot }
        countedWork.encodings += 1
        let info = ParticipantInfo(
            id: participant.id,
            identity: participant.identity,
            tracks: participant.publications.compactMap { tracks[$0]?.info }
        )
        let snapshot = ParticipantSnapshot(info)
        participants[id]?.snapshot = snapshot
        return snapshot
    }

    // MARK: Leaving

    /// Ends the session of the participant that has the identity.
    ///
    /// - Returns: What it has used of the allowance for being replaced; `nil` if there is none.
    private mutating func replaceNamesake(
        _ identity: String,
        in room: String,
        at now: MonotonicInstant
    ) -> TokenBucket? {
        guard let namesake = rooms[room]?.participantsByIdentity[identity] else { return nil }
        let replacements = participants[namesake]?.replacements
        if let connection = participants.hot[namesake.index].connection {
            let sentence = "another participant joined with the identity \"\(identity)\""
            fail(connection, ErrorMessage(.duplicateIdentity, sentence, fatal: true), at: now)
        } else {
            removeParticipant(namesake, at: now)
        }
        return replacements
    }

    /// Takes a participant, with its tracks and subscriptions, out of its room, and tells the others.
    mutating func removeParticipant(_ id: ParticipantID, at now: MonotonicInstant) {
        guard let participant = participants[id] else { return }
        chargeLeaving(id, from: participant.room, at: now)
        for track in participant.publications { removeTrack(track, isQuiet: true, at: now) }
        while let subscription = participants.hot[id.index].takeSubscription() {
            end(subscription, of: id)
            dropSubscriber(id, subscription, at: now)
        }
        let counts = participants[id]?.endedCounts ?? PacketCounts()
        forgetParticipant(id, at: now)
        rooms[participant.room]?.participants.removeAll { $0 == id }
        rooms[participant.room]?.participantsByIdentity[participant.identity] = nil
        if rooms[participant.room]?.participants.isEmpty == true { rooms[participant.room] = nil }
        notices.append(.left(identity: participant.identity, room: participant.room, counts: counts))
        let message = ParticipantDisconnected(participantId: participant.id)
        broadcast(.participantDisconnected(message), in: participant.room, except: id)
    }

    /// Charges the room's joins with the messages that a participant caused shortly before it leaves.
    ///
    /// A client that is refused, or hangs up, could otherwise begin again with a whole budget under another name.
    private mutating func chargeLeaving(_ id: ParticipantID, from room: String, at now: MonotonicInstant) {
        guard let connection = participants.hot[id.index].connection,
            let used = connections[connection]?.budget.usedDeliveries(of: limits.signaling, at: now)
        else { return }
        // Where rooms are small, a client could otherwise keep everybody out for minutes.
        let charge = min(used / settings.maximumParticipantsPerRoom, settings.joinBurst / 20)
        rooms[room]?.joins.overdraw(charge, of: limits.joins, at: now)
    }

    /// Removes a participant and its tracks without telling anybody.
    mutating func forgetParticipant(_ id: ParticipantID, at now: MonotonicInstant) {
        for track in participants[id]?.publications ?? [] { removeTrack(track, isQuiet: true, at: now) }
        for subscription in participants.hot[id.index].subscriptions { end(subscription, of: id) }
        if let connection = participants.hot[id.index].connection {
            connections.hot[connection.index].participant = nil
        }
        participantDeadlines.set(nil, for: id)
        _ = participants.remove(id)
    }
}
