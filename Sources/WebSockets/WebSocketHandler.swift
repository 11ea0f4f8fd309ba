package import MediaCore

/// What lives behind a connection; every call comes on the loop's thread.
package protocol WebSocketHandler: AnyObject {
    /// The handshake is done; messages may go both ways.
    func opened(_ connection: WebSocketConnection)

    /// A whole text message, valid UTF-8, arrived.
    func receivedText(_ text: String, from connection: WebSocketConnection)

    /// A whole binary message arrived; the handler is the buffer's only holder.
    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection)

    /// Whether `nextMessage` is worth a call; `false` only if it would say `nil`, and then counts as that answer.
    ///
    /// Asked after each message.
    func hasMessage(for connection: WebSocketConnection) -> Bool

    /// The socket can take a message: what shall it be?
    ///
    /// Asked after `requestWrite()`, repeatedly until it says `nil` or the socket is full, so the choice is made as
    /// late as possible: just before all that have something to say are sent it.
    func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage?

    /// The connection has ended, or could not be made.
    ///
    /// Called exactly once for each connection that was opened and each `connect` that failed; nothing follows it.
    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure)
}

extension WebSocketHandler {
    /// By default a call of `nextMessage` is always worth it.
    package func hasMessage(for connection: WebSocketConnection) -> Bool { true }
}

/// A message to send, and who else holds its bytes.
package enum OutgoingMessage {
    /// A text message.
    case text(String)
    /// A binary message that others may hold too, and that stays unchanged.
    ///
    /// On a listener's connections it must have been through `WebSocketConnection.frameForSharing`, and nothing is
    /// copied. On a client's connections it is copied, because a client masks what it sends.
    case shared(PacketBuffer)
    /// A binary message that nobody else holds; afterwards its content is undefined.
    ///
    /// The header is written before it, and a client masks it in place; nothing is copied on either side.
    case exclusive(PacketBuffer)
    /// No message: end the connection, after all that was sent before; as `WebSocketConnection.close`.
    case close(code: UInt16, reason: String)
}

/// How a connection ended.
package enum WebSocketClosure: Equatable, Sendable {
    /// The peer closed; code 1005 means that it gave none (RFC 6455, section 7.1.5).
    case byPeer(code: UInt16, reason: String)
    /// This side closed by `close`, `OutgoingMessage.close` or (1001) `shutdown`.
    case byUs(code: UInt16, reason: String)
    /// Something else ended it, or kept it from being opened.
    case failed(WebSocketError)
}
