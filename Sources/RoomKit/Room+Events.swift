import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// What happens in the room, brought to its participants, tracks and the application.
extension Room {
    func handle(_ event: ClientSession.Event) {
        switch event {
        case .joined(let joined): welcome(joined)
        case .participantConnected(let info):
            happenings.put(.participantConnected(add(info)))
        case .participantDisconnected(let info):
            guard let participant = participants.removeValue(forKey: info.id) else { return }
            for track in participant.videoTracks { withdraw(track, of: participant) }
            happenings.put(.participantDisconnected(participant))
        case .trackPublished(let info, let publisher):
            guard let participant = participants[publisher.id] else { return }
            happenings.put(.trackPublished(add(info, of: participant), participant))
        case .trackUnpublished(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            withdraw(track, of: participant)
        case .trackEnabled(let info, let publisher), .trackDisabled(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            track.setEnabled(info.enabled)
            happenings.put(info.enabled ? .trackEnabled(track, participant) : .trackDisabled(track, participant))
        case .subscribed(let info, let publisher, let start):
            guard let (track, participant) = known(info, publisher), !path.value.receives(info.alias) else { return }
            subscribed(to: track, of: participant, alias: info.alias, start: start)
        case .subscriptionFailed(let info, let publisher, let failure):
            guard let (track, participant) = known(info, publisher) else { return }
            happenings.put(.trackSubscriptionFailed(track, participant, RoomError(failure)))
        case .unsubscribed(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            unsubscribed(track, of: participant)
        case .published(let requestID, let info):
            guard let reply = publishReplies[requestID] else {
                // The answer came too late: whoever asked has been told that nothing is published.
                return send(.unpublish(Unpublish(trackId: info.id)))
            }
            reply.fulfill(.success(info))
        case .refused(let error):
            let failure = RoomError(.refused, "The server refused: \(error.message).", serverCode: error.code)
            if let reply = error.requestId.flatMap({ publishReplies[$0] }) { return reply.fulfill(.failure(failure)) }
            happenings.put(.requestRefused(failure))
        case .layersWanted(let trackID, let layers):
            // Only of a track that is published, or about to be, is it worth remembering.
            let numbers = layers.map(\.simulcastLayer)
            let isOurs = !waitingPublishers.isEmpty || publishers.contains { $0.trackID == trackID }
            if isOurs && wantedLayers.count < 4 * WireFormat.maximumTracksPerParticipant {
                wantedLayers[trackID] = numbers
            }
            publishers.first { $0.trackID == trackID }?.publisher.setWanted(!layers.isEmpty)
        case .keyframeRequested(let trackID):
            publishers.first { $0.trackID == trackID }?.publisher.requestKeyframe()
        case .ended(let ending): end(RoomError(ending))
        }
    }

    func welcome(_ joined: Joined) {
        hasJoined = true
        for info in joined.participants { add(info) }
        joining.fulfill(.success(joined))
    }

    @discardableResult
    func add(_ info: ParticipantInfo) -> RemoteParticipant {
        let participant = RemoteParticipant(sid: info.id, identity: info.identity)
        participants[info.id] = participant
        for track in info.tracks { add(track, of: participant) }
        return participant
    }

    @discardableResult
    func add(_ info: TrackInfo, of participant: RemoteParticipant) -> RemoteVideoTrack {
        let track = RemoteVideoTrack(info, publisherIdentity: participant.identity)
        tracks[info.id] = track
        participant.add(track)
        return track
    }

    func known(_ info: TrackInfo, _ publisher: ParticipantInfo) -> (RemoteVideoTrack, RemoteParticipant)? {
        guard let track = tracks[info.id], let participant = participants[publisher.id] else { return nil }
        return (track, participant)
    }

    func end(_ error: RoomError?) {
        guard !hasEnded else { return }
        hasEnded = true
        ending = error ?? ending
        joining.fulfill(.failure(ending))
        for reply in publishReplies.values { reply.fulfill(.failure(ending)) }
        for (track, publisher) in waitingPublishers {
            publisher.giveUpWaiting()
            // Its start may wait for something that never comes, as a pipe's writer.
            finishLater { await track.stopSource(for: publisher) }
        }
        for publication in publishers {
            publication.watch?.cancel()
            finishLater { [self] in
                await stop(publication.track, publication.publisher)
                publication.publisher.retire()
            }
        }
        for publication in publishers { path.value.remove(publication.publisher.sendQueue) }
        publishers = []
        for track in Array(aliases.keys) { endReception(of: track) }
        happenings.finish(with: .disconnected(error))
    }

    // MARK: Receiving

    /// Begins to receive a track, or refuses it where too many are received, or there is no thread for it.
    func subscribed(
        to track: RemoteVideoTrack,
        of participant: RemoteParticipant,
        alias: UInt32,
        start: ClientSession.Subscription
    ) {
        do throws(RoomError) {
            try checkReceptions()
            try beginReception(of: track, alias: alias, start: start)
            happenings.put(.trackSubscribed(track, participant))
        } catch {
            send(.unsubscribe(Unsubscribe(trackId: track.sid)))
            happenings.put(.trackSubscriptionFailed(track, participant, error))
        }
    }

    /// Makes sure that another track may be received.
    ///
    /// Receivers that were told to stop still have their threads for a while, which is long where renderers are slow:
    /// with them there are twice as many at the most.
    private func checkReceptions() throws(RoomError) {
        let limit = options.maximumReceivedTracks
        guard aliases.count >= limit || (aliases.count + endingReceivers) / 2 >= limit else { return }
        throw RoomError(.tooManyTracks, "Too many tracks: \(limit) are received at once at the most.")
    }

    private func beginReception(
        of track: RemoteVideoTrack,
        alias: UInt32,
        start: ClientSession.Subscription
    ) throws(RoomError) {
        let trackID = track.sid
        let receiver = try VideoReceiver(
            track: track,
            clock: clock,
            start: start,
            subscribed: asked[trackID] ?? joinSent,
            after: formerReceivers[trackID],
            reportFailure: { [weak self] error in
                guard let self else { return }
                Task { await self.receptionFailed(of: trackID, alias: alias, error) }
            }
        )
        formerReceivers[trackID] = nil
        track.setKeyframeRequest { [weak self] in
            guard let self else { return }
            Task { await self.send(.keyframeRequest(KeyframeRequest(trackId: trackID))) }
        }
        path.value.begin(receiver, alias: alias)
        aliases[trackID] = alias
    }

    /// Ends the reception of a track that cannot be decoded.
    private func receptionFailed(of trackID: String, alias: UInt32, _ error: RoomError) {
        let participant = participants.values.first { $0.videoTracks.contains { $0.sid == trackID } }
        guard let track = tracks[trackID], let participant, aliases[trackID] == alias else { return }
        send(.unsubscribe(Unsubscribe(trackId: trackID)))
        unsubscribed(track, of: participant)
        happenings.put(.trackSubscriptionFailed(track, participant, error))
    }

    func endReception(of trackID: String) {
        guard let alias = aliases.removeValue(forKey: trackID) else { return }
        guard let receiver = path.value.endReception(of: alias) else { return }
        receiver.track.setKeyframeRequest(nil)
        receiver.close()
        if tracks[trackID] != nil { formerReceivers[trackID] = receiver }
        endingReceivers += 1
        finishLater { [self] in
            await receiver.stop()
            await receiverEnded()
        }
    }

    private func receiverEnded() {
        endingReceivers -= 1
    }

    /// Ends the reception of a track and tells the application, if it was received.
    func unsubscribed(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        guard aliases[track.sid] != nil else { return }
        endReception(of: track.sid)
        happenings.put(.trackUnsubscribed(track, participant))
    }

    /// Forgets a track that is there no longer, and tells of it.
    func withdraw(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        unsubscribed(track, of: participant)
        tracks[track.sid] = nil
        asked[track.sid] = nil
        formerReceivers[track.sid] = nil
        participant.remove(track)
        happenings.put(.trackUnpublished(track, participant))
    }
}
