import Foundation
import RoomKit

/// The JSON objects of `--json`; their keys are stable, and are present even without a value.

/// A value that is written as `null` if there is none.
@propertyWrapper
struct Nullable<Value: Encodable>: Encodable {
    var wrappedValue: Value?

    func encode(to encoder: any Encoder) throws {
        try wrappedValue.encode(to: encoder)
    }
}

extension Nullable: Sendable where Value: Sendable {}

/// An event with the time at which it is written.
struct TimedEvent<Event: Encodable>: Encodable {
    var event: Event
    /// The time in UTC, in the format of RFC 3339, to the millisecond.
    var time = Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))

    private enum Key: CodingKey { case time }

    func encode(to encoder: any Encoder) throws {
        try event.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(time, forKey: .time)
    }
}

/// A failure, whether or not the program continues.
struct FailureEvent: Encodable {
    var event = "failure"
    /// What happened and what to do about it.
    var error: String
    /// The kind of failure, if it has a stable name.
    @Nullable var code: String?
    /// The number that the server gave as its reason.
    @Nullable var serverCode: Int?
    @Nullable var participant: String?
    @Nullable var participantId: String?
    @Nullable var track: String?

    /// The failure as text for people.
    var sentence: String

    private enum CodingKeys: CodingKey {
        case event, error, code, serverCode, participant, participantId, track
    }

    /// Creates a failure that a sentence describes.
    init(_ sentence: String) {
        error = sentence
        self.sentence = sentence
    }

    /// Creates a failure with the code of an error.
    init(_ failure: any Error) {
        self.init("\(failure)")
        code = (failure as? RoomError)?.code.description
        serverCode = (failure as? RoomError)?.serverCode
    }

    /// Creates the failure of a remote track that cannot be received.
    init(_ failure: RoomError, _ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        self.init(failure)
        self.participant = participant.identity
        participantId = participant.sid
        self.track = track.name
        sentence = "\"\(track.name)\" of \(participant.identity) is not received. \(failure)"
    }

    /// Creates the failure of a local track that delivers nothing.
    init(_ failure: any Error, _ track: LocalVideoTrack) {
        self.init(failure)
        self.track = track.name
    }
}

/// Something that happened to the source of a local track, which goes on.
struct SourceEvent: Encodable {
    /// `interrupted`, `interruptionEnded` or `warning`.
    var event: String
    var track: String
    /// What happened and what to do about it; `null` for `interruptionEnded`.
    @Nullable var error: String?
    /// The kind of cause, if it has a stable name.
    @Nullable var code: String?

    init(_ event: String, of track: LocalVideoTrack, _ error: (any Error)? = nil) {
        self.event = event
        self.track = track.name
        self.error = error.map { "\($0)" }
        code = (error as? CameraError)?.code.name
    }
}

/// The session is over.
struct DisconnectedEvent: Encodable {
    var event = "disconnected"
    /// Why the session ended; `null` if this program left.
    @Nullable var error: String?
    @Nullable var code: String?
    @Nullable var serverCode: Int?

    init(_ error: RoomError?) {
        self.error = error.map { "\($0)" }
        code = error?.code.description
        serverCode = error?.serverCode
    }
}

struct ConnectedEvent: Encodable {
    var event = "connected"
    var room: String
    /// This program's identity.
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
    /// The participant's identity, as in all events.
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

/// A track's subscription that begins or ends.
struct TrackEvent: Encodable {
    var event: String
    var participant: String
    var participantId: String
    var track: String
    /// The size that the publisher announced.
    var width: Int
    var height: Int

    init(_ event: String, _ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        self.event = event
        self.participant = participant.identity
        participantId = participant.sid
        self.track = track.name
        width = track.publishedDimensions.width
        height = track.publishedDimensions.height
    }
}

/// The pictures of a track have another size from now on.
struct DimensionsEvent: Encodable {
    var event = "trackDimensionsChanged"
    /// Who publishes the track; `null` for this program's own.
    @Nullable var participant: String? = nil
    @Nullable var participantId: String? = nil
    var track: String
    var width: Int
    var height: Int

