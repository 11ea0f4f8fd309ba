package import MediaCore

/// A track as announced in a room.
package struct TrackInfo: Codable, Hashable, Sendable {
    /// The server's id, `TR…`.
    package var id: String
    /// The short number in the track's media packets, valid only on the connection that carried this description.
    package var alias: UInt32
    /// The name that the publisher gave it.
    package var name: String
    /// The medium: `TrackKind.video`; clients ignore kinds that they do not know.
    package var kind: String
    /// What the track shows: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    package var source: String
    /// The codec, such as `VideoCodec.vp8`; every video track has one.
    package var codec: String?
    /// The published width, in pixels, which every video track has; frames may be smaller.
    package var width: Int?
    /// The published height, in rows, which every video track has.
    package var height: Int?
    /// The published rate, in frames per second, which every video track has.
    package var frameRate: Double?
    /// The separate encodings that the publisher can make, by ascending number; `nil` means one, number 0.
    package var simulcastLayers: [SimulcastLayer]?
    /// Whether the publisher currently sends the track.
    package var enabled: Bool

    package init(
        id: String,
        alias: UInt32,
        name: String,
        kind: String = TrackKind.video,
        source: String,
        codec: String?,
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
        simulcastLayers: [SimulcastLayer]? = nil,
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
        self.simulcastLayers = simulcastLayers
        self.enabled = enabled
    }
}

/// One of the separate encodings of a track, as its publisher announces it.
package struct SimulcastLayer: Codable, Hashable, Sendable {
    /// The encoding's number: 0 for the smallest, then one more for each larger one.
    package var simulcastLayer: Int
    /// The largest width of an upright picture that will be sent, in pixels.
    package var width: Int
    /// The largest height of an upright picture that will be sent, in rows.
    package var height: Int
    /// The highest bit rate that will be sent, in bits per second; `nil` if the publisher does not say.
    package var bitrate: Int?

    package init(simulcastLayer: Int, width: Int, height: Int, bitrate: Int? = nil) {
        self.simulcastLayer = simulcastLayer
        self.width = width
        self.height = height
        self.bitrate = bitrate
    }

    /// The largest size of an upright picture.
    package var size: PictureSize { PictureSize(width: width, height: height) }
}

/// The size of an upright picture.
package struct PictureSize: Codable, Hashable, Sendable {
    /// In pixels.
    package var width: Int
    /// In rows.
    package var height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}

/// The description of a video track's pictures.
package struct VideoDescription: Hashable, Sendable {
    /// The codec, such as `VideoCodec.vp8`.
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

    /// Every codec whose tracks a server accepts.
    package static let all = [vp8]
}

/// A participant as others see it.
package struct ParticipantInfo: Codable, Hashable, Sendable {
    /// The server's id, `PA…`.
    package var id: String
    /// The name that it joined with, unique in the room.
    package var identity: String
    /// The tracks that it has published.
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

/// Asks for the server's time, or answers with it.
package struct TimeSync: SignalingBody {
    package static let type = "timeSync"
    /// The asker's clock, in microseconds; the answer repeats it unchanged.
    package var clientTime: Int64
    /// The room time of the answer, in microseconds.
    package var serverTime: Int64?
    /// A number that the answer repeats.
    package var requestId: Int?

    package init(clientTime: Int64, serverTime: Int64? = nil, requestId: Int? = nil) {
        self.clientTime = clientTime
        self.serverTime = serverTime
        self.requestId = requestId
    }
}

/// Ends a session.
package struct Leave: SignalingBody {
    package static let type = "leave"
    /// The reason, in a word or a sentence.
    package var reason: String
    /// From the server: whether the client should come back.
    package var reconnect: Bool?
    /// From the server: the URL to come back to.
    package var url: String?

    package init(reason: String, reconnect: Bool? = nil, url: String? = nil) {
        self.reason = reason
        self.reconnect = reconnect
        self.url = url
    }
}

/// Asks for a keyframe of a track; the server sends it to the track's publisher.
package struct KeyframeRequest: SignalingBody {
    package static let type = "keyframeRequest"
    package var trackId: String
    /// The simulcast layer that is meant, from the server; `nil` means all.
    package var simulcastLayer: Int?
    /// From a client: whether what comes before the keyframe is left out, because it cannot be decoded; `nil` means yes.
    package var skip: Bool?
    /// From a client: a number that an error repeats.
    package var requestId: Int?

    package init(trackId: String, simulcastLayer: Int? = nil, skip: Bool? = nil, requestId: Int? = nil) {
        self.trackId = trackId
        self.simulcastLayer = simulcastLayer
        self.skip = skip
        self.requestId = requestId
    }
}
