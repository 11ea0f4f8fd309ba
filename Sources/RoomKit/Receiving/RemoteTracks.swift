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
        /// The previous receiver, which may still be ending.
        var former: VideoReceiver?
        /// Whether the end of the subscription was asked for, and the answer has not come.
        var isLeaving = false
        /// Whether it is subscribed to once fewer tracks are received.
        var waitsForPlace = false
    }

    /// The participants, by id.
    var participants: [String: RemoteParticipant] = [:]
    /// The tracks, by id.
    var entries: [String: Entry] = [:]
    /// Receivers that have been told to stop and whose threads still run.
    var endingReceivers = 0

    /// How many tracks are received.
    var receivedCount: Int { entries.values.count { $0.alias != nil } }

    /// The track that has waited longest to be received, once fewer are; it waits no longer.
    mutating func takeWaiting() -> RemoteVideoTrack? {
        let waiting = entries.values.filter(\.waitsForPlace).min { $0.asked < $1.asked }
        guard let track = waiting?.track else { return nil }
        entries[track.sid]?.waitsForPlace = false
        return track
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
