import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// What the room's connection reports, apart from packets; see `PacketPath`.
extension Room {
    func connectionOpened() {
        link.joinSent = MonotonicClock.now
        perform(link.session.connectionOpened(at: link.joinSent))
    }

    func received(_ text: String) {
        perform(link.session.received(text, at: MonotonicClock.now))
    }

    func connectionClosed(_ closure: WebSocketClosure) {
        defer { link.connectionEnded.fulfill(()) }
        if let recorder { finishLater { await recorder.close() } }
        switch closure {
        case .byUs(_, let reason): perform(link.session.connectionClosed("The connection was closed: \(reason)."))
        case .byPeer(let code, let reason):
            perform(link.session.connectionClosed(byServerWith: Int(code), reason))
        case .failed(let error) where [.messageTooLarge, .invalidText].contains(error.code):
            perform(link.session.violated("\(error)"))
        case .failed(let error):
            if !link.hasJoined { end(RoomError(.serverUnavailable, "\(error)")) }
            perform(link.session.connectionClosed("\(error)"))
        }
    }
}
