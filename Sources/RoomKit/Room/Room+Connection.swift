package import MediaCore
import RoomProtocol
import Threading
package import WebSockets

/// The callbacks of the connection; they are called on the loop's thread, which is also the room's executor.
extension Room: WebSocketHandler {
    package nonisolated func opened(_ connection: WebSocketConnection) {
        assumeIsolated { room in
            room.path.value.connection = connection
            room.link.joinSent = MonotonicClock.now
            room.perform(room.link.session.connectionOpened(at: room.link.joinSent))
        }
    }

    package nonisolated func receivedText(_ text: String, from connection: WebSocketConnection) {
        let now = MonotonicClock.now
        path.value.receivedText(text.utf8.count, at: now)
        assumeIsolated { room in room.perform(room.link.session.received(text, at: now)) }
    }

    package nonisolated func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        // A packet that breaks the wire format is dropped, with its frame. Later packets may be good.
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
        defer { link.connectionEnded.fulfill(()) }
        switch closure {
        case .byUs(_, let reason): perform(link.session.connectionClosed("The connection was closed: \(reason)."))
        case .byPeer(let code, let reason):
            let text = reason.isEmpty ? "" : ": \(reason)"
            perform(link.session.connectionClosed("The server closed the connection (\(code))\(text)."))
        case .failed(let error) where [.messageTooLarge, .invalidText].contains(error.code):
            perform(link.session.violated("\(error)"))
        case .failed(let error):
            if !link.hasJoined { end(RoomError(.serverUnavailable, "\(error)")) }
            perform(link.session.connectionClosed("\(error)"))
        }
    }
}
