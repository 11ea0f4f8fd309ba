package import MediaCore

/// What a relay allows, and how long it keeps things; every bound that a peer can meet is here.
package struct RelaySettings: Sendable {
    /// Rooms at a time.
    package var maximumRooms = 1000
    /// Participants of a room at a time.
    package var maximumParticipantsPerRoom = 1000
    /// Tracks of a room at a time.
    package var maximumTracksPerRoom = 1000
    /// From an open connection to its `join`.
    package var joinTimeout: Duration = .seconds(10)
    /// Signaling that waits for a participant to take it; beyond, the participant is let go as too slow.
    ///
    /// A join into a room of 1,000 participants with 1,000 tracks costs 0.4 MB at once; 1.3 MB if all names are as long
    /// as they may be and consist of quotation marks.
    package var maximumOutbox = DataSize.mebibytes(2)
    /// How often a participant may send a signaling message, in the long run.
    ///
    /// Some messages go to everybody in the room: this is what keeps one participant from filling the others' outboxes.
    package var messageInterval: Duration = .milliseconds(10)
    /// How many signaling messages a participant may send at once after a quiet time.
    ///
    /// Enough to subscribe to each track of a full room.
    package var messageBurst = 2000
    /// From a fatal error to hanging up on a peer that does not take it.
    package var closeTimeout: Duration = .seconds(3)
    /// How a track's packets are kept.
    package var stream = TrackStreamSettings()
    /// How packets are left out for a subscriber that falls behind.
    package var forwarding = ForwardingPolicy()
    /// How often a publisher may be asked for a keyframe.
    package var keyframes = KeyframeRequestGate.Settings()

    /// The settings as documented.
    package init() {}
}

/// How long a track's packets are kept, and how many.
package struct TrackStreamSettings: Sendable {
    /// How long every packet is kept for subscribers that lag.
    ///
    /// No shorter than `ForwardingPolicy.skipAfter`, beyond which nobody wants them.
    package var liveWindow: Duration = .milliseconds(600)
    /// How long the last keyframe and the frames of temporal layer 0 since are kept for late joiners.
    ///
    /// Longer than the interval between keyframe requests, so that a burst of joins costs one keyframe; short enough
    /// that a joiner decodes what it is given within some 30 ms (3 s hold 23 such frames at 30 fps).
    package var cacheAge: Duration = .seconds(3)
    /// The most bytes kept for a track, for whatever reason.
    ///
    /// 3 s at 10 Mbit/s, or the largest frame (4 MiB, and what its packets take besides) with those around it; the
    /// bound on what a publisher can make the server hold.
    package var maximumBytes = DataSize.mebibytes(6)

    /// The settings as documented.
    package init() {}
}

/// How far a subscriber may lag behind the publisher before frames are left out for it.
///
/// Measured at the relay, from a frame's arrival to the moment when its first byte could be sent on.
package struct ForwardingPolicy: Sendable {
    /// Beyond this the highest temporal layer is left out: half of the frames, 40 % of the bytes.
    package var dropTopLayerAfter: Duration = .milliseconds(120)
    /// Beyond this only temporal layer 0 is left.
    package var dropMiddleLayerAfter: Duration = .milliseconds(200)
    /// Beyond this everything up to the next keyframe is left out.
    package var skipAfter: Duration = .milliseconds(600)

    /// The policy as documented.
    package init() {}
}
