import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// Passes the session's events on to the participants, the tracks and the application.
extension Room {
    func handle(_ event: ClientSession.Event) {
        switch event {
        case .joined(let joined): welcome(joined)
        case .participantConnected(let info):
            let participant = remote.add(info, asked: MonotonicClock.now)
            eventQueue.put(.participantConnected(participant))
            // A server may announce them together with the participant.
            for track in participant.videoTracks { eventQueue.put(.trackPublished(track, participant)) }
        case .participantDisconnected(let info):
            guard let participant = remote.participants.removeValue(forKey: info.id) else { return }
            for track in participant.videoTracks { withdraw(track) }
            eventQueue.put(.participantDisconnected(participant))
        case .trackPublished(let info, let publisher):
            guard let participant = remote.participants[publisher.id] else { return }
            eventQueue.put(.trackPublished(remote.add(info, of: participant, asked: MonotonicClock.now), participant))
        case .trackUnpublished(let info, _):
            guard let entry = remote.entries[info.id] else { return }
            withdraw(entry.track)
        case .trackEnabled(let info, _), .trackDisabled(let info, _):
            guard let entry = remote.entries[info.id] else { return }
            entry.track.setEnabled(info.enabled)
            let (track, participant) = (entry.track, entry.participant)
            eventQueue.put(info.enabled ? .trackEnabled(track, participant) : .trackDisabled(track, participant))
        case .subscribed(let info, _, let start):
            guard let entry = remote.entries[info.id] else { return }
            // An alias of another track is a fault of the server. That of the same track begins its reception anew.
            guard entry.alias == info.alias || !path.value.receives(info.alias) else { return }
            // The receiver stays, and is replaced when packets come again.
            if start.isPaused, entry.alias == info.alias { return entry.track.expectNothing() }
            subscribed(to: info.id, alias: info.alias, start: start)
        case .subscriptionFailed(let info, _, let failure):
            guard let entry = remote.entries[info.id] else { return }
            requestRefused(ofTrack: info.id, isLimit: false)
            eventQueue.put(.trackSubscriptionFailed(entry.track, entry.participant, RoomError(failure)))
        case .unsubscribed(let info, _):
            unsubscribed(from: info.id)
        case .published(let requestID, let info):
            guard !publications.answer(requestID, with: .success(info)) else { return }
            send(.unpublish(Unpublish(trackId: info.id)))
            sendMessages(after: requestID)
        case .refused(let error):
            let failure = RoomError(refusal: error)
            if let trackID = error.trackId {
                requestRefused(ofTrack: trackID, isLimit: error.code == RoomErrorCode.limitReached.rawValue)
            }
            if let request = error.requestId {
                if publications.answer(request, with: .failure(failure)) { return }
                sendMessages(after: request)
            }
            eventQueue.put(.requestRefused(failure))
        case .layersWanted(let trackID, let layers):
            publications.setWanted(layers, trackID: trackID)
        case .keyframeRequested(let trackID, let simulcastLayer):
            publications.publication(withID: trackID)?.publisher.requestKeyframe(of: simulcastLayer)
        case .networkQuality(let participantID, let level):
            guard let level = NetworkQualityLevel(rawValue: level) else { return }
            networkQualityChanged(of: participantID, to: level)
        case .trackSwitchedOff(let info, _, let reason):
            guard let entry = remote.entries[info.id] else { return }
            let reason = TrackSwitchOffReason(rawValue: reason) ?? .network
            entry.track.setSwitchedOff(true)
            eventQueue.put(.trackSwitchedOff(entry.track, entry.participant, reason))
        case .trackSwitchedOn(let info, _):
            guard let entry = remote.entries[info.id] else { return }
            entry.track.setSwitchedOff(false)
            eventQueue.put(.trackSwitchedOn(entry.track, entry.participant))
        case .ended(let ending): end(RoomError(ending))
        }
    }

    /// Sends what had to wait for the answer to a request that was given up.
    private func sendMessages(after requestID: Int) {
        for message in publications.messages(after: requestID) { send(message) }
    }

    private func networkQualityChanged(of participantID: String, to level: NetworkQualityLevel) {
        if participantID == localParticipant.sid {
            localParticipant.setNetworkQuality(level)
            eventQueue.put(.networkQualityChanged(localParticipant, level))
        } else if let participant = remote.participants[participantID] {
            participant.setNetworkQuality(level)
            eventQueue.put(.networkQualityChanged(participant, level))
        }
    }

    private func welcome(_ joined: Joined) {
        link.hasJoined = true
        // The next message may be about this program already.
        localParticipant.joined(as: joined.participant.id)
        for info in joined.participants { _ = remote.add(info, asked: link.joinSent) }
        link.joining.fulfill(.success(joined))
    }

    func end(_ error: RoomError?) {
        guard !link.hasEnded else { return }
        link.hasEnded = true
        if let error { link.ending = error }
        link.joining.fulfill(.failure(link.ending))
        endPublications(with: link.ending)
        for (trackID, entry) in remote.entries {
            endReception(of: trackID)
            entry.track.end()
        }
        eventQueue.finish(with: .disconnected(error))
    }
}
