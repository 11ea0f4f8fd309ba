import Adaptation
import MediaCore
import RoomProtocol

/// The name of a connection, in `Relay.connections`.
typealias ConnectionID = SlotID
/// The name of a participant, in `Relay.participants`.
typealias ParticipantID = SlotID
/// The name of a track, in `Relay.tracks`.
typealias TrackID = SlotID
/// The name of an encoding of a track, in `Relay.encodings`.
typealias EncodingID = SlotID

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
}

/// What waits to be sent on one connection.
struct Outbox: Sendable {
    /// A message that waits.
    enum Message: Sendable {
        /// A signaling message.
        case text(String)
        /// A packet of a track that has ended since. It goes out before the message that says so.
        case packet(PacketBuffer)

        /// Its length.
        var size: DataSize {
            switch self {
            case .text(let text): DataSize(bytes: text.utf8.count)
            case .packet(let packet): DataSize(bytes: packet.count)
            }
        }
    }

    /// Messages that wait, oldest first.
    var messages = RingBuffer<Message>()
    /// The packets among `messages`.
    var packetCount: Int {
        (0..<messages.count).count { if case .packet = messages[$0] { true } else { false } }
    }

    /// The length of all `messages` together.
    var size = DataSize.zero
    /// How many messages all outboxes had been given when the client last took one, or the first of `messages` came.
    var waitsSince = 0
    /// Messages that came from the client since it last took one of `messages`.
    var unreadRequests = 0
    /// The participant of the connection, once it has joined.
    var participant: ParticipantID?
    /// Whether media of the peer is to be acknowledged.
    var isAcknowledgementDue = false
    /// What the driver knows of the messages that wait, until it has found none.
    var wakefulness = Wakefulness.asleep

    /// The most urgent reason for which the driver was woken.
    enum Wakefulness: UInt8, Comparable, Sendable {
        case asleep, signaling, urgent

        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }
}

/// The traffic of one connection: the bytes that came and are to be acknowledged, and those that went and were
/// acknowledged.
struct ConnectionTraffic: Sendable {
    /// The server acknowledges each frame's end at once and never thins.
    ///
    /// A publisher is one connection, its control law gains by them, and nothing needs a timer this way.
    static let serverSchedule: AcknowledgementSchedule.Settings = {
        var settings = AcknowledgementSchedule.Settings()
        settings.longestInterval = 0
        settings.coalescing = 0
        return settings
    }()

    var path = SubscriberPath()
    var arrivals = AcknowledgementSchedule(serverSchedule)
    /// Whether the peer has sent media: who sends none needs no acknowledgements.
    var hasSentMedia = false
    /// The delay of what the peer sends.
    var uplink = UplinkDelay()
    /// Whether a packet of media has come since the peer's network was last looked at.
    var hasJustSent = false
    /// The track for which the path is tested at present.
    var probingTrack: TrackID?
    /// Whether a frame waits only until the path has room.
    var isHeldBack = false
    /// When the rate of the path was last divided among the subscriptions.
    var lastAllotment: MonotonicInstant?
    /// The rate that was divided then, in bits per second; `nil` if no limit was known.
    var allottedRate: Double?
    /// The tag from which a track was served last while the path was limited (the virtual time of start-time fair
    /// queueing): none begins below it.
    var virtualTime = 0
}
