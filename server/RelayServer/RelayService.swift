import Logging
import MediaCore
import RelayCore
import RoomProtocol
import Threading
import WebSockets

/// The relay's driver: it passes messages from the sockets to the relay, and the relay's decisions to the sockets.
///
/// Confined to the loop's thread.
final class RelayService: WebSocketHandler {
    /// Three seconds are often enough: publishers rarely fall silent.
    private static let sweepInterval = Duration.seconds(3)
    /// Connections whose memory is worth the time of giving it back.
    private static let crowd = 64

    private var relay: Relay
    private let logger: Logger
    private var generator = SystemRandomNumberGenerator()
    /// Buffers for acknowledgements.
    private let packets = PacketBufferPool()
    /// The connections by the index of the relay's name for each, which is the connection's `tag`.
    private var connections: [WebSocketConnection?] = []
    /// Whether a connection has more to send after its last message, by the same index.
    private var hasMore: [Bool] = []
    /// Requests a call of `timerFired` at a time; this replaces the earlier request.
    private var setAlarm: ((MonotonicInstant) -> Void)?
    /// Called when a connection ends and none is left.
    private var whenEmpty: (() -> Void)?
    /// When `timerFired` will be called.
    private var alarm: MonotonicInstant?
    /// When to look next for packets that have become too old.
    private var nextSweep = MonotonicClock.now
    /// The most connections since memory was last given back.
    private var mostConnections = 0

    init(relay: consuming Relay, logger: Logger) {
        self.relay = relay
        self.logger = logger
    }

    var statistics: RelayStatistics { relay.statistics }

    var packetCounts: PacketCounts { relay.packetCounts }

    // MARK: Connections

    func opened(_ connection: WebSocketConnection) {
        let offered = connection.subprotocol ?? connection.offeredSubprotocols
        let id = relay.connectionOpened(
            subprotocol: offered.isEmpty ? nil : offered,
            path: connection.requestPath,
            at: MonotonicClock.now
        )
        connection.tag = id.rawValue
        while connections.count <= id.index {
            connections.append(nil)
            hasMore.append(false)
        }
        connections[id.index] = connection
        logger.debug("connected", metadata: ["peer": "\(connection.peerAddress)"])
        performEffects()
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        relay.receive(text, from: SlotID(rawValue: connection.tag), at: MonotonicClock.now, using: &generator)
        performEffects()
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        WebSocketConnection.frameForSharing(message)
        relay.receive(message, from: SlotID(rawValue: connection.tag), at: MonotonicClock.now)
        performEffects()
    }

    func hasMessage(for connection: WebSocketConnection) -> Bool {
        hasMore[SlotID(rawValue: connection.tag).index]
    }

    func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage? {
        let id = SlotID(rawValue: connection.tag)
        let turn = relay.nextMessage(for: id, at: MonotonicClock.now)
        hasMore[id.index] = turn?.isLast == false
        performEffects()
        return switch turn?.message {
        case .text(let text): .text(text)
        case .media(let packet): .shared(packet)
        case .acknowledgement(let acknowledgement): .exclusive(packet(of: acknowledgement))
        case .close(let code, let reason): .close(code: UInt16(clamping: code.rawValue), reason: reason)
        case nil: nil
        }
    }

    private func packet(of acknowledgement: MediaAcknowledgement) -> PacketBuffer {
        let packet = packets.take(count: MediaAcknowledgement.length)
        packet.withMutableBytes { acknowledgement.write(to: &$0) }
        return packet
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        let id = SlotID(rawValue: connection.tag)
        connections[id.index] = nil
        relay.connectionClosed(id, at: MonotonicClock.now)
        logger.debug("disconnected", metadata: ["peer": "\(connection.peerAddress)", "how": "\(closure)"])
        performEffects()
        if relay.connectionCount == 0 { whenEmpty?() }
    }

    // MARK: Time

    /// Begins to keep deadlines.
    ///
    /// - Parameter setAlarm: Requests a call of `timerFired` at a time; this replaces the earlier request.
    func begin(setAlarm: @escaping (MonotonicInstant) -> Void) {
        self.setAlarm = setAlarm
        armAlarm()
    }

    func timerFired() {
        // A timer counts in fractions of seconds; rounding may make it a nanosecond early.
        let now = max(MonotonicClock.now, alarm ?? MonotonicClock.now)
        alarm = nil
        if now >= nextSweep {
            relay.discardOldPackets(at: now)
            giveBackMemory()
            nextSweep = now + Self.sweepInterval
        }
        if let deadline = relay.nextDeadline, deadline <= now { relay.deadlineReached(at: now) }
        performEffects()
        armAlarm()
    }

    /// Gives memory back to the system after a crowd has left.
    ///
    /// The allocator keeps what lies between blocks that are still in use: 100 MB after some 2,000 hostile connections, of
    /// which the server used 10.
    private func giveBackMemory() {
        let count = relay.connectionCount
        mostConnections = max(mostConnections, count)
        guard mostConnections >= Self.crowd, count <= mostConnections / 2 else { return }
        WebSocketLoop.trimMemory()
        mostConnections = count
    }

    private func armAlarm() {
        let time = min(relay.nextDeadline ?? nextSweep, nextSweep)
        // Clients may connect before `begin`, which then sets the alarm.
        guard time != alarm, let setAlarm else { return }
        alarm = time
        setAlarm(time)
    }

    /// Tells all peers that the server is going down.
    ///
    /// - Parameter whenEmpty: Called when no peer is left, or at once if there is none.
    func shutDown(whenEmpty: @escaping () -> Void) {
        self.whenEmpty = whenEmpty
        relay.shutDown(at: MonotonicClock.now)
        performEffects()
        if relay.connectionCount == 0 { whenEmpty() }
    }

    /// Carries out the relay's decisions on the sockets.
    private func performEffects() {
        let isDeadlineChanged = relay.takeEffects { effect in
            switch effect {
            case .wake(let id, let isUrgent): connections[id.index]?.requestWrite(isUrgent: isUrgent)
            case .cut(let id): connections[id.index]?.hangUp(reason: "it did not take our close message in time.")
            case .log(let notice): logger.info("\(notice)")
            }
        }
        if isDeadlineChanged { armAlarm() }
    }
}
