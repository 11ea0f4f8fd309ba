import FoundationEssentials

/// A signaling message from a client to the server.
package enum ClientMessage: Hashable, Sendable {
    case join(Join)
    case resume(Resume)
    case publish(Publish)
    case unpublish(Unpublish)
    case enable(Enable)
    case disable(Disable)
    case updateTrack(UpdateTrack)
    case subscribe(Subscribe)
    case unsubscribe(Unsubscribe)
    case keyframeRequest(KeyframeRequest)
    case timeSync(TimeSync)
    case leave(Leave)

    /// Reads a text message from a client, which may have any content.
    package init(reading text: String) throws(UnreadableMessage) {
        let message = try TypedJSON(text)
        switch message.type {
        case Join.type: self = .join(try message.body())
        case Resume.type: self = .resume(try message.body())
        case Publish.type: self = .publish(try message.body())
        case Unpublish.type: self = .unpublish(try message.body())
        case Enable.type: self = .enable(try message.body())
        case Disable.type: self = .disable(try message.body())
        case UpdateTrack.type: self = .updateTrack(try message.body())
        case Subscribe.type: self = .subscribe(try message.body())
        case Unsubscribe.type: self = .unsubscribe(try message.body())
        case KeyframeRequest.type: self = .keyframeRequest(try message.body())
        case TimeSync.type: self = .timeSync(try message.body())
        case Leave.type: self = .leave(try message.body())
        default: throw .unknownType(message.head)
        }
    }

    /// The message as JSON text for the wire.
    package var text: String {
        switch self {
        case .join(let body): encode(body)
        case .resume(let body): encode(body)
        case .publish(let body): encode(body)
        case .unpublish(let body): encode(body)
        case .enable(let body): encode(body)
        case .disable(let body): encode(body)
        case .updateTrack(let body): encode(body)
        case .subscribe(let body): encode(body)
        case .unsubscribe(let body): encode(body)
        case .keyframeRequest(let body): encode(body)
        case .timeSync(let body): encode(body)
        case .leave(let body): encode(body)
        }
    }
}

/// A signaling message from the server to a client.
package enum ServerMessage: Hashable, Sendable {
    case joined(Joined)
    case participantConnected(ParticipantConnected)
    case participantsComplete(ParticipantsComplete)
    case participantDisconnected(ParticipantDisconnected)
    case published(Published)
    case trackPublished(TrackPublished)
    case trackUnpublished(TrackUnpublished)
    case trackEnabled(TrackEnabled)
    case trackDisabled(TrackDisabled)
    case subscribed(Subscribed)
    case unsubscribed(Unsubscribed)
    case layersWanted(LayersWanted)
    case networkQuality(NetworkQuality)
    case trackSwitchedOff(TrackSwitchedOff)
    case trackSwitchedOn(TrackSwitchedOn)
    case keyframeRequest(KeyframeRequest)
    case timeSync(TimeSync)
    case error(ErrorMessage)
    case leave(Leave)

    /// Reads a text message from a server, which may have any content.
    package init(reading text: String) throws(UnreadableMessage) {
        let message = try TypedJSON(text)
        switch message.type {
        case Joined.type: self = .joined(try message.body())
        case ParticipantConnected.type: self = .participantConnected(try message.body())
        case ParticipantsComplete.type: self = .participantsComplete(try message.body())
        case ParticipantDisconnected.type: self = .participantDisconnected(try message.body())
        case Published.type: self = .published(try message.body())
        case TrackPublished.type: self = .trackPublished(try message.body())
        case TrackUnpublished.type: self = .trackUnpublished(try message.body())
        case TrackEnabled.type: self = .trackEnabled(try message.body())
        case TrackDisabled.type: self = .trackDisabled(try message.body())
        case Subscribed.type: self = .subscribed(try message.body())
        case Unsubscribed.type: self = .unsubscribed(try message.body())
        case LayersWanted.type: self = .layersWanted(try message.body())
        case NetworkQuality.type: self = .networkQuality(try message.body())
        case TrackSwitchedOff.type: self = .trackSwitchedOff(try message.body())
        case TrackSwitchedOn.type: self = .trackSwitchedOn(try message.body())
        case KeyframeRequest.type: self = .keyframeRequest(try message.body())
        case TimeSync.type: self = .timeSync(try message.body())
        case ErrorMessage.type: self = .error(try message.body())
        case Leave.type: self = .leave(try message.body())
        default: throw .unknownType(message.head)
        }
    }

    /// The message as JSON text for the wire.
    package var text: String {
        switch self {
        case .joined(let body): encode(body)
        case .participantConnected(let body): encode(body)
        case .participantsComplete(let body): encode(body)
        case .participantDisconnected(let body): encode(body)
        case .published(let body): encode(body)
        case .trackPublished(let body): encode(body)
        case .trackUnpublished(let body): encode(body)
        case .trackEnabled(let body): encode(body)
        case .trackDisabled(let body): encode(body)
        case .subscribed(let body): encode(body)
        case .unsubscribed(let body): encode(body)
        case .layersWanted(let body): encode(body)
        case .networkQuality(let body): encode(body)
        case .trackSwitchedOff(let body): encode(body)
        case .trackSwitchedOn(let body): encode(body)
        case .keyframeRequest(let body): encode(body)
        case .timeSync(let body): encode(body)
        case .error(let body): encode(body)
        case .leave(let body): encode(body)
        }
    }
}

