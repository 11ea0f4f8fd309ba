import CWebSockets
import MediaCore

/// A whole message that waits for its connection's turn.
enum DeferredMessage {
    case text(String)
    case binary(PacketBuffer)
}

/// Hands out a few text messages of each peer in each turn of the loop, so that a flood delays nobody else.
///
/// Depth: the messages of one read from the socket (`ProtocolTable`), or of two for a peer that also
/// sends media; nothing more is read from the peer in the next turns while messages wait. Drop rule: what still waits
/// when we close is dropped, and so is what waits of a client that closes. A server's messages are not: the last one
/// says why it closes. A connection's messages stay in order.
extension WebSocketConnection {
    /// Passes a text message to the handler, now or in a later turn.
    func takeText(_ text: String) {
        if deferred.isEmpty && service.admitsText(of: self) {
            handler?.receivedText(text, from: self)
        } else {
            deferMessage(.text(text))
        }
    }

    /// Passes a binary message to the handler: now, unless text messages before it wait.
    ///
    /// A client that sends media at a publisher's rate is read even in the middle of a long turn.
    func takeBinary(_ message: PacketBuffer) {
        if case .accepted = role, message.count > Self.longestControlMessage {
            let isMedia = mediaConduct.messageArrived(at: lastHeard)
            if isMedia && !isMediaSocket { service.mediaSockets?.insert(self) }
            if !isMedia && isMediaSocket { service.mediaSockets?.remove(self) }
        }
        if deferred.isEmpty {
            handler?.receivedBinary(message, from: self)
        } else {
            deferMessage(.binary(message))
        }
    }

    /// Binary messages of up to this many bytes are no media: acknowledgements, which every viewer sends.
    private static let longestControlMessage = 64

    private func deferMessage(_ message: DeferredMessage) {
        if deferred.isEmpty { service.deferred(self) }
        deferred.append(message)
    }

    /// Passes waiting messages to the handler, at most `count` texts among them.
    func deliverDeferred(atMost count: Int) {
        var texts = 0
        var next = 0
        // The handler may close the connection, which empties the list.
        while phase == .open, next < deferred.count {
            switch deferred[next] {
            case .text(let text):
                guard texts < count else {
                    deferred.removeFirst(next)
                    return
                }
                texts += 1
                next += 1
                handler?.receivedText(text, from: self)
            case .binary(let message):
                next += 1
                handler?.receivedBinary(message, from: self)
            }
        }
        deferred = []
    }

    /// Passes all that waits to the handler, if the peer is a server: it has ended, and nothing comes after.
    func deliverLast() {
        if case .connecting = role { deliverDeferred(atMost: .max) }
    }

    /// Starts or stops reading from the peer.
    func setReading(_ isReading: Bool) {
        guard let wsi = unsafe wsi, phase == .open || isReading else { return }
        _ = unsafe lws_rx_flow_control(wsi, isReading ? 1 : 0)
    }
}
