import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// Receives tracks, from the server's `subscribed` message to the end of the decoder's thread.
extension Room {
    /// Begins to receive a track, or gives up the subscription if that is not possible.
    ///
    /// A further subscription replaces the one before: of several aliases, the latest counts.
    func subscribed(to trackID: String, alias: UInt32, start: ClientSession.Subscription) {
        let isReplaced = remote.entries[trackID]?.alias != nil
        endReception(of: trackID)
        guard let entry = remote.entries[trackID] else { return }
        do throws(RoomError) {
            try beginReception(of: entry, alias: alias, start: start)
            if !isReplaced { eventQueue.put(.trackSubscribed(entry.track, entry.participant)) }
            updatePreferences(of: entry.track)
        } catch {
            if isReplaced { eventQueue.put(.trackUnsubscribed(entry.track, entry.participant)) }
            giveUp(entry, error)
        }
    }

    /// Tells the server the preferences of a track that is subscribed to, if it does not know them.
    func updatePreferences(of track: RemoteVideoTrack) {
        guard let entry = remote.entries[track.sid], entry.alias != nil, entry.said != track.preferences else { return }
        // With preferences, the server would subscribe to it again.
        guard !entry.isGivenUp else { return }
        sayPreferences(of: track)
    }

    /// Asks for a track as its preferences have it.
    func sayPreferences(of track: RemoteVideoTrack) {
        let preferences = track.preferences
        remote.entries[track.sid]?.said = preferences
        send(.subscribe(Subscribe(trackId: track.sid, preferences)))
    }

    private func beginReception(
        of entry: RemoteTracks.Entry,
        alias: UInt32,
        start: ClientSession.Subscription
    ) throws(RoomError) {
        let (track, participant) = (entry.track, entry.participant)
        let trackID = entry.track.sid
        guard let codec = entry.track.trackCodec else {
            throw RoomError(.unknownCodec(entry.track.codec ?? ""))
        }
        try checkReceptions()
        let receiver = try VideoReceiver(
            track: entry.track,
            codec: codec,
            clock: clock,
            start: start,
            subscribed: entry.asked,
            after: entry.former,
            reportFailure: { [weak self] receiver, error in
                guard let self else { return }
                Task { await self.receptionFailed(of: trackID, by: receiver, error) }
            }
        )
        entry.track.setKeyframeRequest { [weak self] need in
            guard let self else { return }
            let request = KeyframeRequest(trackId: trackID, skip: need == .recorder ? false : nil)
            Task { await self.send(.keyframeRequest(request)) }
        }
        entry.track.beginSubscription { [weak eventQueue, weak track, weak participant] change in
            guard let track, let participant else { return }
            switch change {
            case .frozen: eventQueue?.put(.trackFrozen(track, participant))
            case .unfrozen(let duration): eventQueue?.put(.trackUnfrozen(track, participant, duration))
            case .resized(let size): eventQueue?.put(.trackDimensionsChanged(track, participant, size))
            }
        }
        path.value.begin(receiver, alias: alias)
        remote.entries[trackID]?.former = nil
        remote.entries[trackID]?.alias = alias
        remote.entries[trackID]?.receiver = receiver
        remote.entries[trackID]?.waitingSince = nil
        remote.entries[trackID]?.takesPlace = false
    }

    /// Checks that another track may be received.
    ///
    /// Receivers that were told to stop keep their threads until they have decoded what waits.
    /// Including those, there are at most twice as many threads as tracks may be received.
    private func checkReceptions() throws(RoomError) {
        guard !hasPlace(beside: remote.receivedCount) else { return }
        let limit = options.maximumReceivedTracks
        let prospect = limit > 0 ? " This one is received as soon as another ends." : ""
        throw RoomError(.tooManyTracks, "Too many tracks: at most \(limit) are received at once.\(prospect)")
    }

    private func hasPlace(beside received: Int) -> Bool {
        let limit = options.maximumReceivedTracks
        return received < limit && (received + remote.endingReceivers) / 2 < limit
    }

    /// Subscribes to tracks that wait, as long as there are places.
    func fillPlaces() {
        while hasPlace(beside: remote.placesTaken), let track = remote.takeWaiting() {
            remote.entries[track.sid]?.asked = MonotonicClock.now
            sayPreferences(of: track)
        }
    }

    /// Notes that the server refused something about a track.
    ///
    /// One that took a place waits again if the server has a limit of its own, until another place is free.
    func requestRefused(ofTrack trackID: String, isLimit: Bool) {
        guard remote.entries[trackID]?.takesPlace == true else { return }
        remote.entries[trackID]?.takesPlace = false
        if isLimit { remote.entries[trackID]?.waitingSince = MonotonicClock.now } else { fillPlaces() }
    }

    /// Ends the reception of a track that `receiver` cannot decode.
    ///
    /// It may have been replaced meanwhile, by one whose packets have the same alias.
    func receptionFailed(of trackID: String, by receiver: VideoReceiver, _ error: RoomError) {
        guard let entry = remote.entries[trackID], entry.receiver === receiver else { return }
        unsubscribed(from: trackID)
        giveUp(entry, error)
    }

    /// Tells the server that a track is not wanted, and tells the application why.
    private func giveUp(_ entry: RemoteTracks.Entry, _ error: RoomError) {
        send(.unsubscribe(Unsubscribe(trackId: entry.track.sid)))
        remote.entries[entry.track.sid]?.takesPlace = false
        remote.entries[entry.track.sid]?.waitingSince = error.code == .tooManyTracks ? MonotonicClock.now : nil
        eventQueue.put(.trackSubscriptionFailed(entry.track, entry.participant, error))
    }

    /// Stops receiving a track; frames that wait for the decoder are still decoded.
    func endReception(of trackID: String) {
        guard let entry = remote.entries[trackID], let alias = entry.alias else { return }
        remote.entries[trackID]?.alias = nil
        remote.entries[trackID]?.receiver = nil
        guard let receiver = path.value.endReception(of: alias) else { return }
        entry.track.setKeyframeRequest(nil)
        entry.track.endSubscription()
        receiver.close()
        remote.entries[trackID]?.former = receiver
        remote.endingReceivers += 1
        finishLater { [self] in
            await receiver.stop()
            await receiverEnded()
        }
    }

    private func receiverEnded() {
        remote.endingReceivers -= 1
        fillPlaces()
    }

    /// Stops receiving a track and tells the application, if it was received.
    func unsubscribed(from trackID: String) {
        guard let entry = remote.entries[trackID], entry.alias != nil else { return }
        endReception(of: trackID)
        remote.entries[trackID]?.said = VideoSubscriptionPreferences()
        eventQueue.put(.trackUnsubscribed(entry.track, entry.participant))
    }

    /// Removes a track that is no longer published, and tells the application.
    func withdraw(_ track: RemoteVideoTrack) {
        unsubscribed(from: track.sid)
        guard let entry = remote.entries[track.sid] else { return }
        remote.remove(track)
        eventQueue.put(.trackUnpublished(track, entry.participant))
        if entry.takesPlace { fillPlaces() }
    }
}