/// The reason why a text message could not be read.
package enum UnreadableMessage: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not a JSON object with a `type`, or one whose fields are missing or of the wrong kind.
    case malformed(String)
    /// An object of a type that this version does not know.
    case unknownType(MessageHead)

    /// What is wrong, in one clause.
    package var description: String {
        switch self {
        case .malformed(let problem): "a message that cannot be read: \(problem)"
        case .unknownType(let head): "a message of the unknown type \"\(head.type.prefix(utf8Bytes: 64))\""
        }
    }
}

/// The fields of a message that have the same meaning in all types.
package struct MessageHead: Hashable, Sendable, Decodable {
    /// What the message is.
    package var type: String
    /// The number of the request, if it has one.
    package var requestId: Int?
    /// The track that it is about, if it names one.
    package var trackId: String?

    package init(type: String, requestId: Int? = nil, trackId: String? = nil) {
        (self.type, self.requestId, self.trackId) = (type, requestId, trackId)
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        type = try container.decode(String.self, forKey: .type)
        // In a type that is unknown they may mean anything.
        requestId = (try? container.decodeIfPresent(Int.self, forKey: .requestId)) ?? nil
        trackId = (try? container.decodeIfPresent(String.self, forKey: .trackId)) ?? nil
    }

    private enum CodingKeys: CodingKey {
        case type, requestId, trackId
    }
}

/// A message's text and its type.
private struct TypedJSON {
    let head: MessageHead
    var type: String { head.type }
    private let data: Data

    init(_ text: String) throws(UnreadableMessage) {
        guard isStreamSafe(json: text) else { throw .malformed("more than 30 combining characters in a row") }
        data = Data(text.utf8)
        do {
            head = try JSONDecoder().decode(MessageHead.self, from: data)
        } catch {
            throw .malformed(summary(of: error))
        }
    }

    func body<Body: SignalingBody>() throws(UnreadableMessage) -> Body {
        do {
            return try JSONDecoder().decode(Body.self, from: data)
        } catch {
            throw .malformed("\(Body.type): \(summary(of: error))")
        }
    }
}

/// Summarizes a decoding error in a few words, with the field that it is about.
private func summary(of error: any Error) -> String {
    func path(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
        (context.codingPath + [key].compactMap(\.self)).map(\.stringValue).joined(separator: ".")
    }
    guard let error = error as? DecodingError else { return "not JSON" }
    switch error {
    case .keyNotFound(let key, let context): return "\"\(path(context, key).prefix(utf8Bytes: 64))\" is missing"
    case .typeMismatch(_, let context) where context.codingPath.isEmpty: return "not a JSON object"
    case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
        return "\"\(path(context).prefix(utf8Bytes: 64))\" must be \(kind(of: type))"
    // The decoder does not distinguish the two causes, nor does it name the field.
    default: return "not JSON, or a number that its field cannot hold"
    }
}

/// What a field of the type `type` holds in JSON, in words.
private func kind(of type: any Any.Type) -> String {
    switch type {
    case is String.Type: "a text"
    case is Bool.Type: "true or false"
    case is any BinaryInteger.Type: "a whole number"
    case is any BinaryFloatingPoint.Type: "a number"
    // The decoder names its own types for these two, and a type of ours for a value that is null.
    case is [Any].Type: "a list"
    case is any ExpressibleByArrayLiteral.Type: "a list"
    default: "an object"
    }
}

/// Encodes a body's fields together with its type.
private struct Envelope<Body: SignalingBody>: Encodable {
    private enum Key: CodingKey { case type }

    let body: Body

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(Body.type, forKey: .type)
        try body.encode(to: encoder)
    }
}

private func encode(_ body: some SignalingBody) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
        return String(decoding: try encoder.encode(Envelope(body: body)), as: UTF8.self)
    } catch {
        // Only a number that JSON cannot express leads here, and none of ours is infinite or NaN.
        preconditionFailure("\(body) cannot be encoded: \(error)")
    }
}
