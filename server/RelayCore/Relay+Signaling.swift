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
        if let room = connections[id]?.participant?.room { dropSlowParticipants(in: room, at: now) }
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
            if let track = ownTrack(body.trackId, of: id) { removeTrack(track) }
        case .enable(let body): setEnabled(true, body.trackId, by: id, participant, at: now)
        case .disable(let body): setEnabled(false, body.trackId, by: id, participant, at: now)
        case .subscribe(let body): subscribe(to: body.trackId, id, participant, at: now)
        case .unsubscribe(let body): unsubscribe(from: body.trackId, id)
        case .keyframeRequest(let body): keyframeRequested(body.trackId, by: id, at: now)
        case .timeSync(let body): answer(body, to: id, at: now)
        case .leave:
            removeParticipant(of: id, at: now)
            connections[id]?.phase = .closing(
                RoomErrorCode(rawValue: 1000),
                reason: "left",
                deadline: now + settings.closeTimeout
            )
            wake(id)
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
        let sentence = "the room has \(room.participants.count) participants, its limit"
        return ErrorMessage(.limitReached, sentence, fatal: true)
    }

    private func problem(withName name: String) -> String? {
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
        let joined = Joined(
            room: Joined.RoomInfo(id: room.id, name: room.name),
            participant: own,
            participants: others.compactMap { info(of: $0) },
            serverTime: now.microseconds,
            bootId: bootID,
            server: serverName
        )
        send(.joined(joined), to: id)
        notices.append(.joined(identity: join.identity, room: join.room, client: join.client))
        broadcast(.participantConnected(ParticipantConnected(participant: own)), in: join.room, except: id)
        guard participant.subscribesAutomatically else { return }
        for other in others {
            for track in connections[other]?.publications ?? [] { addSubscription(of: id, to: track, at: now) }
        }
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
        for subscription in connection.subscriptions { dropSubscriber(id, from: subscription.track) }
        connections[id]?.subscriptions = []
        connections[id]?.phase = .awaitingJoin(deadline: now + settings.joinTimeout)
        rooms[participant.room]?.participants.removeAll { $0 == id }
        if rooms[participant.room]?.participants.isEmpty == true { rooms[participant.room] = nil }
        notices.append(.left(identity: participant.identity, room: participant.room))
        let message = ParticipantDisconnected(participantId: participant.id)
        broadcast(.participantDisconnected(message), in: participant.room, except: id)
    }

    // MARK: Publishing

    private mutating func publish(
        _ request: Publish,
        by id: SlotID,
        _ participant: Connection.Participant,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        if let (code, sentence) = refusal(of: request, by: id) {
            let error = ErrorMessage(code, sentence, fatal: false, requestId: request.requestId)
            return send(.error(error), to: id)
        }
        let info = TrackInfo(
            id: Self.makeID("TR", using: &generator),
            alias: nextAlias,
            name: request.name,
            source: request.source,
            width: request.width,
            height: request.height,
            frameRate: request.frameRate
        )
        nextAlias += 1
        let track = Track(
            info: info,
            publisher: id,
            stream: TrackStream(settings.stream),
            keyframes: KeyframeRequestGate(settings.keyframes)
        )
        let trackID = tracks.insert(track)
        trackOfAlias[info.alias] = trackID
        trackOfID[info.id] = trackID
        connections[id]?.publications.append(trackID)
        send(.published(Published(requestId: request.requestId, track: info)), to: id)
        sayLayersWanted(trackID)
        notices.append(.published(track: info.name, identity: participant.identity, room: participant.room))
        let announcement = TrackPublished(participantId: participant.id, track: info)
        broadcast(.trackPublished(announcement), in: participant.room, except: id)
        for other in rooms[participant.room]?.participants ?? [] where other != id {
            guard connections[other]?.participant?.subscribesAutomatically == true else { continue }
            addSubscription(of: other, to: trackID, at: now)
        }
    }

    private func refusal(of request: Publish, by id: SlotID) -> (RoomErrorCode, String)? {
        if let problem = problem(withName: request.name) { return (.invalidArgument, "the track's name \(problem)") }
        guard request.kind == "video" else { return (.notSupported, "tracks of kind \"video\" alone are relayed") }
        guard request.codec == "vp8" else { return (.notSupported, "video of codec \"vp8\" alone is relayed") }
        let names = (connections[id]?.publications ?? []).compactMap { tracks[$0]?.info.name }
        guard !names.contains(request.name) else {
            return (.invalidArgument, "the participant has a track of the name \"\(request.name)\" already")
        }
        guard names.count < WireFormat.maximumTracksPerParticipant else {
            return (.limitReached, "a participant may publish \(WireFormat.maximumTracksPerParticipant) tracks")
        }
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(request.width), (1...largest.height).contains(request.height) else {
            return (.invalidArgument, "a size of \(request.width)x\(request.height); allowed are 1x1 to \(largest)")
        }
        guard request.frameRate > 0, request.frameRate <= 1000 else {
            return (.invalidArgument, "a rate of \(request.frameRate); allowed are more than 0 to 1000 fps")
        }
        guard request.source.utf8.count <= WireFormat.maximumNameBytes else {
            return (.invalidArgument, "a source of \(request.source.utf8.count) bytes")
        }
        return nil
    }

    private func ownTrack(_ trackID: String, of id: SlotID) -> SlotID? {
        guard let track = trackOfID[trackID], tracks[track]?.publisher == id else { return nil }
        return track
    }

    private mutating func removeTrack(_ trackID: SlotID, isQuiet: Bool = false) {
        guard let track = tracks.remove(trackID) else { return }
        trackOfAlias[track.info.alias] = nil
        trackOfID[track.info.id] = nil
        connections[track.publisher]?.publications.removeAll { $0 == trackID }
        for subscriber in track.subscribers {
            connections[subscriber]?.subscriptions.removeAll { $0.track == trackID }
        }
        guard !isQuiet, let participant = connections[track.publisher]?.participant else { return }
        notices.append(
            .unpublished(track: track.info.name, identity: participant.identity, room: participant.room)
        )
        let message = TrackUnpublished(participantId: participant.id, trackId: track.info.id)
        broadcast(.trackUnpublished(message), in: participant.room, except: track.publisher)
    }

    private mutating func setEnabled(
        _ enabled: Bool,
        _ trackID: String,
        by id: SlotID,
        _ participant: Connection.Participant,
        at now: MonotonicInstant
    ) {
        guard let track = ownTrack(trackID, of: id) else { return sayNotFound(trackID, to: id) }
        guard tracks[track]?.info.enabled != enabled else { return }
        tracks[track]?.info.enabled = enabled
        if enabled {
            tracks[track]?.keyframes.keyframeExpected(at: now)
            let message = TrackEnabled(participantId: participant.id, trackId: trackID)
            broadcast(.trackEnabled(message), in: participant.room, except: id)
        } else {
            restart(track)
            let message = TrackDisabled(participantId: participant.id, trackId: trackID)
            broadcast(.trackDisabled(message), in: participant.room, except: id)
        }
    }

    /// Forgets a track's packets; its subscribers wait for the keyframe with which it goes on.
    private mutating func restart(_ trackID: SlotID) {
        tracks[trackID]?.stream.clear()
        tracks[trackID]?.keyframes.satisfied()
        guard let track = tracks[trackID] else { return }
        for subscriber in track.subscribers {
            let index = connections[subscriber]?.subscriptions.firstIndex { $0.track == trackID }
            if let index { connections[subscriber]?.subscriptions[index].cursor.skipToKeyframe(in: track.stream) }
        }
    }

    /// Tells a publisher whether anybody receives its track.
    private mutating func sayLayersWanted(_ trackID: SlotID) {
        guard let track = tracks[trackID] else { return }
        let layers = track.subscribers.isEmpty ? [] : [0]
        send(.layersWanted(LayersWanted(trackId: track.info.id, simulcastLayers: layers)), to: track.publisher)
    }

    // MARK: Subscribing

    private mutating func subscribe(
        to trackID: String,
        _ id: SlotID,
        _ participant: Connection.Participant,
        at now: MonotonicInstant
    ) {
        guard
            let track = trackOfID[trackID], let publisher = tracks[track]?.publisher, publisher != id,
            connections[publisher]?.participant?.room == participant.room
        else { return sayNotFound(trackID, to: id) }
        guard connections[id]?.subscriptions.contains(where: { $0.track == track }) == false else { return }
        addSubscription(of: id, to: track, at: now)
    }

    private mutating func addSubscription(of id: SlotID, to trackID: SlotID, at now: MonotonicInstant) {
        guard let track = tracks[trackID] else { return }
        let cursor = ForwardingCursor(joining: track.stream, at: now)
        connections[id]?.subscriptions.append(Connection.Subscription(track: trackID, cursor: cursor))
        tracks[trackID]?.subscribers.append(id)
        let message = Subscribed(
            trackId: track.info.id,
            alias: track.info.alias,
            catchUpThrough: cursor.catchUpThrough
        )
        send(.subscribed(message), to: id)
        if track.subscribers.isEmpty {
            // The publisher begins with a keyframe when it is wanted again.
            tracks[trackID]?.keyframes.keyframeExpected(at: now)
            sayLayersWanted(trackID)
        } else if cursor.isWaitingForKeyframe(in: track.stream), track.info.enabled {
            if tracks[trackID]?.keyframes.wanted(notBefore: now, at: now) == true { askForKeyframe(of: trackID) }
        }
    }

    private mutating func unsubscribe(from trackID: String, _ id: SlotID) {
        guard
            let track = trackOfID[trackID],
            let index = connections[id]?.subscriptions.firstIndex(where: { $0.track == track })
        else { return sayNotFound(trackID, to: id) }
        connections[id]?.subscriptions.remove(at: index)
        dropSubscriber(id, from: track)
        send(.unsubscribed(Unsubscribed(trackId: trackID)), to: id)
    }

    private mutating func dropSubscriber(_ id: SlotID, from trackID: SlotID) {
        guard tracks.contains(trackID) else { return }
        tracks[trackID]?.subscribers.removeAll { $0 == id }
        guard tracks[trackID]?.subscribers.isEmpty == true else { return }
        restart(trackID)
        sayLayersWanted(trackID)
    }

    private mutating func keyframeRequested(_ trackID: String, by id: SlotID, at now: MonotonicInstant) {
        guard
            let track = trackOfID[trackID], let stream = tracks[track]?.stream,
            let index = connections[id]?.subscriptions.firstIndex(where: { $0.track == track })
        else { return sayNotFound(trackID, to: id) }
        connections[id]?.subscriptions[index].cursor.skipToKeyframe(in: stream)
        requestKeyframe(for: id, subscription: index, at: now)
    }

    private mutating func sayNotFound(_ trackID: String, to id: SlotID) {
        let sentence = "no such track in the room, or not yours: \"\(trackID.prefix(64))\""
        send(.error(ErrorMessage(.notFound, sentence, fatal: false)), to: id)
    }

    /// An id that cannot be guessed: 72 bits.
    private static func makeID(_ prefix: String, using generator: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var id = "\(prefix)_"
        for _ in 0..<12 { id.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]) }
        return id
    }
}
