import Logging
import MediaCore
import RelayCore
import RoomProtocol
import Threading
import WebSockets

/// The relay, and the sockets on which its decisions take effect.
///
/// It is one value, because the runtime checks each access to a property of an object: one check for each message and
/// not one for each part of this.
struct Desk: ~Copyable {
    var relay: Relay
    /// The log of what peers do.
    var log: PeerLog
    /// The connections by the relay's name for each, which is the connection's `tag`.
    private var connections = ConnectionTable<WebSocketConnection>()
    /// When the relay wants to be called, if ever.
    private(set) var deadline: MonotonicInstant?

    init(relay: consuming Relay, logger: Logger) {
        self.relay = relay
        log = PeerLog(logger)
    }

    /// Enters the connection that the relay calls `id`.
    mutating func seat(_ connection: WebSocketConnection, as id: SlotID) {
        connections.seat(connection, as: id)
    }

    mutating func connectionClosed(_ id: SlotID, at now: MonotonicInstant) {
        connections.remove(id)
        relay.connectionClosed(id, at: now)
    }

    /// The next message for the connection that the relay calls `id`; `nil` if there is none.
    ///
    /// Sets `isDeadlineChanged` to whether `deadline` has changed.
    mutating func nextMessage(
        for id: SlotID,
        at now: MonotonicInstant,
        _ isDeadlineChanged: inout Bool
    ) -> OutgoingMessage.Turn? {
        let turn = relay.nextMessage(for: id, at: now)
        isDeadlineChanged = performEffects()
        return turn
    }

    /// Carries out the relay's decisions on the sockets.
    ///
    /// Nothing that it calls comes back to the relay at once.
    ///
    /// - Returns: Whether `deadline` has changed.
    mutating func performEffects() -> Bool {
        var isDeadlineChanged = false
        while let effect = relay.nextEffect() {
            switch effect {
            case .wake(let id, let isUrgent, let later):
                if let later { connections.prefetch(later) }
                connections[id]?.requestWrite(isUrgent: isUrgent)
            case .cut(let id): connections[id]?.hangUp(reason: "it did not take our close message in time.")
            case .ping(let id): connections[id]?.ping()
            case .log(let notice): log.note(notice, at: MonotonicClock.now)
            case .callBack(let time):
                deadline = time
                isDeadlineChanged = true
            }
        }
        return isDeadlineChanged
    }
}
