package import MediaCore
import RoomProtocol
import Threading
package import WebSockets

/// The connection's calls, all of them on the loop's thread, which is the room's own.
extension Room: WebSocketHandler {
    package nonisolated func opened(_ connection: WebSocketConnection) {
        assumeIsolated { room in
            room.path.value.connection = connection
            room.joinSent = MonotonicClock.now
            room.perform(room.session.connectionOpened(at: room.joinSent))
        }
    }

    package nonisolated func receivedText(_ text: String, from connection: WebSocketConnection) {
        assumeIsolated { room in room.perform(room.session.received(text, at: MonotonicClock.now)) }
    }

    package nonisolated func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        // A packet that breaks the wire format is dropped, with its frame: what else comes may be good.
        try? path.value.receive(message)
    }

    package nonisolated func hasMessage(for connection: WebSocketConnection) -> Bool {
        path.value.hasMessage
    }

    package nonisolated func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage? {
        path.value.nextMessage(at: MonotonicClock.now)
    }

    package nonisolated func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        assumeIsolated { room in room.closed(closure) }
    }

    private func closed(_ closure: WebSocketClosure) {
        path.value.connectionEnded()
        defer { connectionEnded.fulfill(()) }
        switch closure {
        case .byUs(_, let reason): perform(session.connectionClosed("The connection was closed: \(reason)."))
        case .byPeer(let code, let reason):
            let text = reason.isEmpty ? "" : ": \(reason)"
            perform(session.connectionClosed("The server closed the connection (\(code))\(text)."))
        case .failed(let error):
            if !hasJoined { end(RoomError(.serverUnavailable, "\(error)")) }
            perform(session.connectionClosed("\(error)"))
        }
    }
}
