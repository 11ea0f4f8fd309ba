import RoomKit

/// The JSON objects of `--json`; their keys are stable, and there even without a value.

/// A value that is written as `null` where there is none.
@propertyWrapper
struct Nullable<Value: Encodable>: Encodable {
    var wrappedValue: Value?

    func encode(to encoder: any Encoder) throws {
        try wrappedValue.encode(to: encoder)
    }
}

struct ConnectedEvent: Encodable {
    var event = "connected"
    var room: String
    /// The own identity.
    var participant: String
    var participantId: String

    init(_ room: Room) {
        self.room = room.name
        participant = room.localParticipant.identity
        participantId = room.localParticipant.sid
    }
}

struct ParticipantEvent: Encodable {
    var event: String
    /// An identity, as everywhere.
    var participant: String
    var participantId: String

    init(_ event: String, _ participant: RemoteParticipant) {
        self.event = event
        self.participant = participant.identity
        participantId = participant.sid
    }
}

struct PublishedEvent: Encodable {
    var event = "published"
    var track: String
    var source: String
    @Nullable var width: Int?
    @Nullable var height: Int?
    @Nullable var frameRate: Double?
    @Nullable var pixelFormat: String?

    init(_ track: LocalVideoTrack) {
        let format = (track.source as? any VideoCapturer)?.captureFormat
        self.track = track.name
        source = track.sourceKind
        width = track.dimensions?.width
        height = track.dimensions?.height
        frameRate = format?.frameRate.framesPerSecond
        pixelFormat = format?.pixelFormat.description
    }
}

/// How the publishing goes, once a second with `--verbose`.
struct PublisherStatus: Encodable {
    var event = "status"
    var framesCaptured: Int
    var framesEncoded: Int
    var framesSent: Int
    var bytesSent: Int

    init(_ statistics: LocalVideoTrackStatistics) {
        framesCaptured = statistics.framesCaptured
        framesEncoded = statistics.framesEncoded
        framesSent = statistics.framesSent
        bytesSent = statistics.bytesSent
    }
}

struct PublisherSummary: Encodable {
    var event = "summary"
    var framesCaptured: Int
    var framesMissed: Int
    /// From the first to the last frame captured, by the device's stamps.
    ///
    /// The device's own rate is (framesCaptured + framesMissed - 1) / captureSeconds.
    var captureSeconds: Double
    var framesEncoded: Int
    var framesSent: Int
    var framesExpired: Int
    var framesDropped: [String: Int]
    var keyframes: Int
    var bytesSent: Int
    var seconds: Double

    init(_ statistics: LocalVideoTrackStatistics, elapsed: Duration) {
        framesCaptured = statistics.framesCaptured
        framesMissed = statistics.framesMissed
        captureSeconds = statistics.captureDuration.seconds
        framesEncoded = statistics.framesEncoded
        framesSent = statistics.framesSent
        framesExpired = statistics.framesExpired
        framesDropped = Dictionary(
            uniqueKeysWithValues: FrameDropReason.allCases.map { ($0.name, statistics.framesDropped[$0]) }
        )
        keyframes = statistics.keyframes
        bytesSent = statistics.bytesSent
        seconds = elapsed.seconds
    }
}

/// A track that comes or goes.
struct TrackEvent: Encodable {
    var event: String
    var participant: String
    var participantId: String
    var track: String

    init(_ event: String, _ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        self.event = event
        self.participant = participant.identity
        participantId = participant.sid
        self.track = track.name
    }
}

/// How the receiving goes, once a second with `--verbose`.
struct SubscriberStatus: Encodable {
    struct Track: Encodable {
        var participant: String
        var track: String
        var framesReceived: Int
        var framesDecoded: Int
        var bytes: Int

        init(_ track: RemoteVideoTrack) {
            let statistics = track.statistics
            participant = track.publisherIdentity
            self.track = track.name
            framesReceived = statistics.framesReceived
            framesDecoded = statistics.framesDecoded
            bytes = statistics.bytes
        }
    }

    var event = "status"
    var tracks: [Track]
}

struct SubscriberSummary: Encodable {
    struct Track: Encodable {
        var participant: String
        var track: String
        var framesReceived: Int
        var framesDecoded: Int
        var framesDropped: Int
        var keyframes: Int
        var bytes: Int
        @Nullable var file: String?
        @Nullable var framesRecorded: Int?
        @Nullable var framesNotRecorded: Int?
        @Nullable var firstFrameMs: Double?
        var clock: String
        var clockErrorMs: Double
        @Nullable var frameAgeMs: Percentiles?
    }

    var event = "summary"
    var tracks: [Track]
}

/// Milliseconds.
struct Percentiles: Encodable {
    var p50: Double
    var p95: Double
    var p99: Double?
    var max: Double?
}