    init(_ track: RemoteVideoTrack, of participant: RemoteParticipant, _ size: Dimensions) {
        (self.track, width, height) = (track.name, size.width, size.height)
        self.participant = participant.identity
        participantId = participant.sid
    }

    init(_ track: LocalVideoTrack, _ size: Dimensions) {
        (self.track, width, height) = (track.name, size.width, size.height)
    }
}

/// The server stops or goes on sending a track.
struct TrackSwitchEvent: Encodable {
    var event: String
    var participant: String
    var participantId: String
    var track: String
    /// Why nothing is sent; `null` when the track is sent again.
    @Nullable var reason: String?

    init(
        _ event: String,
        _ track: RemoteVideoTrack,
        of participant: RemoteParticipant,
        _ reason: TrackSwitchOffReason? = nil
    ) {
        self.event = event
        self.participant = participant.identity
        participantId = participant.sid
        self.track = track.name
        self.reason = reason?.rawValue
    }
}

/// A participant's network carries its media better or worse than before.
struct NetworkQualityEvent: Encodable {
    var event = "networkQualityChanged"
    var participant: String
    var participantId: String
    /// From 0 (broken) to 5 (excellent).
    var level: Int

    init(_ participant: any Participant, _ level: NetworkQualityLevel) {
        self.participant = participant.identity
        participantId = participant.sid
        self.level = level.rawValue
    }
}

/// The recording of a track has ended together with the track, and its files are complete.
struct RecordingEvent: Encodable {
    var event = "recordingEnded"
    var participant: String
    var track: String
    var files: [String]
    var framesRecorded: Int
    var framesNotRecorded: Int

    init(_ track: RemoteVideoTrack, _ recording: RecordingStatistics) {
        participant = track.publisherIdentity
        self.track = track.name
        files = recording.files
        framesRecorded = recording.framesWritten
        framesNotRecorded = recording.framesDropped
    }

    /// The event as text for people; `nil` if there is no file.
    var words: String? {
        guard !files.isEmpty else { return nil }
        return "\(participant)/\(track): \(counted(framesRecorded, "frame")) -> \(files.joined(separator: ", "))"
    }
}

/// The subscriber's counts, written at a fixed interval.
struct SubscriberStatus: Encodable {
    struct Track: Encodable {
        var participant: String
        var track: String
        var framesReceived: Int
        var framesDecoded: Int
        var framesRendered: Int
        var framesDropped: Int
        var framesDroppedByReason: [String: Int]
        var bytes: Int
        /// Of the last second.
        var bitsPerSecond: Int
        /// Of the last second.
        var framesPerSecond: Int
        @Nullable var frameWidth: Int?
        @Nullable var frameHeight: Int?
        var sizeChanges: Int
        var simulcastLayer: Int
        var freezeCount: Int
        /// In seconds.
        var totalFreezesDuration: Double
        @Nullable var sinceLastFrameMs: Double?
        /// The mean of the last five seconds.
        @Nullable var decodeMs: Double?
        var clock: String
        var clockErrorMs: Double
        /// Of the last five seconds.
        @Nullable var frameAgeMs: RecentAge?
    }

    struct RecentAge: Encodable {
        var last: Double
        var p50: Double
        var p95: Double
    }

    var event = "status"
    /// The seconds between two of these lines.
    var interval: Double
    var tracks: [Track]
}

struct SubscriberSummary: Encodable {
    struct Track: Encodable, Sendable {
        var participant: String
        var track: String
        var framesReceived: Int
        var framesDecoded: Int
        var framesRendered: Int
        var framesDropped: Int
        var framesDroppedByReason: [String: Int]
        var keyframes: Int
        var bytes: Int
        @Nullable var frameWidth: Int?
        @Nullable var frameHeight: Int?
        var sizeChanges: Int
        var freezeCount: Int
        /// In seconds.
        var totalFreezesDuration: Double
        /// In seconds.
        var totalDecodeTime: Double
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
    /// The number of earlier tracks that are not listed in `tracks`.
    var tracksOmitted = 0
}
