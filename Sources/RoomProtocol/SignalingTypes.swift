package import MediaCore

/// A track as announced in a room.
package struct TrackInfo: Codable, Hashable, Sendable {
    /// The server's id, `TR…`.
    package var id: String
    /// The short number in the track's media packets, valid on the connection that brought it.
    package var alias: UInt32
    /// What the publisher calls it.
    package var name: String
    /// The medium: `TrackKind.video`; clients pass over kinds that they do not know.
    package var kind: String
    /// What it shows: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    package var source: String
    /// How the frames are compressed, as `VideoCodec.vp8`; always there for video.
    package var codec: String?
    /// Pixels in a row, as published, which every video track has; frames may be smaller.
    package var width: Int?
    /// Rows, as published, which every video track has.
    package var height: Int?
    /// Frames per second, as published, which every video track has.
    package var frameRate: Double?
    /// Whether the publisher sends at present.
    package var enabled: Bool

    package init(
        id: String,
        alias: UInt32,
        name: String,
        kind: String = TrackKind.video,
        source: String,
        codec: String? = VideoCodec.vp8,
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
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

/// What a video track says of its pictures.
package struct VideoDescription: Hashable, Sendable {
    /// How the frames are compressed, as `VideoCodec.vp8`.
    package var codec: String
    /// The largest size that is sent.
    package var dimensions: Dimensions
    /// The highest rate that is sent, in frames per second.
    package var frameRate: Double

    package init(codec: String, dimensions: Dimensions, frameRate: Double) {
        self.codec = codec
        self.dimensions = dimensions
        self.frameRate = frameRate
    }
}

extension TrackInfo {
    /// The description of a video track; `nil` for another medium, and for a video track that lacks a field.
    package var video: VideoDescription? {
        guard kind == TrackKind.video, let codec, let width, let height, let frameRate else { return nil }
        let dimensions = Dimensions(width: width, height: height)
        return VideoDescription(codec: codec, dimensions: dimensions, frameRate: frameRate)
    }
}

/// The values of a track's `kind` that this version knows; there may be others on the wire.
package enum TrackKind {
    /// Pictures.
    package static let video = "video"
}

/// The values of a video track's `codec` that this version knows; there may be others on the wire.
package enum VideoCodec {
    /// VP8 (RFC 6386).
    package static let vp8 = "vp8"
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
    /// From the server: where to come back to.
    package var url: String?

    package init(reason: String, reconnect: Bool? = nil, url: String? = nil) {
        self.reason = reason
        self.reconnect = reconnect
        self.url = url
    }
}

/// Asks for a keyframe of a track; from the server, asks the track's publisher.
package struct KeyframeRequest: SignalingBody {
    package static let type = "keyframeRequest"
    package var trackId: String
    /// The separate encoding; all if it is left out.
    package var simulcastLayer: Int?
    /// From a client: comes back in an error.
    package var requestId: Int?

    package init(trackId: String, simulcastLayer: Int? = nil, requestId: Int? = nil) {
        self.trackId = trackId
        self.simulcastLayer = simulcastLayer
        self.requestId = requestId
    }
}
