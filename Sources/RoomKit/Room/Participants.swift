import Threading

/// This program in a room.
public final class LocalParticipant: Sendable {
    /// The name under which this program joined.
    public let identity: String

    private struct State: Sendable {
        var sid = ""
        var networkQualityLevel = NetworkQualityLevel.five
        weak var room: Room?
    }

    private let state = Monitor(State())

    init(identity: String) {
        self.identity = identity
    }

    /// The server's id for this program, `PA…`.
    public var sid: String { state.withLock { $0.sid } }

    /// How well this program's network carries its media, as the server last reported; `five` before that.
    public var networkQualityLevel: NetworkQualityLevel { state.withLock { $0.networkQualityLevel } }

    func setNetworkQuality(_ level: NetworkQualityLevel) {
        state.withLock { $0.networkQualityLevel = level }
    }

    func attach(_ room: Room) {
        state.withLock { $0.room = room }
    }

    func joined(as sid: String) {
        state.withLock { $0.sid = sid }
    }

    /// The tracks that are published now.
    public var videoTracks: [LocalVideoTrack] {
        get async { await state.withLock({ $0.room })?.localTracks ?? [] }
    }

    /// Starts a track's source and publishes the track.
    ///
    /// It first waits for the source's first picture, because the picture's size is announced. Once the source has
    /// started, it waits at most 10 s, or three frame intervals of a slower source. It returns when the server has
    /// accepted the track. Pictures are encoded while somebody receives the track. If the camera fails later,
    /// `RoomEvent.localTrackFailed` reports it.
    ///
    /// - Parameters:
    ///   - track: A track that is not published yet.
    ///   - options: How the track is encoded.
    /// - Throws: `RoomError` (`alreadyPublished`, `noFramesCaptured`, `encodingFailed` for pictures that are too large,
    ///   `unpublished`, `notConnected`, `connectionLost`, `outOfResources`, or `refused`, for example because another
    ///   of our tracks has the same name), any error of the source's start (`CameraError` for a camera), or
    ///   `CancellationError`. After an error nothing is published and the source is stopped again.
    public func publish(_ track: LocalVideoTrack, options: VideoPublishOptions = VideoPublishOptions()) async throws {
        guard let room = state.withLock({ $0.room }) else { throw RoomError(.notConnected, "The room was left.") }
        try await room.publish(track, options: options)
    }

    /// Withdraws a track and stops its source; does nothing for a track that is not published.
    ///
    /// A `publish` of the track that is still running fails with `unpublished`. This method returns when the track's
    /// threads have ended. Then the track's statistics are final, and it can be published again. A cancelled task waits
    /// as well.
    public func unpublish(_ track: LocalVideoTrack) async {
        await state.withLock { $0.room }?.unpublish(track)
    }
}

/// Another participant of a room.
public final class RemoteParticipant: Sendable {
    /// The server's id for the participant, `PA…`.
    public let sid: String
    /// The name under which the participant joined.
    public let identity: String

    private let tracks = Monitor<[RemoteVideoTrack]>([])
    private let level = Monitor(NetworkQualityLevel.five)

    init(sid: String, identity: String) {
        self.sid = sid
        self.identity = identity
    }

    /// The tracks that the participant has published, in order of publishing.
    public var videoTracks: [RemoteVideoTrack] { tracks.withLock { $0 } }

    /// How well the participant's network carries its media, as the server last reported; `five` before that.
    public var networkQualityLevel: NetworkQualityLevel { level.withLock { $0 } }

    func setNetworkQuality(_ level: NetworkQualityLevel) {
        self.level.withLock { $0 = level }
    }

    func add(_ track: RemoteVideoTrack) {
        tracks.withLock { $0.append(track) }
    }

    func remove(_ track: RemoteVideoTrack) {
        tracks.withLock { tracks in tracks.removeAll { $0 === track } }
    }
}
