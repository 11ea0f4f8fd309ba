public import MediaCore

/// An event in a room.
public enum RoomEvent: Sendable {
    /// A participant joined; `trackPublished` follows, once for each track that it has already.
    case participantConnected(RemoteParticipant)
    /// A participant left; `trackUnpublished` was reported first, once for each of its tracks.
    case participantDisconnected(RemoteParticipant)
    /// A participant published a track.
    case trackPublished(RemoteVideoTrack, RemoteParticipant)
    /// A participant withdrew a track, or left; if the track was received, `trackUnsubscribed` was reported first.
    case trackUnpublished(RemoteVideoTrack, RemoteParticipant)
    /// A track cannot be received, for the reason in the error.
    ///
    /// The subscription has ended, and no keyframe is requested. This event takes the place of `trackSubscribed`, or
    /// follows `trackUnsubscribed` if the track was received for a moment. The error's code is one of these:
    ///
    /// - `tooManyTracks`: the limit `ConnectOptions.maximumReceivedTracks` is reached. The track is subscribed to once
    ///   another one has ended.
    /// - `unsupportedTrack`: this library has no decoder for the track's codec.
    /// - `decodingFailed`: the pictures are too large, or none of several keyframes could be decoded.
    /// - `outOfResources`: there is no thread or memory for a decoder.
    ///
    /// `Room.subscribe(to:)` asks for the track again at once.
    case trackSubscriptionFailed(RemoteVideoTrack, RemoteParticipant, RoomError)
    /// The frames of a track begin to arrive.
    case trackSubscribed(RemoteVideoTrack, RemoteParticipant)
    /// The frames of a track no longer arrive.
    ///
    /// It follows each `trackSubscribed` once, unless the session ends first.
    case trackUnsubscribed(RemoteVideoTrack, RemoteParticipant)
    /// The pictures of a track, made upright, have another size from now on: its source has changed or was turned, or
    /// what the networks carry has changed.
    case trackDimensionsChanged(RemoteVideoTrack, RemoteParticipant, Dimensions)
    /// A track shows no new picture although some are expected, for whatever reason.
    ///
    /// It comes 1.5 s after the last picture, or three times their usual interval if that is longer. Frames that are
    /// late are not shown. A picture that stands still at its source is shown again each second. `trackUnfrozen` follows, unless the track is
    /// unsubscribed first.
    case trackFrozen(RemoteVideoTrack, RemoteParticipant)
    /// A track shows pictures again after `trackFrozen`, or none is expected any more, because the track is paused.
    ///
    /// The duration is the time since the last picture before.
    case trackUnfrozen(RemoteVideoTrack, RemoteParticipant, Duration)
    /// The publisher of a track sends again.
    case trackEnabled(RemoteVideoTrack, RemoteParticipant)
    /// The publisher of a track pauses it.
    case trackDisabled(RemoteVideoTrack, RemoteParticipant)
    /// The source of a local track has no pictures for a while: its camera was unplugged or hangs (`CameraError`).
    ///
    /// The track goes on with a slate. The event comes again if the cause changes for longer.
    case localTrackInterrupted(LocalVideoTrack, any Error)
    /// The source of a local track delivers pictures again.
    case localTrackInterruptionEnded(LocalVideoTrack)
    /// The pictures of a local track have another size from now on, because its source or a request has.
    case localTrackDimensionsChanged(LocalVideoTrack, Dimensions)
    /// The source of a local track goes on, but not as requested, or some of its frames cannot be used; the error says
    /// what to do.
    ///
    /// It also comes, while `publish` still waits, if the source gives no first picture for longer than is usual.
    case localTrackWarning(LocalVideoTrack, any Error)
    /// The server sends nothing of a track for now, for example because this program's network does not carry it.
    ///
    /// The subscription goes on. The last picture is old from now on.
    case trackSwitchedOff(RemoteVideoTrack, RemoteParticipant, TrackSwitchOffReason)
    /// The server sends a track again, after `trackSwitchedOff`.
    case trackSwitchedOn(RemoteVideoTrack, RemoteParticipant)
    /// A participant's network carries its media better or worse than before; the participant may be this program.
    case networkQualityChanged(any Participant, NetworkQualityLevel)
    /// A local track delivers nothing: its camera failed (`CameraError`), or its pictures cannot be encoded
    /// (`RoomError`).
    ///
    /// The track stays published, and a second after its source's end it counts as disabled for the others. After a
    /// camera's failure, unpublish it, and publish it again when the camera is back. A track of
    /// `ConnectOptions.videoTracks` that could not be published is reported in this way if those are not required.
    case localTrackFailed(LocalVideoTrack, any Error)
    /// The source of a local track has delivered its last picture, as at the end of a clip.
    ///
    /// The track stays published, and counts as disabled for the others a second later.
    case localTrackFinished(LocalVideoTrack)
    /// The server refused a request.
    case requestRefused(RoomError)
    /// This reader was too slow: this many events were left out here, because 1,024 were already waiting.
    ///
    /// No later event tells what they told. To make up for them, compare what you keep with what the room has now:
    ///
    /// - Let go of each participant that is not in `Room.remoteParticipants`, and of each track that is in no
    ///   participant's `videoTracks`. The objects are the same as long as a participant stays or a track is published.
    /// - Begin with each track whose `isSubscribed` is true. `addRenderer` does nothing for a renderer that the track
    ///   has.
    /// - Without automatic subscription, call `Room.subscribe(to:)` for the tracks that you want.
    /// - Read `isEnabled`, `isSwitchedOff`, `isFrozen`, `dimensions` and `networkQualityLevel` anew.
    /// - Look at the `failure` of each local track and of its source: `localTrackFailed` may be among what was missed.
    ///
    /// The room may be ahead of the events that still wait, so that one of these tells what you know already.
    /// A recorder ends by itself with its track, as does `RemoteVideoTrack.ended()`.
    case eventsMissed(Int)
    /// The session is over; the error is `nil` if this program left. This is the last event.
    case disconnected(RoomError?)
}

/// Whether a room can be used.
public enum RoomState: Hashable, Sendable {
    /// The room is joined.
    case connected
    /// The room was left, or the connection was lost.
    case disconnected
}
