import MediaCore
import RoomProtocol

/// A published track.
struct Track: Sendable {
    /// A `subscribed` message, and what it holds besides the track.
    struct SubscribedText: Sendable {
        let catchUpThrough: UInt32?
        let text: String
    }

    var info: TrackInfo
    var keyframes: KeyframeRequestGate
    /// Those who have paused their subscription.
    var pausedSubscribers: [ParticipantID] = []
    /// The last one made: many who join at a time are told the same.
    var subscribedText: SubscribedText?
}

/// A published track's packets and those who receive them.
struct TrackFanout: Sendable {
    /// Which packets are taken.
    enum Acceptance: Sendable {
        case all
        /// The first is to be a keyframe's.
        case fromKeyframe
        /// The publisher has disabled the track.
        case none
    }

    /// How many packets were dropped without being stored.
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
    /// When the publisher is told that nobody receives the track, unless somebody comes before.
    var idleDeadline: MonotonicInstant?

    /// Whether somebody receives the track, or has just ceased to.
    var isReceived: Bool { !subscribers.isEmpty || idleDeadline != nil }

    /// Whether a packet in order is taken; one that is not is counted.
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
