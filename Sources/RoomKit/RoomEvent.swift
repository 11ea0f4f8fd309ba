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
    /// A track cannot be received, by the error's word; what the server sends of it is refused.
    ///
    /// Comes in place of `trackSubscribed`, or after the `trackUnsubscribed` of a track that was received for a moment:
    /// with `tooManyTracks` for one beyond `ConnectOptions.maximumReceivedTracks`, with `outOfResources` where there is
    /// no thread or memory for a decoder. `Room.subscribe(to:)` asks for it again.
    case trackSubscriptionFailed(RemoteVideoTrack, RemoteParticipant, RoomError)
    /// A track's frames begin to come.
    case trackSubscribed(RemoteVideoTrack, RemoteParticipant)
    /// A track's frames come no longer; exactly one for each `trackSubscribed`, unless the session ends first.
    case trackUnsubscribed(RemoteVideoTrack, RemoteParticipant)
    /// A track's publisher sends again.
    case trackEnabled(RemoteVideoTrack, RemoteParticipant)
    /// A track's publisher pauses.
    case trackDisabled(RemoteVideoTrack, RemoteParticipant)
    /// A track of ours delivers nothing: its camera has given out (`CameraError`), or its pictures cannot be encoded.
    ///
    /// It stays published. After a camera's failure, unpublish it and publish it again when the camera is back.
    case localTrackFailed(LocalVideoTrack, any Error)
    /// The server refused something that was asked of it.
    case requestRefused(RoomError)
    /// The session is over, with the error that ended it; `nil` if we left. Nothing comes after it.
    case disconnected(RoomError?)
}

/// Whether a room can be used.
public enum RoomState: Hashable, Sendable {
    /// Joined.
    case connected
    /// Left, or lost.
    case disconnected
}
