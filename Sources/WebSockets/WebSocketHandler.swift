package import MediaCore

/// The application's side of a connection; all calls are made on the loop's thread.
package protocol WebSocketHandler: AnyObject {
    /// The handshake is done; messages can go both ways.
    func opened(_ connection: WebSocketConnection)

    /// Bytes of a message have arrived at `now`: a part of it, or all of it.
    ///
    /// Called for each part as it comes, before the message is looked at or waits for its turn.
    func receivedBytes(_ count: Int, from connection: WebSocketConnection, at now: MonotonicInstant)

    /// A whole text message of valid UTF-8 has arrived.
    func receivedText(_ text: String, from connection: WebSocketConnection)

    /// A whole binary message has arrived; only the handler holds the buffer.
    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection)

    /// A pong has arrived at `now`: the answer to `WebSocketConnection.ping`, or to a ping in a long silence.
    func answeredPing(_ connection: WebSocketConnection, at now: MonotonicInstant)

    /// Returns the next message; the socket can take one now.
    ///
    /// Called after `requestWrite()`, repeatedly until it returns `nil` or the last one, or the socket is full. The
    /// choice is made as late as possible: directly before the messages of all connections are sent. `now` is the time
    /// when the round began in which all of them are asked; reading the clock for each would cost a few per cent of a
    /// relay's time.
    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn?

    /// The connection has ended, or could not be made.
    ///
    /// Called exactly once for each opened connection and each failed `connect`; no other call follows.
    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure)
}

extension WebSocketHandler {
    /// By default the bytes of whole messages are enough.
    package func receivedBytes(_ count: Int, from connection: WebSocketConnection, at now: MonotonicInstant) {}

    /// By default nobody waits for answers.
    package func answeredPing(_ connection: WebSocketConnection, at now: MonotonicInstant) {}
}

/// How a connection ended.
package enum WebSocketClosure: Equatable, Sendable {
    /// The peer closed; code 1005 means that it sent no code (RFC 6455, section 7.1.5).
    case byPeer(code: UInt16, reason: String)
    /// This side closed, by `close`, `OutgoingMessage.close` or `shutdown` (1001).
    case byUs(code: UInt16, reason: String)
    /// Something else ended it, or prevented it from opening.
    case failed(WebSocketError)
}

extension WebSocketClosure: CustomStringConvertible {
    /// The side that closed the connection, with code and reason; always one line, even if the peer's reason has
    /// several.
    package var description: String {
        switch self {
        case .byPeer(let code, let reason): "closed by the peer (\(Self.details(code, reason)))"
        case .byUs(let code, let reason): "closed by this side (\(Self.details(code, reason)))"
        case .failed(let error): "\(error)"
        }
    }

    private static func details(_ code: UInt16, _ reason: String) -> String {
        reason.isEmpty ? "\(code)" : "\(code), \(reason.debugDescription)"
    }
}
