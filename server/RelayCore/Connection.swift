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
    /// How far the session has come.
    enum Phase: Sendable {
        case awaitingJoin(deadline: MonotonicInstant)
        case joined
        /// A fatal error was said; what is still to be sent goes out, then the connection is closed.
        case closing(RoomErrorCode, reason: String, deadline: MonotonicInstant)
    }

    var phase: Phase
    /// The rooms that the connection's URL admits.
    let path: RoomPath
    var budget: SignalingBudget
    var isCloseSaid = false
    /// Whether the driver has been told to cut the connection.
    var isCutSaid = false

    /// A connection that is open since `now`.
    init(path: RoomPath, joinsBefore deadline: MonotonicInstant, at now: MonotonicInstant) {
        self.path = path
        phase = .awaitingJoin(deadline: deadline)
        budget = SignalingBudget(fullAt: now)
    }

    var isClosing: Bool {
        if case .closing = phase { true } else { false }
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

/// What one connection is to be sent.
struct Outbox: Sendable {
    /// Signaling that waits, oldest first.
    var messages = RingBuffer<String>()
    /// The length of `messages`.
    var size = DataSize.zero
    /// Who speaks through the connection, once it has joined.
    var participant: ParticipantID?
    /// Whether the driver has been told that there is something to send and has not yet found nothing.
    var isAwake = false
}
