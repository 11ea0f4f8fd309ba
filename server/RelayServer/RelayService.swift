import Logging
import MediaCore
import RelayCore
import RoomProtocol
import Threading
import WebSockets

/// The relay's driver: brings what comes from the sockets to the relay, and what it decides to the sockets.
///
/// Confined to the loop's thread.
final class RelayService: WebSocketHandler {
    /// Publishers that fall silent are rare.
    private static let sweepInterval = Duration.seconds(3)

    private var relay: Relay
    private let logger: Logger
    private var generator = SystemRandomNumberGenerator()
    /// By the index of the relay's name for the connection, which is also the connection's `tag`.
    private var peers: [(connection: WebSocketConnection, id: SlotID)?] = []
    /// Has `timeHasCome` called at a time, in place of the one asked for before.
    private var setAlarm: ((MonotonicInstant) -> Void)?
    /// When `timeHasCome` will be called.
    private var alarm: MonotonicInstant?
    /// When packets that have become too old are looked for next.
    private var nextSweep = MonotonicClock.now

    init(relay: Relay, logger: Logger) {
        self.relay = relay
        self.logger = logger
    }

    var census: Relay.Census { relay.census }

    // MARK: Connections

    func opened(_ connection: WebSocketConnection) {
        let offered = connection.subprotocol ?? connection.offeredSubprotocols
        let id = relay.connectionOpened(subprotocol: offered.isEmpty ? nil : offered, at: MonotonicClock.now)
        connection.tag = id.index
        while peers.count <= id.index { peers.append(nil) }
        peers[id.index] = (connection, id)
        logger.debug("connected", metadata: ["peer": "\(connection.peerAddress)"])
        carryOut()
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        guard let id = peers[connection.tag]?.id else { return }
        relay.receive(text, from: id, at: MonotonicClock.now, using: &generator)
        carryOut()
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        guard let id = peers[connection.tag]?.id else { return }
        WebSocketConnection.frameForSharing(message)
        relay.receive(message, from: id, at: MonotonicClock.now)
        carryOut()
    }

    func hasMessage(for connection: WebSocketConnection) -> Bool {
        guard let id = peers[connection.tag]?.id else { return false }
        return relay.hasMessage(for: id)
    }

    func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage? {
        guard let id = peers[connection.tag]?.id else { return nil }
        let message = relay.nextMessage(for: id, at: MonotonicClock.now)
        carryOut()
        return switch message {
        case .text(let text): .text(text)
        case .media(let packet): .shared(packet)
        case .close(let code, let reason): .close(code: UInt16(clamping: code.rawValue), reason: reason)
        case nil: nil
        }
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        guard let id = peers[connection.tag]?.id else { return }
        peers[connection.tag] = nil
        relay.connectionClosed(id, at: MonotonicClock.now)
        logger.debug("disconnected", metadata: ["peer": "\(connection.peerAddress)", "how": "\(closure)"])
        carryOut()
    }

    // MARK: Time

    /// Begins to keep deadlines.
    ///
    /// - Parameter setAlarm: Has `timeHasCome` called at a time, in place of the one asked for before.
    func begin(setAlarm: @escaping (MonotonicInstant) -> Void) {
        self.setAlarm = setAlarm
        armAlarm()
    }

    func timeHasCome() {
        // It may come a little early.
        let now = max(MonotonicClock.now, alarm ?? MonotonicClock.now)
        alarm = nil
        if now >= nextSweep {
            relay.discardOldPackets(at: now)
            nextSweep = now + Self.sweepInterval
        }
        if let deadline = relay.nextDeadline, deadline <= now { relay.deadlineReached(at: now) }
        carryOut()
    }

    private func armAlarm() {
        // Clients may come before `begin`, which then arms it.
        guard let setAlarm else { return }
        let time = min(relay.nextDeadline ?? nextSweep, nextSweep)
        guard time != alarm else { return }
        alarm = time
        setAlarm(time)
    }

    func shutDown() {
        relay.shutDown(at: MonotonicClock.now)
        carryOut()
    }

    /// Tells the sockets what the relay has decided.
    private func carryOut() {
        relay.takeAwakened { id in peers[id.index]?.connection.requestWrite() }
        relay.takeOverdue { id in peers[id.index]?.connection.close(code: 1008, reason: "closing took too long") }
        relay.takeNotices { notice in logger.info("\(notice)") }
        armAlarm()
    }
}
