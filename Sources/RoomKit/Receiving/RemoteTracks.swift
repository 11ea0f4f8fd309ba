import MediaCore
import RoomProtocol

/// The other participants of a room, and their tracks; confined to the room.
struct RemoteTracks {
    /// A remote track, from its publication to its withdrawal.
    struct Entry {
        let track: RemoteVideoTrack
        let participant: RemoteParticipant
        /// When the track was requested.
        ///
        /// This is the application's request or, with automatic subscription, the later of our joining and the track's
        /// publication.
        var asked: MonotonicInstant
        /// The preferences that the server knows.
        var said = VideoSubscriptionPreferences()
        /// The alias of its packets, while it is received.
        var alias: UInt32?
        /// What decodes them, while it is received.
        var receiver: VideoReceiver?
        /// The previous receiver, which may still be ending.
        var former: VideoReceiver?
        /// Whether the application's last word was to end the subscription.
        var isGivenUp = false
        /// Since when it waits to be subscribed to, once fewer tracks are received; `nil` if it does not.
        var waitingSince: MonotonicInstant?
        /// Whether it was subscribed to because there is a place again, and the answer has not come.
        var takesPlace = false
    }

    /// The participants, by id.
    var participants: [String: RemoteParticipant] = [:]
    /// The tracks, by id.
    var entries: [String: Entry] = [:]
    /// Receivers that have been told to stop and whose threads still run.
    var endingReceivers = 0

    /// How many tracks are received.
    var receivedCount: Int { entries.values.count { $0.alias != nil } }

    /// How many tracks are received, or have a place and will be.
    var placesTaken: Int { entries.values.count { $0.alias != nil || $0.takesPlace } }

    /// The track that has waited longest for a place, which it takes now; `nil` if none waits.
    mutating func takeWaiting() -> RemoteVideoTrack? {
        var next: (sid: String, since: MonotonicInstant)?
        for (sid, entry) in entries {
            guard let since = entry.waitingSince, next.map({ since < $0.since }) ?? true else { continue }
            next = (sid, since)
        }
        guard let sid = next?.sid else { return nil }
        entries[sid]?.waitingSince = nil
        entries[sid]?.takesPlace = true
        return entries[sid]?.track
    }

    /// Adds a participant with its tracks; `asked` is when the tracks were requested.
    mutating func add(_ info: ParticipantInfo, asked: MonotonicInstant) -> RemoteParticipant {
        let identity = info.identity.prefix(utf8Bytes: WireFormat.maximumNameBytes)
        let participant = RemoteParticipant(sid: info.id, identity: identity)
        participants[info.id] = participant
        for track in info.tracks { _ = add(track, of: participant, asked: asked) }
        return participant
    }

    /// Adds a track of a participant; `asked` is when the track was requested.
    mutating func add(
        _ info: TrackInfo,
        of participant: RemoteParticipant,
        asked: MonotonicInstant
    ) -> RemoteVideoTrack {
        let track = RemoteVideoTrack(info, publisherIdentity: participant.identity)
        entries[info.id] = Entry(track: track, participant: participant, asked: asked)
        participant.add(track)
        return track
    }

    /// Removes a track whose reception has ended.
    mutating func remove(_ track: RemoteVideoTrack) {
        guard let entry = entries.removeValue(forKey: track.sid) else { return }
        entry.participant.remove(track)
        track.end()
    }
}
