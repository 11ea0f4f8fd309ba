import Foundation
import RoomKit
import Wording

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

/// The publisher pauses a track or goes on.
struct TrackPauseEvent: Encodable {
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

/// A track is frozen, or no longer.
struct TrackFreezeEvent: Encodable {
    var event: String
    var participant: String
    var participantId: String
    var track: String
    /// How long the picture stood still; `null` when the freeze begins.
    @Nullable var frozenMs: Double?

    init(
        _ event: String,
        _ track: RemoteVideoTrack,
        of participant: RemoteParticipant,
        _ duration: Duration? = nil
    ) {
        self.event = event
        self.participant = participant.identity
        participantId = participant.sid
        self.track = track.name
        frozenMs = duration?.milliseconds
    }
}

/// The end of a freeze of `duration`, for people: a track that its publisher has paused shows no picture again.
func unfrozenWords(_ track: RemoteVideoTrack, after duration: Duration) -> String {
    let words = track.isEnabled ? "is no longer frozen, after %.1f s." : "was frozen for %.1f s, until it was paused."
    return "\"\(track.name)\" of \(track.publisherIdentity) " + String(format: words, duration.seconds)
}

/// The recording of a track has ended together with the track, and its files are complete.
struct RecordingEvent: Encodable {
    var event = "recordingEnded"
    var participant: String
    var track: String
    var files: [String]
    /// The last picture as PNG, or else the last of `files`.
    @Nullable var lastFile: String?
    /// With PNG, the number of pictures.
    var fileCount: Int
    var framesRecorded: Int
    var framesNotRecorded: Int

    init(_ track: RemoteVideoTrack, _ recording: RecordingStatistics) {
        participant = track.publisherIdentity
        self.track = track.name
        files = recording.files
        lastFile = recording.lastFile
        fileCount = recording.fileCount
        framesRecorded = recording.framesWritten
        framesNotRecorded = recording.framesDropped
    }

    /// The event as text for people; `nil` if there is no file, and no frame for one.
    var words: String? {
        guard !files.isEmpty || framesNotRecorded > 0 else { return nil }
        let names = files.first.map { " -> \(listed(first: $0, last: lastFile, count: fileCount))" } ?? ""
        let missing = notRecordedWords(framesNotRecorded)
        return "\(participant)/\(track): \(counted(framesRecorded, "frame"))\(missing)\(names)"
    }
}

/// The frames that a recorder left out, as a part of a sentence for people; empty for none.
func notRecordedWords(_ count: Int) -> String {
    count > 0 ? ", \(count) not recorded: the disk was too slow or full" : ""
}

/// The files of a dump, for people: one, or the first and the last of many.
func listed(first: String, last: String?, count: Int) -> String {
    guard let last, last != first else { return first }
    return "\(first) to \(last) (\(counted(count, "file")))"
}

/// The subscriber's counts, written at a fixed interval.
struct SubscriberStatus: Encodable {
    struct Track: Encodable {
        var participant: String
        var track: String
        var framesReceived: Int
        var framesDecoded: Int
        var framesRendered: Int
        var framesRepeated: Int
        var framesDropped: Int
        var framesDroppedByReason: [String: Int]
        var bytes: Int
        /// In the last second.
        var bitsPerSecond: Int
        /// In the last second.
        var framesPerSecond: Int
        @Nullable var frameWidth: Int?
        @Nullable var frameHeight: Int?
        var sizeChanges: Int
        var simulcastLayer: Int
        var freezeCount: Int
        /// In seconds.
        var totalFreezesDuration: Double
        @Nullable var sinceLastFrameMs: Double?
        /// The mean over the last five seconds.
        @Nullable var decodeMs: Double?
        var clock: String
        var clockErrorMs: Double
        /// Over the last five seconds.
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
        var framesRepeated: Int
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
        @Nullable var lastFile: String?
        @Nullable var fileCount: Int?
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
