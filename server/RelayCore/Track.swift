import MediaCore
import RoomProtocol

/// A published track.
struct Track: Sendable {
    /// A `subscribed` message with the values that it was made from.
    struct SubscribedText: Sendable {
        let catchUpThrough: UInt32?
        let text: String
    }

    var info: TrackInfo
    var keyframes: KeyframeRequestGate
    /// What the publisher knows of its subscribers.
    var wanted = WantedLayers()
    /// Whether any subscriber has wished for a size, rate or priority.
    var hasWishes = false
    /// The participants that have paused their subscription.
    var pausedSubscribers: [ParticipantID] = []
    /// The last message made; many participants that join at one time get the same one.
    var subscribedText: SubscribedText?
}

/// A published track's packets and its subscribers.
struct TrackFanout: Sendable {
    /// Which packets the track accepts.
    enum Acceptance: Sendable {
        case all
        /// The first packet must be a keyframe's.
        case fromKeyframe
        /// The publisher has disabled the track.
        case none
    }

    /// The number of packets that were dropped without being stored.
    struct Unstored: Sendable {
        var disabled = 0
        var awaitingKeyframe = 0
    }

    let publisher: ParticipantID
    var stream: TrackStream
    var subscribers: [ParticipantID] = []
    var order = FrameOrder()
    var budget: MediaBudget
    var acceptance = Acceptance.all
    var unstored = Unstored()
    /// The rate at which the publisher sends.
    var rate = SentRate()
    /// When the publisher is told that nobody receives the track, unless somebody subscribes before.
    var idleDeadline: MonotonicInstant?

    /// Whether somebody receives the track, or has only just stopped.
    var isReceived: Bool { !subscribers.isEmpty || idleDeadline != nil }

    /// Whether a packet in order is accepted; a packet that is not accepted is counted.
    mutating func accepts(_ header: MediaPacketHeader) -> Bool {
        switch acceptance {
        case .all: return true
        case .none:
            unstored.disabled += 1
            return false
        case .fromKeyframe:
            guard header.isKeyframe && header.isFirstChunk else {
                unstored.awaitingKeyframe += 1
                return false
            }
            acceptance = .all
            return true
        }
    }
}
