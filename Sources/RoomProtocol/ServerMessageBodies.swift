// The messages from the server to a client; `SignalingMessage.swift` reads and writes them.

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
    /// The participant that joined.
    package var participant: ParticipantInfo
    /// The other participants; those that do not fit into one message follow as `participantConnected`.
    package var participants: [ParticipantInfo]
    /// Whether more participants follow, until `participantsComplete`.
    package var moreParticipants: Bool?
    /// The room time of the answer, in microseconds.
    package var serverTime: Int64
    /// The boot id of the server's machine.
    package var bootId: String?
    /// The token for `resume`, if the server supports it.
    package var resumeToken: String?
    /// Program and version of the server.
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

/// Somebody joined, or was in the room already but did not fit into `joined`.
package struct ParticipantConnected: SignalingBody {
    package static let type = "participantConnected"
    package var participant: ParticipantInfo

    package init(participant: ParticipantInfo) {
        self.participant = participant
    }
}

/// Marks the end of the participants that did not fit into `joined`.
package struct ParticipantsComplete: SignalingBody {
    package static let type = "participantsComplete"

    package init() {}
}

/// Somebody left; the participant's tracks are withdrawn with it.
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

/// Somebody else's track is being sent again.
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

/// The answer to `subscribe`; the server also sends it when it subscribes the client by itself.
package struct Subscribed: SignalingBody {
    package static let type = "subscribed"
    package var trackId: String
    package var alias: UInt32
    /// The simulcast layer that is sent first, to which alone `catchUpThrough` applies; `nil` means 0.
    package var simulcastLayer: Int?
    /// The last frame number of the cached frames that are sent first: decode these frames, but do not show them.
    package var catchUpThrough: UInt32?
    /// Whether the subscription is paused: no packets follow until the client subscribes to the track again.
    package var paused: Bool?
    /// The number of the `subscribe` that this answers.
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
    /// The number of the `unsubscribe` that this answers.
    package var requestId: Int?

    package init(trackId: String, requestId: Int? = nil) {
        self.trackId = trackId
        self.requestId = requestId
    }
}

/// A simulcast layer that somebody receives, and the most of it that anybody can use.
package struct WantedLayer: Codable, Hashable, Sendable {
    /// The simulcast layer's number.
    package var simulcastLayer: Int
    /// The highest useful bit rate, in bits per second; `nil` leaves it to the publisher.
    package var bitrate: Int?
    /// The largest useful width, in pixels.
    package var width: Int?
    /// The largest useful height, in rows.
    package var height: Int?
    /// The highest useful rate, in frames per second.
    package var frameRate: Double?
    /// The number of temporal layers that somebody uses.
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

/// Tells a publisher which simulcast layers somebody receives; if there are none, it need not encode.
package struct LayersWanted: SignalingBody {
    package static let type = "layersWanted"
    package var trackId: String
    /// One entry for each simulcast layer that somebody receives, by ascending number.
    package var layers: [WantedLayer]

    package init(trackId: String, layers: [WantedLayer]) {
        self.trackId = trackId
        self.layers = layers
    }

    /// Creates a message for the simulcast layers of the given numbers, without a bound on any.
    package init(trackId: String, simulcastLayers: [Int]) {
        self.init(trackId: trackId, layers: simulcastLayers.map { WantedLayer(simulcastLayer: $0) })
    }

    /// The numbers of the simulcast layers.
    package var simulcastLayers: [Int] { layers.map(\.simulcastLayer) }
}

/// Tells how well a participant's network carries its media.
package struct NetworkQuality: SignalingBody {
    package static let type = "networkQuality"
    package var participantId: String
    /// From 0 (broken) to 5 (excellent).
    package var level: Int

    package init(participantId: String, level: Int) {
        self.participantId = participantId
        self.level = level
    }
}

/// Somebody else's track is not sent to this subscriber for now.
package struct TrackSwitchedOff: SignalingBody {
    package static let type = "trackSwitchedOff"
    package var participantId: String
    package var trackId: String
    /// Why: `SwitchOffReason.network`; others may follow, and count as that one.
    package var reason: String

    package init(participantId: String, trackId: String, reason: String) {
        self.participantId = participantId
        self.trackId = trackId
        self.reason = reason
    }
}

/// Somebody else's track is sent to this subscriber again.
package struct TrackSwitchedOn: SignalingBody {
    package static let type = "trackSwitchedOn"
    package var participantId: String
    package var trackId: String

    package init(participantId: String, trackId: String) {
        self.participantId = participantId
        self.trackId = trackId
    }
}

/// The values of a `reason` of `trackSwitchedOff` that this version knows; there may be others on the wire.
package enum SwitchOffReason {
    /// The subscriber's network does not carry the track.
    package static let network = "network"
}

/// Says that a request was refused, or why the server ends the session.
package struct ErrorMessage: SignalingBody, Error, CustomStringConvertible {
    package static let type = "error"
    /// The number of a `RoomErrorCode`.
    package var code: Int
    /// The code's name.
    package var name: String
    /// A sentence for people.
    package var message: String
    /// Whether the connection ends after this message.
    package var fatal: Bool
    /// The number of the refused request, if it had one.
    package var requestId: Int?
    /// The track of the refused request, if it was about one.
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
