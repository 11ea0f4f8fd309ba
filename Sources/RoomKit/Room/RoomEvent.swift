/// What happens in a room.
public enum RoomEvent: Sendable {
    /// A participant joined.
    case participantConnected(RemoteParticipant)
    /// A participant left. `trackUnpublished` came before, once for each of its tracks.
    case participantDisconnected(RemoteParticipant)
    /// A participant published a track.
    case trackPublished(RemoteVideoTrack, RemoteParticipant)
    /// A participant withdrew a track, or left. If the track was received, `trackUnsubscribed` came before.
    case trackUnpublished(RemoteVideoTrack, RemoteParticipant)
    /// A track cannot be received; see the error. The subscription is given up, and no keyframe is asked for.
    ///
    /// It comes instead of `trackSubscribed`, or after the `trackUnsubscribed` of a track that was received for a moment:
    ///
    /// - `tooManyTracks`: more tracks than `ConnectOptions.maximumReceivedTracks`.
    /// - `unsupportedTrack`: this library has no decoder for the track's codec.
    /// - `decodingFailed`: the pictures are too large, or none of several keyframes could be decoded.
    /// - `outOfResources`: there is no thread or memory for a decoder.
    ///
    /// `Room.subscribe(to:)` asks for the track again.
    case trackSubscriptionFailed(RemoteVideoTrack, RemoteParticipant, RoomError)
    /// The frames of a track begin to arrive.
    case trackSubscribed(RemoteVideoTrack, RemoteParticipant)
    /// The frames of a track no longer arrive; once for each `trackSubscribed`, unless the session ends first.
    case trackUnsubscribed(RemoteVideoTrack, RemoteParticipant)
    /// The publisher of a track sends again.
    case trackEnabled(RemoteVideoTrack, RemoteParticipant)
    /// The publisher of a track pauses it.
    case trackDisabled(RemoteVideoTrack, RemoteParticipant)
    /// A local track delivers nothing: its camera failed (`CameraError`), or its pictures cannot be encoded (`RoomError`).
    ///
    /// The track stays published. After a camera's failure, unpublish it, and publish it again when the camera is back.
    case localTrackFailed(LocalVideoTrack, any Error)
    /// The server refused a request.
    case requestRefused(RoomError)
    /// This reader was too slow: so many events were left out here, because 1,024 were waiting.
    ///
    /// `Room.remoteParticipants` and `RemoteParticipant.videoTracks` tell who and what is there now.
    case eventsMissed(Int)
    /// The session is over, with the error that ended it; `nil` if this program left. It is the last event.
    case disconnected(RoomError?)
}

/// Whether a room can be used.
public enum RoomState: Hashable, Sendable {
    /// Joined.
    case connected
    /// Left, or lost.
    case disconnected
}
