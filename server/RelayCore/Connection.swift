import MediaCore
import RoomProtocol

/// The name of a connection, in `Relay.connections`.
typealias ConnectionID = SlotID
/// The name of a participant, in `Relay.participants`.
typealias ParticipantID = SlotID
/// The name of a track, in `Relay.tracks`.
typealias TrackID = SlotID

/// One WebSocket, from its opening to its end.
struct Connection: Sendable {
    /// The state of the session.
    enum Phase: Sendable {
        case awaitingJoin(deadline: MonotonicInstant)
        case joined
        /// A fatal error was sent; the connection closes once its remaining messages have been sent.
        case closing(RoomErrorCode, reason: String, deadline: MonotonicInstant)
    }

    var phase: Phase
    /// The rooms that the connection's URL admits.
    let path: RoomPath
    var budget: SignalingBudget
    var isCloseSaid = false
    /// Whether the driver has been told to cut the connection.
    var isCutSaid = false

    /// Creates a connection that opened at `now`.
    init(path: RoomPath, joinsBefore deadline: MonotonicInstant, at now: MonotonicInstant) {
        self.path = path
        phase = .awaitingJoin(deadline: deadline)
        budget = SignalingBudget(fullAt: now)
    }

    var isClosing: Bool {
        if case .closing = phase { true } else { false }
    }

    /// When the driver must be called for this connection, if ever.
    var deadline: MonotonicInstant? {
        switch phase {
        case .awaitingJoin(let deadline): deadline
        case .closing(_, _, let deadline): isCutSaid ? nil : deadline
        case .joined: nil
        }
    }
}

/// What waits to be sent on one connection.
struct Outbox: Sendable {
    /// Signaling messages that wait, oldest first.
    var messages = RingBuffer<String>()
    /// The length of all `messages` together.
    var size = DataSize.zero
    /// The participant of the connection, once it has joined.
    var participant: ParticipantID?
    /// What the driver knows of the messages that wait, until it has found none.
    var wakefulness = Wakefulness.asleep

    /// The most urgent reason for which the driver was woken.
    enum Wakefulness: UInt8, Comparable, Sendable {
        case asleep, signaling, urgent

        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }
}
