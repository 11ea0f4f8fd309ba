package import MediaCore
package import RoomKit
import SyntheticSources

/// What the path to a server and back carries, measured by a published track in a room of its own.
package struct NetworkMeasurement: Hashable, Sendable {
    /// The rate that reached the server.
    package var up: Bitrate
    /// Whether the path set that rate; otherwise it carries more.
    package var isUpLimited: Bool
    /// The highest rate that came back for a second; it is never higher than `up`.
    package var down: Bitrate
    /// Whether the way back set that rate; otherwise it carries more.
    package var isDownLimited: Bool
    /// The shortest round trip, before the measurement or during it; `nil` if the server acknowledges nothing.
    package var roundTrip: Duration?
    /// The round trip under load that 95 of 100 samples do not exceed.
    package var loadedRoundTrip: Duration?
    /// The time from capture to decoding, there and back, that 95 of 100 frames do not exceed.
    package var frameAge: Duration?

    /// A measurement with the given values.
    package init(
        up: Bitrate,
        isUpLimited: Bool,
        down: Bitrate,
        isDownLimited: Bool,
        roundTrip: Duration? = nil,
        loadedRoundTrip: Duration? = nil,
        frameAge: Duration? = nil
    ) {
        self.up = up
        self.isUpLimited = isUpLimited
        self.down = down
        self.isDownLimited = isDownLimited
        self.roundTrip = roundTrip
        self.loadedRoundTrip = loadedRoundTrip
        self.frameAge = frameAge
    }

    /// The rate that a published track can have.
    package var usableRate: Bitrate { min(up, down) }
}

