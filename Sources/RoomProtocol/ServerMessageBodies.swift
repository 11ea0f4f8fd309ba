// What the server says to a client; `SignalingMessage.swift` reads and writes it.

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
    /// Whether more participants follow, up to `participantsComplete`.
    package var moreParticipants: Bool?
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
        moreParticipants: Bool? = nil,
        serverTime: Int64,
        bootId: String?,
        server: String
    ) {
        self.version = version
        self.room = room
        self.participant = participant
        self.participants = participants
        self.moreParticipants = moreParticipants
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

/// Ends the participants that did not fit into `joined`.
package struct ParticipantsComplete: SignalingBody {
    package static let type = "participantsComplete"

    package init() {}
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
    /// The separate encoding that comes first, to which alone `catchUpThrough` applies; 0 if left out.
    package var simulcastLayer: Int?
    /// The last frame number of the cached frames that come first: to be decoded, not shown.
    package var catchUpThrough: UInt32?
    /// Whether the subscription is paused: no packets follow until it is asked for again.
    package var paused: Bool?
    /// That of the `subscribe` that this answers.
    package var requestId: Int?

    package init(
        trackId: String,
        alias: UInt32,
        simulcastLayer: Int? = nil,
        catchUpThrough: UInt32?,
        paused: Bool? = nil,
        requestId: Int? = nil
    ) {
        self.trackId = trackId
        self.alias = alias
        self.simulcastLayer = simulcastLayer
        self.catchUpThrough = catchUpThrough
        self.paused = paused
        self.requestId = requestId
    }
}

/// The answer to `unsubscribe`.
package struct Unsubscribed: SignalingBody {
    package static let type = "unsubscribed"
    package var trackId: String
    /// That of the `unsubscribe` that this answers.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}

/// A separate encoding that somebody receives, and the most that anybody can use of it.
package struct WantedLayer: Codable, Hashable, Sendable {
    /// The encoding's number.
    package var simulcastLayer: Int
    /// The highest useful rate, in bits per second; as high as the publisher likes if left out.
    package var bitrate: Int?
    /// The largest useful width, in pixels.
    package var width: Int?
    /// The largest useful height, in rows.
    package var height: Int?
    /// The highest useful rate, in frames per second.
    package var frameRate: Double?
    /// How many temporal layers somebody makes use of.
    package var temporalLayers: Int?

    package init(
        simulcastLayer: Int,
        bitrate: Int? = nil,
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
        temporalLayers: Int? = nil
    ) {
        self.simulcastLayer = simulcastLayer
        self.bitrate = bitrate
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.temporalLayers = temporalLayers
    }
}

/// Tells a publisher which separate encodings somebody receives; none: it need not encode.
package struct LayersWanted: SignalingBody {
    package static let type = "layersWanted"
    package var trackId: String
    /// One entry for each encoding that somebody receives, by ascending number.
    package var layers: [WantedLayer]

    package init(trackId: String, layers: [WantedLayer]) {
        self.trackId = trackId
        self.layers = layers
    }

    /// The encodings of the given numbers, without a bound on any.
    package init(trackId: String, simulcastLayers: [Int]) {
        self.init(trackId: trackId, layers: simulcastLayers.map { WantedLayer(simulcastLayer: $0) })
    }

    /// The numbers of the encodings.
    package var simulcastLayers: [Int] { layers.map(\.simulcastLayer) }
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
    /// That of the request that was refused, where it had one.
    package var requestId: Int?
    /// The track that the refused request was about, where it was about one.
    package var trackId: String?

    package init(
        _ code: RoomErrorCode,
        _ message: String,
        fatal: Bool,
        requestId: Int? = nil,
        trackId: String? = nil
    ) {
        self.code = code.rawValue
        self.name = code.name
        self.message = message
        self.fatal = fatal
        self.requestId = requestId
        self.trackId = trackId
    }

    /// The sentence, with the code's number and name.
    package var description: String { "\(message) (\(code) \(name))" }
}
