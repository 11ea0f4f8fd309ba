// The messages from a client to the server; `SignalingMessage.swift` reads and writes them.

/// The first message of a session.
package struct Join: SignalingBody {
    package static let type = "join"
    /// The protocol version that the client speaks.
    package var version: Int
    package var room: String
    package var identity: String
    package var token: String?
    /// The machine's boot id, so that a client on the server's machine knows that they share a clock.
    package var bootId: String?
    /// Whether the server subscribes the client to every track as it is published; `nil` means yes.
    package var automaticSubscription: Bool?
    /// Program and version of the client, for the server's log.
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

/// Asks to continue a session that lost its connection.
package struct Resume: SignalingBody {
    package static let type = "resume"
    package var version: Int
    package var resumeToken: String
    /// A number that an error repeats.
    package var requestId: Int?

    package init(version: Int = WireFormat.version, resumeToken: String, requestId: Int? = nil) {
        self.version = version
        self.resumeToken = resumeToken
        self.requestId = requestId
    }
}

/// Announces a track.
package struct Publish: SignalingBody {
    package static let type = "publish"
    /// A number chosen by the client, which the answer repeats.
    package var requestId: Int
    package var name: String
    package var kind: String
    package var source: String
    /// The codec; video requires it and the fields below, and another medium may leave them out.
    package var codec: String?
    /// The largest width that will be sent, in pixels.
    package var width: Int?
    /// The largest height that will be sent, in rows.
    package var height: Int?
    /// The highest rate that will be sent, in frames per second.
    package var frameRate: Double?
    /// The separate encodings that can be sent, by ascending number; `nil` means one, number 0.
    package var simulcastLayers: [SimulcastLayer]?

    package init(
        requestId: Int,
        name: String,
        kind: String = TrackKind.video,
        source: String,
        codec: String?,
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
        simulcastLayers: [SimulcastLayer]? = nil
    ) {
        self.requestId = requestId
        self.name = name
        self.kind = kind
        self.source = source
        self.codec = codec
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.simulcastLayers = simulcastLayers
    }
}

/// Withdraws a track.
package struct Unpublish: SignalingBody {
    package static let type = "unpublish"
    package var trackId: String
    /// A number that an error repeats.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}

/// Says that the publisher of a track sends again.
package struct Enable: SignalingBody {
    package static let type = "enable"
    package var trackId: String
    /// A number that an error repeats.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}

/// Says that the publisher of a track pauses it.
package struct Disable: SignalingBody {
    package static let type = "disable"
    package var trackId: String
    /// A number that an error repeats.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}

/// Announces what has changed of a track's properties; what is `nil` has not.
package struct UpdateTrack: SignalingBody {
    package static let type = "updateTrack"
    package var trackId: String
    /// The frame rate, in frames per second.
    package var frameRate: Double?
    /// The highest bit rate of each of several encodings, in bits per second, in order of their numbers.
    package var bitrates: [Int]?
    /// The largest size of each of several encodings, in order of their numbers.
    package var sizes: [PictureSize]?
    /// A number that an error repeats.
    package var requestId: Int?

    package init(
        trackId: String,
        frameRate: Double? = nil,
        bitrates: [Int]? = nil,
        sizes: [PictureSize]? = nil,
        requestId: Int? = nil
    ) {
        self.trackId = trackId
        self.frameRate = frameRate
        self.bitrates = bitrates
        self.sizes = sizes
        self.requestId = requestId
    }
}

/// Asks for a track, or changes what is wanted of a subscribed one.
package struct Subscribe: SignalingBody {
    package static let type = "subscribe"
    package var trackId: String
    /// The width at which the track is shown, in pixels.
    package var width: Int?
    package var height: Int?
    /// The highest useful rate, in frames per second.
    package var frameRate: Double?
    /// `low`, `standard` or `high`.
    package var priority: String?
    /// Whether to keep the subscription without receiving packets; `nil` means no.
    package var paused: Bool?
    /// A number that the answer repeats.
    package var requestId: Int?

    package init(
        trackId: String,
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
        priority: String? = nil,
        paused: Bool? = nil,
        requestId: Int? = nil
    ) {
        self.trackId = trackId
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.priority = priority
        self.paused = paused
        self.requestId = requestId
    }
}

/// Ends the subscription to a track.
package struct Unsubscribe: SignalingBody {
    package static let type = "unsubscribe"
    package var trackId: String
    /// A number that the answer repeats.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}