/// Measures a network by the real publisher and subscriber: the uplink's control finds the rate that the path carries.
///
/// First the track goes to the server and no further, then a second participant of this program receives it. The track
/// is noise, which takes any rate at little cost. It stays within the limits of every server (`docs/protocol.md`,
/// section 11).
package struct NetworkProbe: Sendable {
    /// The room to join as the second participant.
    package var options: ConnectOptions
    /// The rate that is tried at most.
    package var highestRate: Bitrate
    /// The time for both directions.
    package var duration: Duration

    /// The part of the time for the way there.
    ///
    /// It begins at 600 kbit/s; the way back begins at the rate that it found.
    private static let upPart = 0.6
    /// The rate is the highest for so long, of what was acknowledged or came back.
    ///
    /// A way that carries less than the track has is full as soon as the track comes, and then tells its rate. The
    /// publisher notices, and begins anew from less: at the end of the time, the rate may still be far from that of the
    /// way. A queue in the network cannot make a second's rate higher than what the way carries.
    private static let bestTime = Duration.seconds(1)
    /// The same for the way there, where the server acknowledges whole messages: on a thin way, one comes some times a
    /// second.
    private static let bestAcknowledgedTime = Duration.seconds(2)
    /// A round trip that is longer under load by this much shows a queue, which only a full way has.
    private static let queueOfFullWay = Duration.milliseconds(200)

    /// 160x120 takes up to some 6 Mbit/s at 30 fps, so no higher rate can be tried.
    private static let dimensions = Dimensions(width: 160, height: 120)
    /// How often the connection is asked.
    private static let interval = Duration.milliseconds(25)
    /// A rate below this part of what was tried is the path's.
    private static let limitedPart = 0.8
    /// A way there below this rate may be why no frame has come back.
    private static let thinRate = Bitrate.kilobitsPerSecond(200)
    /// How long the first frame may take to come back.
    private static let patience = Duration.seconds(5)

    /// A probe with the given settings.
    package init(options: ConnectOptions, highestRate: Bitrate, duration: Duration) {
        self.options = options
        self.highestRate = highestRate
        self.duration = duration
    }

    /// Measures from `room`, which stays joined.
    ///
    /// - Throws: `RoomError`, or `CancellationError`; nothing is published then.
    package func run(from room: Room) async throws -> NetworkMeasurement {
        let track = LocalVideoTrack(source: NoiseSource(dimensions: Self.dimensions), name: "doctor")
        var publishing = VideoPublishOptions()
        publishing.maxBitrate = highestRate
        publishing.simulcast = false
        publishing.isSentUnreceived = true
        try await room.localParticipant.publish(track, options: publishing)
        do {
            let measurement = try await measure(track, from: room)
            await room.localParticipant.unpublish(track)
            return measurement
        } catch {
            await room.localParticipant.unpublish(track)
            throw error
        }
    }

    private func measure(_ track: LocalVideoTrack, from room: Room) async throws -> NetworkMeasurement {
        var trips: [Duration] = []
        let watch: () -> Void = {
            guard let connection = track.statistics.connection, let trip = connection.roundTripTime else { return }
            trips.append(trip + (connection.queueDelay ?? .zero))
        }
        let reached = {
            let statistics = track.statistics
            // Without acknowledgements it is not known what has come.
            guard let connection = statistics.connection, connection.isAcknowledged else { return statistics.bytesSent }
            return connection.acknowledgedBytes
        }
        let (upTime, upWindow) = (duration * Self.upPart, Self.bestAcknowledgedTime)
        let up = min(highestRate, try await bestRate(reached, over: upWindow, for: upTime, in: room, watch))
        let connection = track.statistics.connection
        let before = await room.roundTrips.min()
        let rest = connection?.roundTripTime.map { min($0, before ?? $0) }
        let layers = track.statistics.layers
        let isBusy = layers.contains { $0.qualityLimitation == .cpu }
        // A rate that still rises when the time is over is nobody's limit.
        let isQueueing = (Self.percentile95(of: trips) ?? .zero) - (rest ?? .zero) > Self.queueOfFullWay
        let hasQueued =
            isQueueing || layers.contains { $0.qualityLimitationDurations[.bandwidth] ?? .zero > .zero }
        let viewer = try await RoomClient.connect(options: options)
        do {
            guard let remote = try await firstTrack(of: viewer) else {
                guard isQueueing, up < Self.thinRate else {
                    throw DiagnosisFailure(
                        description: "no frame has come back from the server in \(Int(Self.patience.seconds)) s"
                    )
                }
                await viewer.disconnect()
                let none = Bitrate(bitsPerSecond: 0)
                return NetworkMeasurement(
                    up: up,
                    isUpLimited: true,
                    down: none,
                    isDownLimited: true,
                    roundTrip: rest,
                    loadedRoundTrip: Self.percentile95(of: trips)
                )
            }
            let received = { remote.statistics.bytes }
            let downTime = duration * (1 - Self.upPart)
            let down = min(up, try await bestRate(received, over: Self.bestTime, for: downTime, in: viewer, watch))
            let age = remote.statistics.recentFrameAge?.p95
            await viewer.disconnect()
            return NetworkMeasurement(
                up: up,
                isUpLimited: !isBusy && hasQueued && isLimited(up, highestRate),
                down: down,
                isDownLimited: isLimited(down, up),
                roundTrip: rest,
                loadedRoundTrip: Self.percentile95(of: trips),
                frameAge: age
            )
        } catch {
            await viewer.disconnect()
            throw error
        }
    }

    private func isLimited(_ rate: Bitrate, _ tried: Bitrate) -> Bool {
        Double(rate.bitsPerSecond) < Self.limitedPart * Double(tried.bitsPerSecond)
    }

    /// The highest rate at which `count` rises for `window` in `time`; that of the whole time if it rises too rarely.
    private func bestRate(
        _ count: () -> Int,
        over window: Duration,
        for time: Duration,
        in room: Room,
        _ watch: () -> Void
    ) async throws -> Bitrate {
        let start = ByteCount(bytes: count(), time: .now)
        var best = BestRate(over: min(window, time / 2))
        try await wait(time, in: room) {
            watch()
            best.add(ByteCount(bytes: count(), time: .now))
        }
        return max(best.rate, ByteCount(bytes: count(), time: .now).rate(since: start))
    }

    private func wait(_ time: Duration, in room: Room, _ watch: () -> Void) async throws {
        let deadline = MonotonicInstant.now + time
        while MonotonicInstant.now < deadline {
            try await Task.sleep(for: Self.interval)
            guard await room.state == .connected else {
                throw DiagnosisFailure(description: "the server ended the session during the measurement")
            }
            watch()
        }
    }

    /// The track of the first participant, once a frame of it has come; `nil` if none comes.
    private func firstTrack(of viewer: Room) async throws -> RemoteVideoTrack? {
        let deadline = MonotonicInstant.now + Self.patience
        while MonotonicInstant.now < deadline {
            let tracks = await viewer.remoteParticipants.flatMap(\.videoTracks)
            if let track = tracks.first, track.statistics.framesReceived > 0 { return track }
            try await Task.sleep(for: Self.interval)
        }
        return nil
    }

    private static func percentile95(of samples: [Duration]) -> Duration? {
        guard !samples.isEmpty else { return nil }
        return samples.sorted()[samples.count * 95 / 100]
    }
}

/// Why a measurement failed, if no other module has an error for it.
struct DiagnosisFailure: Error, CustomStringConvertible {
    /// What happened, without a capital letter and a full stop.
    let description: String
}
