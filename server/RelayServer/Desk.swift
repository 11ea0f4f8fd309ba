import Logging
import MediaCore
import RelayCore
import WebSockets

/// The relay, and the sockets on which its decisions are carried out.
///
/// It is one value, because the runtime checks each access to a property of an object: one check for each message and not
/// one for each part of this.
struct Desk: ~Copyable {
    var relay: Relay
    private let logger: Logger
    /// The connections by the index of the relay's name for each, which is the connection's `tag`.
    private var connections: [WebSocketConnection?] = []

    init(relay: consuming Relay, logger: Logger) {
        self.relay = relay
        self.logger = logger
    }

    /// Enters the connection that the relay calls `id`.
    mutating func seat(_ connection: WebSocketConnection, as id: SlotID) {
        while connections.count <= id.index { connections.append(nil) }
        connections[id.index] = connection
    }

    mutating func connectionClosed(_ id: SlotID, at now: MonotonicInstant) {
        connections[id.index] = nil
        relay.connectionClosed(id, at: now)
    }

    /// The next message for a connection, whether it has more, and whether the relay's next deadline has changed.
    mutating func nextMessage(
        for id: SlotID,
        at now: MonotonicInstant
    ) -> (message: Relay.Outgoing?, hasMore: Bool, isDeadlineChanged: Bool) {
        let turn = relay.nextMessage(for: id, at: now)
        return (turn?.message, turn?.isLast == false, performEffects())
    }

    /// Carries out the relay's decisions on the sockets.
    ///
    /// Nothing that it calls comes back to the relay at once.
    ///
    /// - Returns: Whether the relay's next deadline has changed.
    mutating func performEffects() -> Bool {
        while let effect = relay.nextEffect() {
            switch effect {
            case .wake(let id, let isUrgent): connections[id.index]?.requestWrite(isUrgent: isUrgent)
            case .cut(let id): connections[id.index]?.hangUp(reason: "it did not take our close message in time.")
            case .log(let notice): logger.info("\(notice)")
            }
        }
        return relay.takeDeadlineChange()
    }
}
