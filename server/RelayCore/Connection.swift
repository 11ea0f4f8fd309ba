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

    var phase: Phase
    var publications: [SlotID] = []
    /// Backoffs of tracks that the participant received earlier: coming back does not begin them anew.
    var earlierBackoffs: [SlotID: KeyframeBackoff] = [:]
    /// Up to when the allowance of signaling messages is used up.
    var messagesPaidUntil: MonotonicInstant
    var isCloseSaid = false
    /// Whether the driver has been told to cut the connection.
    var isCutSaid = false

    /// A connection that is open since `now`.
    init(joinsBefore deadline: MonotonicInstant, at now: MonotonicInstant) {
        phase = .awaitingJoin(deadline: deadline)
        messagesPaidUntil = now
    }

    var isJoined: Bool {
        if case .joined = phase { true } else { false }
    }

    var isClosing: Bool {
        if case .closing = phase { true } else { false }
    }

    var participant: Participant? {
        if case .joined(let participant) = phase { participant } else { nil }
    }

    /// What the driver must be called for next, if anything.
    var deadline: MonotonicInstant? {
        switch phase {
        case .awaitingJoin(let deadline): deadline
        case .closing(_, _, let deadline): isCutSaid ? nil : deadline
        case .joined: nil
        }
    }
}

extension Connection {
    /// Charges one signaling message to the allowance.
    ///
    /// - Returns: Whether the message is allowed.
    mutating func pay(interval: Duration, burst: Int, at now: MonotonicInstant) -> Bool {
        messagesPaidUntil = max(messagesPaidUntil, now) + interval
        return messagesPaidUntil.duration(since: now) <= interval * burst
    }
}

/// What one connection is to be sent.
///
/// Apart from `Connection`, so that what is done for every packet and subscriber touches little memory.
struct Outlet: Sendable {
    /// A track that the participant receives.
    struct Subscription: Sendable {
        var track: SlotID
        var cursor: ForwardingCursor
        var backoff = KeyframeBackoff()
    }

    var outbox = RingBuffer<String>()
    var outboxSize = DataSize.zero
    var subscriptions: [Subscription] = []
    /// Which subscription has the next turn, so that no track starves another.
    var turn = 0
    /// Whether the driver has been told that there is something to send and has not yet found nothing.
    var isAwake = false
}

/// A published track.
struct Track: Sendable {
    var info: TrackInfo
    var keyframes: KeyframeRequestGate
    /// When the publisher is told that nobody receives the track, unless somebody comes before.
    var idleDeadline: MonotonicInstant?
}

/// A published track's packets and those who take part in them; apart from `Track` as `Outlet` from `Connection`.
struct Feed: Sendable {
    var publisher: SlotID
    var stream: TrackStream
    var subscribers: [SlotID] = []
}

/// A room with somebody in it.
struct Room: Sendable {
    var id: String
    var name: String
    /// In order of joining.
    var participants: [SlotID] = []
}
