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

    private var desk: Desk
    private var generator = SystemRandomNumberGenerator()
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
        desk = Desk(relay: relay, logger: logger)
    }

    var statistics: RelayStatistics { desk.relay.statistics }

    var packetCounts: PacketCounts { desk.relay.packetCounts }

    // MARK: Connections

    func opened(_ connection: WebSocketConnection) {
        let offered = connection.subprotocol ?? connection.offeredSubprotocols
        let id = desk.relay.connectionOpened(
            subprotocol: offered.isEmpty ? nil : offered,
            path: connection.requestPath,
            at: MonotonicClock.now
        )
        connection.tag = id.rawValue
        desk.seat(connection, as: id)
        desk.log.connected(connection.peerAddress, at: MonotonicClock.now)
        performEffects()
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        desk.relay.receive(text, from: SlotID(rawValue: connection.tag), at: MonotonicClock.now, using: &generator)
        performEffects()
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        WebSocketConnection.frameForSharing(message)
        let (id, now) = (SlotID(rawValue: connection.tag), MonotonicClock.now)
        let isAcknowledgement = message.withBytes { binaryMessageKind(of: $0) } == .acknowledgement
        if isAcknowledgement, connection.path.isMeasuringRoundTrip { desk.relay.pathIsHeld(to: id, at: now) }
        desk.relay.receive(message, from: id, at: now)
        performEffects()
    }

    func answeredPing(_ connection: WebSocketConnection, at now: MonotonicInstant) {
        desk.relay.answered(SlotID(rawValue: connection.tag), at: now)
    }

    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        var isDeadlineChanged = false
        let turn = desk.nextMessage(for: SlotID(rawValue: connection.tag), at: now, &isDeadlineChanged)
        if isDeadlineChanged { armAlarm() }
        return turn
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        desk.connectionClosed(SlotID(rawValue: connection.tag), at: MonotonicClock.now)
        desk.log.disconnected(connection.peerAddress, how: "\(closure)", at: MonotonicClock.now)
        performEffects()
        if desk.relay.connectionCount == 0 { whenEmpty?() }
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
            desk.relay.discardOldPackets(at: now)
            giveBackMemory()
            nextSweep = now + Self.sweepInterval
        }
        if let deadline = desk.deadline, deadline <= now { desk.relay.deadlineReached(at: now) }
        performEffects()
        armAlarm()
    }

    /// Gives memory back to the system after a crowd has left.
    ///
    /// The allocator keeps what lies between blocks that are still in use: 100 MB after some 2,000 hostile connections,
    /// of which the server used 10.
    private func giveBackMemory() {
        let count = desk.relay.connectionCount
        mostConnections = max(mostConnections, count)
        guard mostConnections >= Self.crowd, count <= mostConnections / 2 else { return }
        WebSocketLoop.trimMemory()
        mostConnections = count
    }

    private func armAlarm() {
        let time = min(desk.deadline ?? nextSweep, nextSweep)
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
        desk.relay.shutDown(at: MonotonicClock.now)
        performEffects()
        if desk.relay.connectionCount == 0 { whenEmpty() }
    }

    private func performEffects() {
        if desk.performEffects() { armAlarm() }
    }
}
