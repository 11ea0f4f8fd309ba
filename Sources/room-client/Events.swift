import ClientCommandLine
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

/// The name of the kind of `error`, for `code`; `nil` if the error has none.
func codeName(of error: any Error) -> String? {
    ((error as? CommandFailure)?.cause ?? error as? any CodedError)?.codeName
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
        code = codeName(of: failure)
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

/// The session is over.
struct DisconnectedEvent: Encodable {
    var event = "disconnected"
    /// Why the session ended; `null` if this program left.
    @Nullable var error: String?
    @Nullable var code: String?
    @Nullable var serverCode: Int?

    init(_ error: RoomError?) {
        self.error = error.map { "\($0)" }
        code = error?.codeName
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

/// The pictures of a track have another size from now on.
struct DimensionsEvent: Encodable {
    var event = "trackDimensionsChanged"
    /// The track's publisher; `null` for this program's own.
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
