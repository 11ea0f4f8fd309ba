/// A track as announced in a room.
package struct TrackInfo: Codable, Hashable, Sendable {
    /// The server's id, `TR…`.
    package var id: String
    /// The short number in the track's media packets.
    package var alias: UInt32
    /// What the publisher calls it.
    package var name: String
    /// `video`; others are passed over.
    package var kind: String
    /// What it shows: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    package var source: String
    /// `vp8`.
    package var codec: String
    /// Pixels in a row, as published; frames may be smaller.
    package var width: Int
    /// Rows, as published.
    package var height: Int
    /// Frames per second, as published.
    package var frameRate: Double
    /// Whether the publisher sends at present.
    package var enabled: Bool

    package init(
        id: String,
        alias: UInt32,
        name: String,
        kind: String = "video",
        source: String,
        codec: String = "vp8",
        width: Int,
        height: Int,
        frameRate: Double,
        enabled: Bool = true
    ) {
        self.id = id
        self.alias = alias
        self.name = name
        self.kind = kind
        self.source = source
        self.codec = codec
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.enabled = enabled
    }
}

/// A participant as others see it.
package struct ParticipantInfo: Codable, Hashable, Sendable {
    /// The server's id, `PA…`.
    package var id: String
    /// The name it joined under, unique in the room.
    package var identity: String
    /// What it has published.
    package var tracks: [TrackInfo]

    package init(id: String, identity: String, tracks: [TrackInfo]) {
        self.id = id
        self.identity = identity
        self.tracks = tracks
    }
}

/// The body of one type of signaling message: a JSON object whose `type` is `Self.type`.
package protocol SignalingBody: Codable, Hashable, Sendable {
    /// The value of the message's `type`.
    static var type: String { get }
}

// MARK: Both ways

/// Asks for, or tells, the server's time.
package struct TimeSync: SignalingBody {
    package static let type = "timeSync"
    /// The asker's clock, in microseconds; sent back as it came.
    package var clientTime: Int64
    /// Room time at the answer, in microseconds.
    package var serverTime: Int64?

    package init(clientTime: Int64, serverTime: Int64? = nil) {
        self.clientTime = clientTime
        self.serverTime = serverTime
    }
}

/// Ends a session.
package struct Leave: SignalingBody {
    package static let type = "leave"
    /// Why, in a word or a sentence.
    package var reason: String
    /// From the server: whether to come back.
    package var reconnect: Bool?

    package init(reason: String, reconnect: Bool? = nil) {
        self.reason = reason
        self.reconnect = reconnect
    }
}

/// Asks for a keyframe of a track; from the server, asks the track's publisher.
package struct KeyframeRequest: SignalingBody {
    package static let type = "keyframeRequest"
    package var trackId: String
    /// The separate encoding; all if it is left out.
    package var simulcastLayer: Int?

    package init(trackId: String, simulcastLayer: Int? = nil) {
        self.trackId = trackId
        self.simulcastLayer = simulcastLayer
    }
}

// MARK: From client to server

/// The first message of a session.
package struct Join: SignalingBody {
    package static let type = "join"
    /// The protocol version that the client speaks.
    package var version: Int
    package var room: String
    package var identity: String
    package var token: String?
    /// The machine's boot id, so that a client beside the server knows that they share a clock.
    package var bootId: String?
    /// Whether every track is subscribed to as it is published; so if left out.
    package var automaticSubscription: Bool?
    /// Program and version, for the server's log.
    package var client: String?

    package init(
        version: Int = WireFormat.version,
        room: String,
        identity: String,
        token: String? = nil,
        bootId: String? = nil,
        automaticSubscription: Bool? = nil,
        client: String? = nil
    ) {
        self.version = version
        self.room = room
        self.identity = identity
        self.token = token
        self.bootId = bootId
        self.automaticSubscription = automaticSubscription
        self.client = client
    }
}

/// Asks to go on with a session that lost its connection.
package struct Resume: SignalingBody {
    package static let type = "resume"
    package var version: Int
    package var resumeToken: String

    package init(version: Int = WireFormat.version, resumeToken: String) {
        self.version = version
        self.resumeToken = resumeToken
    }
}

/// Announces a track.
package struct Publish: SignalingBody {
    package static let type = "publish"
    /// Chosen by the client; comes back in the answer.
    package var requestId: Int
    package var name: String
    package var kind: String
    package var source: String
    package var codec: String
    package var width: Int
    package var height: Int
    package var frameRate: Double

    package init(
        requestId: Int,
        name: String,
        kind: String = "video",
        source: String,
        codec: String = "vp8",
        width: Int,
        height: Int,
        frameRate: Double
    ) {
        self.requestId = requestId
        self.name = name
        self.kind = kind
        self.source = source
        self.codec = codec
        self.width = width
        self.height = height
        self.frameRate = frameRate
    }
}

/// Withdraws a track.
package struct Unpublish: SignalingBody {
    package static let type = "unpublish"
    package var trackId: String

    package init(trackId: String) {
        self.trackId = trackId
    }
}

/// Says that a track's publisher sends again.
package struct Enable: SignalingBody {
    package static let type = "enable"
    package var trackId: String

    package init(trackId: String) {
        self.trackId = trackId
    }
}

/// Says that a track's publisher pauses.
package struct Disable: SignalingBody {
    package static let type = "disable"
    package var trackId: String

    package init(trackId: String) {
        self.trackId = trackId
    }
}

