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
