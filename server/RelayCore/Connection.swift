import MediaCore
import RoomProtocol

/// One participant's connection, from its opening to its end.
struct Connection: Sendable {
    /// How far the session has come.
    enum Phase: Sendable {
        case awaitingJoin(deadline: MonotonicInstant)
        case joined(Participant)
        /// A fatal error was said; what is still to be sent goes out, then the connection is closed.
        case closing(RoomErrorCode, reason: String, deadline: MonotonicInstant)
    }

    /// Who joined.
    struct Participant: Sendable {
        var id: String
        var identity: String
        var room: String
        var subscribesAutomatically: Bool
    }

    /// A track that the participant receives.
    struct Subscription: Sendable {
        var track: SlotID
        var cursor: ForwardingCursor
        var backoff = KeyframeBackoff()
    }

    var phase: Phase
    var outbox = RingBuffer<String>()
    var outboxSize = DataSize.zero
    var subscriptions: [Subscription] = []
    /// Which subscription has the next turn, so that no track starves another.
    var turn = 0
    var publications: [SlotID] = []
    /// Whether the driver has been told that there is something to send and has not yet found nothing.
    var isAwake = false
    var isCloseSaid = false

    var participant: Participant? {
        if case .joined(let participant) = phase { participant } else { nil }
    }

    /// What the driver must be called for next, if anything.
    var deadline: MonotonicInstant? {
        switch phase {
        case .awaitingJoin(let deadline), .closing(_, _, let deadline): deadline
        case .joined: nil
        }
    }
}

/// A published track.
struct Track: Sendable {
    var info: TrackInfo
    var publisher: SlotID
    var stream: TrackStream
    var subscribers: [SlotID] = []
    var keyframes: KeyframeRequestGate
}

/// A room with somebody in it.
struct Room: Sendable {
    var id: String
    var name: String
    /// In order of joining.
    var participants: [SlotID] = []
}
