/// The other participants of a room and their tracks, of every kind, as the server announced them.
///
/// It bounds what a server may announce: participants, tracks of each, and one publisher for each track.
struct RemoteRoster: Sendable {
    /// Ten times as many as a server admits to a room by default.
    static let mostParticipants = 10_000

    /// The participants by id.
    private(set) var participants: [String: ParticipantInfo] = [:]
    private var publisherOfTrack: [String: String] = [:]

    /// Adds a participant that is not there, without those tracks that are there already or are too many.
    ///
    /// - Returns: The participant as it was added; `nil` if it was there, or if there are too many participants.
    mutating func add(_ participant: ParticipantInfo) -> ParticipantInfo? {
        guard participants[participant.id] == nil, !isFull else { return nil }
        var added = participant
        added.tracks = []
        participants[participant.id] = added
        for track in participant.tracks { _ = add(track, of: participant.id) }
        return participants[participant.id]
    }

    /// Whether there are as many participants as there may be.
    var isFull: Bool { participants.count >= Self.mostParticipants }

    /// Removes a participant with its tracks, and returns it; `nil` if it was not there.
    mutating func remove(_ participantID: String) -> ParticipantInfo? {
        guard let participant = participants.removeValue(forKey: participantID) else { return nil }
        for track in participant.tracks { publisherOfTrack[track.id] = nil }
        return participant
    }

    /// Adds a track of a participant.
    ///
    /// - Returns: Whether it was added: not if it is there already, if its participant is not, or has too many.
    mutating func add(_ track: TrackInfo, of participantID: String) -> Bool {
        guard publisherOfTrack[track.id] == nil, let publisher = participants[participantID],
            publisher.tracks.count < WireFormat.maximumTracksPerParticipant
        else { return false }
        participants[participantID]?.tracks.append(track)
        publisherOfTrack[track.id] = participantID
        return true
    }

    /// Removes a track, if it is there.
    mutating func remove(track trackID: String) {
        guard let publisher = publisherOfTrack.removeValue(forKey: trackID) else { return }
        participants[publisher]?.tracks.removeAll { $0.id == trackID }
    }

    /// A track with its publisher; `nil` if it is not there.
    func track(_ trackID: String) -> (TrackInfo, by: ParticipantInfo)? {
        guard let (publisherID, index) = place(of: trackID), let publisher = participants[publisherID] else {
            return nil
        }
        return (publisher.tracks[index], publisher)
    }

    /// Changes what is known of a track, if it is there.
    mutating func change(_ trackID: String, _ change: (inout TrackInfo) -> Void) {
        guard let (publisherID, index) = place(of: trackID), var publisher = participants[publisherID] else { return }
        change(&publisher.tracks[index])
        participants[publisherID] = publisher
    }

    private func place(of trackID: String) -> (publisherID: String, index: Int)? {
        guard
            let publisherID = publisherOfTrack[trackID],
            let index = participants[publisherID]?.tracks.firstIndex(where: { $0.id == trackID })
        else { return nil }
        return (publisherID, index)
    }
}

extension ParticipantInfo {
    /// The participant with only those tracks whose kind this version knows.
    var withKnownTracks: ParticipantInfo {
        var known = self
        known.tracks.removeAll { $0.kind != TrackKind.video }
        return known
    }
}
