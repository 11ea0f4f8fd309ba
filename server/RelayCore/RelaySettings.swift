package import MediaCore

/// The limits of a relay and the times for which it keeps things; every bound that a peer can reach is here.
package struct RelaySettings: Sendable {
    /// The most rooms at a time.
    package var maximumRooms = 1000
    /// The most participants in a room at a time.
    package var maximumParticipantsPerRoom = 1000
    /// The most tracks in a room at a time.
    package var maximumTracksPerRoom = 1000
    /// The time from an open connection to its `join`.
    package var joinTimeout: Duration = .seconds(10)
    /// The most signaling that may wait for a participant; above this, the participant is disconnected as too slow.
    ///
    /// A join into a room of 1,000 participants with 1,000 tracks adds 0.4 MB at once. It adds 1.3 MB if all names have
    /// the greatest length and consist of quotation marks.
    package var maximumOutbox = DataSize.mebibytes(2)
    /// The most signaling that may wait for all participants together; above this, those for whom much has waited for
    /// long are disconnected as too slow.
    ///
    /// It is as much as the memory for packets. A text that waits for many is counted for each, although it is stored
    /// once.
    package var maximumOutboxes = DataSize.mebibytes(512)
    /// The most subscriptions of all participants together.
    ///
    /// Each takes some 800 bytes. It is enough for a room in which 1,000 participants receive 500 tracks each, which
    /// takes 400 MB. Above this, a `subscribe` is refused, and so is a `publish` or `join` that would subscribe others
    /// or itself automatically.
    package var maximumSubscriptions = 500_000
    /// The interval at which a participant may send signaling messages in the long run.
    ///
    /// A message counts once, and once more for each whole KiB of its text, because reading that costs as much.
    package var messageInterval: Duration = .milliseconds(10)
    /// The number of signaling messages that a participant may send at once after a quiet time.
    ///
    /// It is enough to subscribe to each track of a full room.
    package var messageBurst = 2000
    /// How many messages a second the relay sends to others in the room because of one participant, in the long run.
    ///
    /// `publish` causes two messages to each of the others; `unpublish`, `enable` and `disable` cause one. In a room of
    /// 1,000 a participant may thus pause or resume a track twice a second, which takes some 10 ms of the server's
    /// time.
    package var deliveriesPerSecond = 2000
    /// How many messages the relay sends at once to others because of one participant, after a quiet time.
    ///
    /// This is twice the number that a participant causes by publishing 16 tracks in a room of 1,000.
    package var deliveryBurst = 64_000
    /// The interval at which participants may join a room in the long run.
    ///
    /// Each join, and the leaving before or after it, is a message to everybody in the room. Without a limit, two
    /// clients that take each other's place keep all links of the room busy. A participant that leaves less than a
    /// quiet time after it caused messages to others counts as one more join for each `maximumParticipantsPerRoom` of
    /// them.
    package var joinInterval: Duration = .milliseconds(100)
    /// How many participants may join a room at once, after a quiet time: twice as many as it holds.
    package var joinBurst = 2000
    /// How many messages a second the joins of a room may cause to the others in it, in the long run: those of ten joins
    /// to a room of 1,000.
    ///
    /// A join counts two for each of the others: one that says that the participant has come, and one that it has gone.
    package var joinDeliveriesPerSecond = 20_000
    /// How many messages the joins of a room may cause at once, after a quiet time: as many as it takes to fill a room
    /// with 1,000 participants.
    package var joinDeliveryBurst = 1_000_000
    /// The interval at which participants may take the place of one with the same identity in the long run.
    package var replacementInterval: Duration = .seconds(2)
    /// How many participants may take the place of one with the same identity at once, after a quiet time.
    package var replacementBurst = 10
    /// The time from a fatal error to cutting a peer that does not take it.
    package var closeTimeout: Duration = .seconds(3)
    /// The limits of the media that a participant may send.
    package var media = MediaSettings()
    /// The memory for the stored packets of all tracks together.
    ///
    /// It is enough for 1,000 tracks at 2 Mbit/s, each with 600 ms of all packets and 3 s of temporal layer 0; a screen
    /// that stands still keeps up to 1 MiB and a keyframe. When it is used up, tracks lose the packets kept for late
    /// joiners, the largest first, and new tracks are refused. If live packets alone exceed it, the tracks with the most
    /// packets lose all of them, and their subscribers continue at a keyframe.
    package var maximumStoredBytes = DataSize.mebibytes(512)
    /// How long a track's packets are kept, and how many.
    package var stream = TrackStreamSettings()
    /// When packets are left out for a subscriber that falls behind.
    package var forwarding = ForwardingPolicy()
    /// How often a publisher may be asked for a keyframe.
    package var keyframes = KeyframeRequestGate.Settings()

    /// Creates the default settings.
    package init() {}
}

