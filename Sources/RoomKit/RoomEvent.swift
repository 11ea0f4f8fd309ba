/// What happens in a room.
public enum RoomEvent: Sendable {
    /// Somebody joined.
    case participantConnected(RemoteParticipant)
    /// Somebody left; that the participant's tracks are gone has been told before.
    case participantDisconnected(RemoteParticipant)
    /// Somebody published a track.
    case trackPublished(RemoteVideoTrack, RemoteParticipant)
    /// Somebody withdrew a track, or left; that it is received no longer has been told before.
    case trackUnpublished(RemoteVideoTrack, RemoteParticipant)
    /// A track's frames begin to come.
    case trackSubscribed(RemoteVideoTrack, RemoteParticipant)
    /// A track's frames come no longer.
    case trackUnsubscribed(RemoteVideoTrack, RemoteParticipant)
    /// A track's publisher sends again.
    case trackEnabled(RemoteVideoTrack, RemoteParticipant)
    /// A track's publisher pauses.
    case trackDisabled(RemoteVideoTrack, RemoteParticipant)
    /// The server refused something that was asked of it.
    case requestRefused(RoomError)
    /// The session is over, with the error that ended it; `nil` if we left. Nothing comes after it.
    case disconnected(RoomError?)
}

/// Whether a room can be used.
public enum RoomState: Sendable {
    /// Joined.
    case connected
    /// Left, or lost.
    case disconnected
}
