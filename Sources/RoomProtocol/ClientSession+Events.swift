package import MediaCore

/// The actions of a session for its driver, and its events for the room.
extension ClientSession {
    /// An action for the driver.
    package enum Action: Hashable, Sendable {
        /// Send a message.
        case send(ClientMessage)
        /// Report an event to the room.
        case notify(Event)
        /// Close the connection, with the given WebSocket code; always the last action.
        case close(code: UInt16, reason: String)
    }

    /// An event in the room.
    package enum Event: Hashable, Sendable {
        case joined(Joined)
        case participantConnected(ParticipantInfo)
        case participantDisconnected(ParticipantInfo)
        case trackPublished(TrackInfo, by: ParticipantInfo)
        case trackUnpublished(TrackInfo, by: ParticipantInfo)
        case trackEnabled(TrackInfo, by: ParticipantInfo)
        case trackDisabled(TrackInfo, by: ParticipantInfo)
        case subscribed(TrackInfo, by: ParticipantInfo, Subscription)
        /// The server subscribed this client to a track that it cannot use, and the client has unsubscribed.
        case subscriptionFailed(TrackInfo, by: ParticipantInfo, SubscriptionFailure)
        case unsubscribed(TrackInfo, by: ParticipantInfo)
        /// The server accepted a track of our own.
        case published(requestID: Int, TrackInfo)
        /// The server refused a request of our own.
        case refused(ErrorMessage)
        /// The simulcast layers of our own track that somebody receives.
        case layersWanted(trackID: String, layers: [WantedLayer])
        /// Somebody needs a keyframe of our own track, in one simulcast layer or (`nil`) in all.
        case keyframeRequested(trackID: String, simulcastLayer: Int?)
        /// The network of a participant, which may be this one, carries its media better or worse: 0 to 5.
        case networkQuality(participantID: String, level: Int)
        /// The server sends nothing of a track for now; `reason` is one of `SwitchOffReason`, or unknown.
        case trackSwitchedOff(TrackInfo, by: ParticipantInfo, reason: String)
        /// The server sends a track again.
        case trackSwitchedOn(TrackInfo, by: ParticipantInfo)
        /// The session is over; no event follows.
        case ended(Ending)
    }

    /// Describes the first packets of a subscription.
    package struct Subscription: Hashable, Sendable {
        /// The simulcast layer that is sent first; `catchUpThrough` applies only to it.
        package var simulcastLayer: UInt8
        /// The last frame number of the cached frames that are sent first: decode these frames, but do not show them.
        package var catchUpThrough: UInt32?
        /// Whether no packets come until the client subscribes to the track again.
        package var isPaused: Bool

        package init(simulcastLayer: UInt8 = 0, catchUpThrough: UInt32? = nil, isPaused: Bool = false) {
            self.simulcastLayer = simulcastLayer
            self.catchUpThrough = catchUpThrough
            self.isPaused = isPaused
        }

        /// Whether a frame comes from the server's cache: decode it, but do not show it unless it is the last one and a
        /// repeat.
        package func isCatchUp(_ frame: EncodedFrameInfo) -> Bool {
            guard let catchUpThrough, frame.simulcastLayer == simulcastLayer else { return false }
            return frame.number <= catchUpThrough
        }

        /// Whether a frame is the last one from the server's cache.
        package func endsCatchUp(_ frame: EncodedFrameInfo) -> Bool {
            frame.number == catchUpThrough && frame.simulcastLayer == simulcastLayer
        }
    }

    /// The reason why a track cannot be received.
    package enum SubscriptionFailure: Error, Hashable, Sendable {
        /// The track's codec is not one of `Settings.videoCodecs`.
        case unknownCodec(String)
        /// The track lacks its codec, size or frame rate.
        case incompleteDescription
    }

    /// The reason why a session is over.
    package enum Ending: Error, Hashable, Sendable {
        /// This client left.
        case left
        /// The server asked this client to leave.
        case dismissed(reason: String, reconnect: Bool, url: String?)
        /// The server refused this client, or ended the session with an error.
        case refused(ErrorMessage)
        /// The server closed the connection because it cannot understand what this client sends.
        case faulted(code: Int, reason: String)
        /// The connection broke.
        case connectionLost(String)
        /// The server broke the protocol.
        case protocolViolation(String)
        /// The server did not answer `join` in time.
        case joinTimedOut
    }
}
