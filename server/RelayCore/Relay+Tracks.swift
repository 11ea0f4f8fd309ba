import MediaCore
import RoomProtocol

extension Relay {
    // MARK: Publishing

    mutating func publish(
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
            kind: request.kind,
            source: request.source,
            codec: request.codec,
            width: request.width,
            height: request.height,
            frameRate: request.frameRate
        )
        nextAlias += 1
        let trackID = tracks.insert(Track(info: info, keyframes: KeyframeRequestGate(settings.keyframes)))
        let feed = Feed(publisher: id, stream: TrackStream(settings.stream))
        if trackID.index == feeds.count { feeds.append(feed) } else { feeds[trackID.index] = feed }
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
        guard request.kind == TrackKind.video else {
            return (.notSupported, "only tracks of kind \"\(TrackKind.video)\" are relayed")
        }
        guard let codec = request.codec, let width = request.width, let height = request.height,
            let frameRate = request.frameRate
        else { return (.invalidArgument, "a video track has a codec, a width, a height and a frameRate") }
        guard codec == VideoCodec.vp8 else {
            return (.notSupported, "only video of codec \"\(VideoCodec.vp8)\" is relayed")
        }
        let names = (connections[id]?.publications ?? []).compactMap { tracks[$0]?.info.name }
        guard !names.contains(request.name) else {
            return (.invalidArgument, "the participant has a track of the name \"\(request.name)\" already")
        }
        guard names.count < WireFormat.maximumTracksPerParticipant else {
            return (.limitReached, "a participant may publish \(WireFormat.maximumTracksPerParticipant) tracks")
        }
        guard tracksInRoom(of: id) < settings.maximumTracksPerRoom, nextAlias < .max else {
            return (.limitReached, "the room has \(settings.maximumTracksPerRoom) tracks, its limit")
        }
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(width), (1...largest.height).contains(height) else {
            return (.invalidArgument, "a size of \(width)x\(height); allowed are 1x1 to \(largest)")
        }
        guard frameRate > 0, frameRate <= 1000 else {
            return (.invalidArgument, "a rate of \(frameRate); allowed are more than 0 to 1000 fps")
        }
        if let problem = problem(withName: request.source) {
            return (.invalidArgument, "the track's source \(problem)")
        }
        return nil
    }

    private func tracksInRoom(of id: SlotID) -> Int {
        guard let room = connections[id]?.participant?.room, let ids = rooms[room]?.participants else { return 0 }
        return ids.reduce(0) { $0 + (connections[$1]?.publications.count ?? 0) }
    }

    func ownTrack(_ trackID: String, of id: SlotID) -> SlotID? {
        guard let track = trackOfID[trackID], feeds[track.index].publisher == id else { return nil }
        return track
    }

    mutating func removeTrack(_ trackID: SlotID, isQuiet: Bool = false) {
        guard let track = tracks.remove(trackID) else { return }
        trackOfAlias[track.info.alias] = nil
        trackOfID[track.info.id] = nil
        let feed = feeds[trackID.index]
        feeds[trackID.index] = Feed(publisher: feed.publisher, stream: TrackStream(settings.stream))
        connections[feed.publisher]?.publications.removeAll { $0 == trackID }
        for subscriber in feed.subscribers {
            outlets[subscriber.index].subscriptions.removeAll { $0.track == trackID }
        }
        guard !isQuiet, let participant = connections[feed.publisher]?.participant else { return }
        let (identity, room) = (participant.identity, participant.room)
        notices.append(.unpublished(track: track.info.name, identity: identity, room: room))
        let message = TrackUnpublished(participantId: participant.id, trackId: track.info.id)
        broadcast(.trackUnpublished(message), in: participant.room, except: feed.publisher)
    }

    mutating func setEnabled(
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
            expectKeyframe(of: track, at: now)
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
        feeds[trackID.index].stream.clear()
        tracks[trackID]?.keyframes.satisfied()
        let feed = feeds[trackID.index]
        for subscriber in feed.subscribers {
            guard let index = subscription(of: subscriber, to: trackID) else { continue }
            outlets[subscriber.index].subscriptions[index].cursor.skipToKeyframe(in: feed.stream)
        }
    }

    /// Tells a publisher whether anybody receives its track.
    private mutating func sayLayersWanted(_ trackID: SlotID) {
        guard let info = tracks[trackID]?.info else { return }
        let layers = feeds[trackID.index].subscribers.isEmpty ? [] : [0]
        let message = LayersWanted(trackId: info.id, simulcastLayers: layers)
        send(.layersWanted(message), to: feeds[trackID.index].publisher)
    }

    // MARK: Subscribing

    mutating func subscribe(
        to trackID: String,
        _ id: SlotID,
        _ participant: Connection.Participant,
        at now: MonotonicInstant
    ) {
        guard
            let track = trackOfID[trackID], feeds[track.index].publisher != id,
            connections[feeds[track.index].publisher]?.participant?.room == participant.room
        else { return sayNotFound(trackID, to: id) }
        guard subscription(of: id, to: track) == nil else { return }
        addSubscription(of: id, to: track, at: now)
    }

    mutating func addSubscription(of id: SlotID, to trackID: SlotID, at now: MonotonicInstant) {
        guard let info = tracks[trackID]?.info else { return }
        let isFirst = !isReceived(trackID)
        tracks[trackID]?.idleDeadline = nil
        let stream = feeds[trackID.index].stream
        let cursor = ForwardingCursor(joining: stream, at: now)
        let backoff = connections[id]?.earlierBackoffs.removeValue(forKey: trackID) ?? KeyframeBackoff()
        let subscription = Outlet.Subscription(track: trackID, cursor: cursor, backoff: backoff)
        outlets[id.index].subscriptions.append(subscription)
        feeds[trackID.index].subscribers.append(id)
        let message = Subscribed(trackId: info.id, alias: info.alias, catchUpThrough: cursor.catchUpThrough)
        send(.subscribed(message), to: id)
        if isFirst {
            // The publisher begins with a keyframe when it is wanted again.
            expectKeyframe(of: trackID, at: now)
            sayLayersWanted(trackID)
        } else if cursor.isWaitingForKeyframe(in: stream) {
            wantKeyframe(of: trackID, notBefore: now, at: now)
        }
    }

    /// Which of a connection's subscriptions is the one to a track.
    private func subscription(of id: SlotID, to trackID: SlotID) -> Int? {
        outlets[id.index].subscriptions.firstIndex { $0.track == trackID }
    }

    mutating func unsubscribe(from trackID: String, _ id: SlotID, at now: MonotonicInstant) {
        guard let track = trackOfID[trackID], let index = subscription(of: id, to: track) else {
            return sayNotFound(trackID, to: id)
        }
        let backoff = outlets[id.index].subscriptions.remove(at: index).backoff
        let ended = connections[id]?.earlierBackoffs.keys.filter { !tracks.contains($0) } ?? []
        for track in ended { connections[id]?.earlierBackoffs[track] = nil }
        connections[id]?.earlierBackoffs[track] = backoff
        dropSubscriber(id, from: track, at: now)
        send(.unsubscribed(Unsubscribed(trackId: trackID)), to: id)
    }

    /// Takes a subscriber from a track; the publisher of a track that nobody receives may stop.
    ///
    /// It begins with a keyframe when it goes on. So that coming and going cannot make it give more of them than requests
    /// can, it is not told as long as it could not be asked for one: who comes back by then finds the track as it was.
    mutating func dropSubscriber(_ id: SlotID, from trackID: SlotID, at now: MonotonicInstant) {
        guard tracks.contains(trackID) else { return }
        feeds[trackID.index].subscribers.removeAll { $0 == id }
        guard feeds[trackID.index].subscribers.isEmpty else { return }
        guard let deadline = tracks[trackID]?.keyframes.restsUntil(at: now) else { return becomeIdle(trackID) }
        tracks[trackID]?.keyframes.satisfied()
        tracks[trackID]?.idleDeadline = deadline
        schedule(deadline)
    }

    /// Nobody receives a track any more.
    mutating func becomeIdle(_ trackID: SlotID) {
        tracks[trackID]?.idleDeadline = nil
        restart(trackID)
        sayLayersWanted(trackID)
    }

    /// Whether somebody receives a track, or has just ceased to.
    func isReceived(_ trackID: SlotID) -> Bool {
        !feeds[trackID.index].subscribers.isEmpty || tracks[trackID]?.idleDeadline != nil
    }

    mutating func keyframeRequested(_ trackID: String, by id: SlotID, at now: MonotonicInstant) {
        guard let track = trackOfID[trackID], let index = subscription(of: id, to: track) else {
            return sayNotFound(trackID, to: id)
        }
        let stream = feeds[track.index].stream
        guard outlets[id.index].subscriptions[index].cursor.keyframeRequested(in: stream) else { return }
        requestKeyframe(for: id, subscription: index, at: now)
    }
}