/// The limits of the media that a participant may send.
///
/// A burst covers what arrives at once after the network has stalled, because TCP delivers the backlog in one go.
package struct MediaSettings: Sendable {
    /// The bit rate of a track, in the long run.
    ///
    /// 1920x1080 at 60 fps takes some 10 Mbit/s, and 3840x2160 some 30.
    package var trackRate = Bitrate.kilobitsPerSecond(50_000)
    /// The bit rate of a participant, in the long run, for all its tracks and other binary messages.
    ///
    /// It is enough for two tracks at their limit, or for 16 tracks of 6 Mbit/s.
    package var participantRate = Bitrate.kilobitsPerSecond(100_000)
    /// The packets of a track in each second, in the long run.
    ///
    /// 60 fps in three simulcast layers are 180 frames a second. At 50 Mbit/s each frame takes three full packets,
    /// which makes 540. The rest is for publishers that send shorter packets (3 kB at 50 Mbit/s), and for 1,000 fps,
    /// the highest rate that a track can announce.
    package var trackPackets = 2000
    /// The packets of a participant in each second, in the long run, with other binary messages included.
    ///
    /// It is twice that of a track, like the bit rate. Acknowledgements have a limit of their own.
    package var participantPackets = 4000
    /// The acknowledgements of a participant in each second, in the long run.
    ///
    /// It is twice what `AcknowledgementSchedule` sends at most, however many tracks a participant receives.
    package var participantAcknowledgements = 2000
    /// The time whose long-run allowance a burst may contain.
    ///
    /// A longer stall ends in a new connection, or in frames that the publisher leaves out.
    package var burstTime: Duration = .seconds(3)
    /// The bytes that a burst may contain besides, and as many packets as these bytes make in the shortest chunks.
    ///
    /// This is the most that a publisher's socket and send queue hold: 4 MiB of send buffer (Linux, `tcp_wmem`) and two
    /// frames.
    package var burstBytes = DataSize.mebibytes(6)

    /// Creates the default settings.
    package init() {}
}

/// How long a track's packets are kept, and how many.
package struct TrackStreamSettings: Sendable {
    /// How long every packet is kept for subscribers that lag.
    ///
    /// It is no shorter than `ForwardingPolicy.skipAfter`, after which no subscriber needs the packets.
    package var liveWindow: Duration = .milliseconds(600)
    /// How long the last keyframe and the later frames of temporal layer 0 are kept for late joiners.
    ///
    /// It is longer than the interval between keyframe requests, so that a burst of joins costs one keyframe. It is
    /// short enough that a joiner decodes these frames within some 30 ms (3 s hold 23 such frames at 30 fps).
    package var cacheAge: Duration = .seconds(3)
    /// The most frames of temporal layer 0 with which a keyframe is kept for late joiners however old it is, while the
    /// picture stands still.
    ///
    /// The time counts from the last repeat then. A joiner gets the sharp picture, and the others no new keyframe, which
    /// would be coarse. It decodes the frames of a page of text at 1280x720 that has become sharp, and 3 minutes of
    /// repeats after it, in some 0.1 s.
    package var stillFrames = 200
    /// The most bytes of these frames.
    ///
    /// A page full of small text at 1280x720 takes 400 kB to become sharp.
    package var stillBytes = DataSize.mebibytes(1)
    /// How long a keyframe that is older than `cacheAge` is kept for a subscriber that is still catching up from it.
    package var pinnedAge: Duration { cacheAge * 2 }
    /// How long a packet that is sent to such a subscriber keeps the cache.
    package var pinTime: Duration { .seconds(1) }
    /// The most bytes kept for a track.
    ///
    /// It holds 3 s at 10 Mbit/s, or the largest frame (4 MiB, plus the memory of its packets) with the frames around
    /// it. It bounds the memory that one publisher's track can take.
    package var maximumBytes = DataSize.mebibytes(6)

    /// Creates the default settings.
    package init() {}
}

/// How far a subscriber may lag behind the publisher before frames are left out for it.
///
/// The lag is measured at the relay, from a frame's arrival to the moment when its first byte could be forwarded.
package struct ForwardingPolicy: Sendable {
    /// Above this lag the highest temporal layer is left out: half of the frames, 40 % of the bytes.
    package var dropTopLayerAfter: Duration = .milliseconds(120)
    /// Above this lag only temporal layer 0 is sent.
    package var dropMiddleLayerAfter: Duration = .milliseconds(200)
    /// Above this lag everything up to the next keyframe is left out.
    package var skipAfter: Duration = .milliseconds(600)
    /// If a subscriber's path needs longer for what waits, everything up to the next keyframe is left out.
    ///
    /// It applies where the path's rate is known. A keyframe at the lower rate arrives sooner than a backlog of the
    /// higher one.
    package var longestBacklog: Duration = .milliseconds(500)
    /// Beside other tracks of the subscriber, the oldest frame of a backlog must also have waited for this long.
    ///
    /// Keyframes of several tracks often come at one time, and delay what follows. Two tracks of one layer that a path
    /// cannot carry, of high and low priority, otherwise used a fifth of it, with half a frame to two a second.
    package var backlogAfter: Duration { skipAfter * 2 / 3 }

    /// Creates the default policy.
    package init() {}

    /// The thresholds of the lag in nanoseconds, as they are compared for each packet and subscriber.
    ///
    /// A `Duration` has 128 bits, and comparing two of them is a call into the standard library.
    package struct Limits: Sendable {
        let dropTopLayerAfter: Int64
        let dropMiddleLayerAfter: Int64
        let skipAfter: Int64

        package init(_ policy: ForwardingPolicy) {
            dropTopLayerAfter = policy.dropTopLayerAfter.wholeNanoseconds
            dropMiddleLayerAfter = policy.dropMiddleLayerAfter.wholeNanoseconds
            skipAfter = policy.skipAfter.wholeNanoseconds
        }
    }
}
