/// A message for one peer, from what decides on it to the socket; the case says who else may hold its bytes.
package enum OutgoingMessage: Sendable {
    /// A text message.
    case text(String)
    /// A binary message that others may hold too, and that does not change.
    ///
    /// A listener's connections require that it has been through `WebSocketConnection.frameForSharing`; nothing is
    /// copied then. A client's connection copies it, because a client masks what it sends.
    case shared(PacketBuffer)
    /// A binary message that nobody else reads; its content is undefined afterwards.
    ///
    /// The header is written directly before it, and a client masks it in place. Nothing is copied on either side.
    case exclusive(PacketBuffer)
    /// No message: close the connection after all earlier messages, as `WebSocketConnection.close` does.
    case close(code: UInt16, reason: String)

    /// The message that a connection sends next, and whether it has nothing more to send until it asks to be called.
    ///
    /// A tuple, because taking a structure apart would retain the message and release it again.
    package typealias Turn = (message: OutgoingMessage, isLast: Bool)
}
