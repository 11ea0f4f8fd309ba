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
    /// A message counts once, and once more for each whole KiB of its text: reading it costs as much.
    package var messageInterval: Duration = .milliseconds(10)
    /// How many signaling messages a participant may send at once after a quiet time.
    ///
    /// Enough to subscribe to each track of a full room.
    package var messageBurst = 2000
    /// How many messages a second the others in the room may be sent for one participant's, in the long run.
    ///
    /// `publish` costs two for each of them, `unpublish`, `enable` and `disable` one. In a room of 1,000 a participant
    /// may thus pause or resume a track twice a second, for some 10 ms of the server's time.
    package var deliveriesPerSecond = 2000
    /// How many messages the others in the room may be sent at once for one participant's, after a quiet time.
    ///
    /// Twice what a participant causes that publishes 16 tracks in a room of 1,000.
    package var deliveryBurst = 64_000
    /// From a fatal error to hanging up on a peer that does not take it.
    package var closeTimeout: Duration = .seconds(3)
    /// How much media a participant may send.
    package var media = MediaSettings()
    /// Memory for the packets kept of all tracks together.
    ///
    /// Enough for 1,000 tracks at 2 Mbit/s, each with 600 ms of everything and 3 s of temporal layer 0. When it is used
    /// up, tracks lose what is kept for late joiners, the largest first, and new tracks are refused. If live packets
    /// alone exceed it, the tracks that keep most lose all, and their subscribers go on at a keyframe.
    package var maximumStoredBytes = DataSize.mebibytes(512)
    /// How a track's packets are kept.
    package var stream = TrackStreamSettings()
    /// How packets are left out for a subscriber that falls behind.
    package var forwarding = ForwardingPolicy()
    /// How often a publisher may be asked for a keyframe.
    package var keyframes = KeyframeRequestGate.Settings()

    /// The settings as documented.
    package init() {}
}

/// How much media a participant may send.
///
/// A burst holds what comes at once after the network has stalled: TCP delivers the backlog in one go.
package struct MediaSettings: Sendable {
    /// Bytes of a track, in the long run.
    ///
    /// 1920x1080 at 60 fps takes some 10 Mbit/s, and 3840x2160 some 30.
    package var trackRate = Bitrate.kilobitsPerSecond(50_000)
    /// Bytes of a participant, in the long run, with all its tracks and other binary messages.
    ///
    /// Two tracks at their limit, or 16 of 6 Mbit/s.
    package var participantRate = Bitrate.kilobitsPerSecond(100_000)
    /// Packets of a track a second, in the long run.
    ///
    /// 60 fps in three simulcast layers are 180 frames a second, which at 50 Mbit/s take three full packets each: 540. The
    /// rest is for publishers that cut shorter packets (3 kB at 50 Mbit/s), and for 1,000 fps, the highest rate that a
    /// track can announce.
    package var trackPackets = 2000
    /// Packets of a participant a second, in the long run, other binary messages among them.
    ///
    /// Twice that of a track, as the bytes are.
    package var participantPackets = 4000
    /// A burst holds what the long run allows in this time.
    ///
    /// A stall that lasts longer ends in a new connection or in frames that the publisher leaves out.
    package var burstTime: Duration = .seconds(3)
    /// A burst holds this many bytes beside, and as many packets of the shortest chunk as make up these bytes.
    ///
    /// What a publisher's socket and send queue hold at most: 4 MiB of send buffer (Linux, `tcp_wmem`) and two frames.
    package var burstBytes = DataSize.mebibytes(6)

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