/// Asks for a track, or changes what is wanted of it.
package struct Subscribe: SignalingBody {
    package static let type = "subscribe"
    package var trackId: String
    /// The size at which the track is shown, in pixels.
    package var width: Int?
    package var height: Int?
    /// The highest useful rate, in frames per second.
    package var frameRate: Double?
    /// `low`, `standard` or `high`.
    package var priority: String?

    package init(trackId: String) {
        self.trackId = trackId
    }
}

/// Wants a track no longer.
package struct Unsubscribe: SignalingBody {
    package static let type = "unsubscribe"
    package var trackId: String

    package init(trackId: String) {
        self.trackId = trackId
    }
}

// MARK: From server to client

/// The answer to `join`.
package struct Joined: SignalingBody {
    /// A room.
    package struct RoomInfo: Codable, Hashable, Sendable {
        /// The server's id, `RM…`.
        package var id: String
        package var name: String

        package init(id: String, name: String) {
            self.id = id
            self.name = name
        }
    }

    package static let type = "joined"
    /// The protocol version of the session.
    package var version: Int
    package var room: RoomInfo
    /// The joining participant itself.
    package var participant: ParticipantInfo
    /// The others; those that do not fit into one message follow, each as `participantConnected`.
    package var participants: [ParticipantInfo]
    /// Room time at the answer, in microseconds.
    package var serverTime: Int64
    /// The boot id of the server's machine.
    package var bootId: String?
    /// For `resume`, where the server has it.
    package var resumeToken: String?
    /// Program and version.
    package var server: String

    package init(
        version: Int = WireFormat.version,
        room: RoomInfo,
        participant: ParticipantInfo,
        participants: [ParticipantInfo],
        serverTime: Int64,
        bootId: String?,
        server: String
    ) {
        self.version = version
        self.room = room
        self.participant = participant
        self.participants = participants
        self.serverTime = serverTime
        self.bootId = bootId
        self.server = server
    }
}

/// Somebody joined, or was in the room already and did not fit into `joined` any more.
package struct ParticipantConnected: SignalingBody {
    package static let type = "participantConnected"
    package var participant: ParticipantInfo

    package init(participant: ParticipantInfo) {
        self.participant = participant
    }
}

/// Somebody left; the participant's tracks are gone with it.
package struct ParticipantDisconnected: SignalingBody {
    package static let type = "participantDisconnected"
    package var participantId: String

    package init(participantId: String) {
        self.participantId = participantId
    }
}

/// The answer to `publish`.
package struct Published: SignalingBody {
    package static let type = "published"
    package var requestId: Int
    package var track: TrackInfo

    package init(requestId: Int, track: TrackInfo) {
        self.requestId = requestId
        self.track = track
    }
}

/// Somebody else published a track.
package struct TrackPublished: SignalingBody {
    package static let type = "trackPublished"
    package var participantId: String
    package var track: TrackInfo

    package init(participantId: String, track: TrackInfo) {
        self.participantId = participantId
        self.track = track
    }
}

/// Somebody else withdrew a track.
package struct TrackUnpublished: SignalingBody {
    package static let type = "trackUnpublished"
    package var participantId: String
    package var trackId: String

    package init(participantId: String, trackId: String) {
        self.participantId = participantId
        self.trackId = trackId
    }
}

/// Somebody else's track is sent again.
package struct TrackEnabled: SignalingBody {
    package static let type = "trackEnabled"
    package var participantId: String
    package var trackId: String

    package init(participantId: String, trackId: String) {
        self.participantId = participantId
        self.trackId = trackId
    }
}

/// Somebody else's track is paused.
package struct TrackDisabled: SignalingBody {
    package static let type = "trackDisabled"
    package var participantId: String
    package var trackId: String

    package init(participantId: String, trackId: String) {
        self.participantId = participantId
        self.trackId = trackId
    }
}

/// The answer to `subscribe`, also to one that the server made by itself.
package struct Subscribed: SignalingBody {
    package static let type = "subscribed"
    package var trackId: String
    package var alias: UInt32
    /// The last frame number of the cached frames that come first: to be decoded, not shown.
    package var catchUpThrough: UInt32?

    package init(trackId: String, alias: UInt32, catchUpThrough: UInt32?) {
        self.trackId = trackId
        self.alias = alias
        self.catchUpThrough = catchUpThrough
    }
}

/// The answer to `unsubscribe`.
package struct Unsubscribed: SignalingBody {
    package static let type = "unsubscribed"
    package var trackId: String

    package init(trackId: String) {
        self.trackId = trackId
    }
}

/// Tells a publisher which separate encodings somebody receives; none: it need not encode.
package struct LayersWanted: SignalingBody {
    package static let type = "layersWanted"
    package var trackId: String
    package var simulcastLayers: [Int]

    package init(trackId: String, simulcastLayers: [Int]) {
        self.trackId = trackId
        self.simulcastLayers = simulcastLayers
    }
}

/// A request that was refused, or the reason for which the server ends the session.
package struct ErrorMessage: SignalingBody, Error, CustomStringConvertible {
    package static let type = "error"
    /// A `RoomErrorCode`.
    package var code: Int
    /// The code's name.
    package var name: String
    /// A sentence for people.
    package var message: String
    /// Whether the connection ends with it.
    package var fatal: Bool
    /// The request that was refused, where it had one.
    package var requestId: Int?

    package init(_ code: RoomErrorCode, _ message: String, fatal: Bool, requestId: Int? = nil) {
        self.code = code.rawValue
        self.name = code.name
        self.message = message
        self.fatal = fatal
        self.requestId = requestId
    }

    /// The sentence, with the code's number and name.
    package var description: String { "\(message) (\(code) \(name))" }
}
