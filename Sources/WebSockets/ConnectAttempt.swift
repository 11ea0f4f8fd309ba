import CWebSockets
import MediaCore
import Threading

/// What a client's connection is made from.
///
/// Not `Sendable`: it is reached through its connection alone, whose calls check that they come on the loop's thread.
final class ConnectAttempt {
    let options: ClientOptions
    let deadline: MonotonicInstant
    /// Those not tried yet, the next one last.
    var addresses: [SocketAddress] = []
    /// Whether libwebsockets has been asked to connect to an address, and has not told of the end.
    var isBegun = false
    /// Whether TCP is connected, so that what fails from then on is the handshake.
    var isConnected = false

    init(options: ClientOptions) {
        self.options = options
        deadline = MonotonicClock.now + options.connectTimeout
    }

    var attempted: String { "connect to \(options.url)" }

    var timeOutError: WebSocketError {
        WebSocketError(
            .timedOut,
            attempted: attempted,
            advice: isConnected
                ? "the connection was made, but no WebSocket handshake came; is it the right port?"
                : "no answer within \(options.connectTimeout.seconds) s; check the address, the network and firewalls."
        )
    }

    var refusedError: WebSocketError {
        WebSocketError(
            .connectionRefused,
            attempted: attempted,
            advice: "nothing accepts connections there; check that the server runs, its address and its port."
        )
    }

    var subprotocolError: WebSocketError {
        WebSocketError(
            .subprotocolRefused,
            attempted: attempted,
            advice: "the server does not speak \(options.subprotocol); use versions of client and server that match."
        )
    }

    /// Why there was no handshake.
    ///
    /// - Parameters:
    ///   - status: The HTTP status of the answer; 0 if none came.
    ///   - subprotocol: The subprotocol that the answer names.
    ///   - text: libwebsockets' words, for the log and the user.
    /// - Returns: The error for the handler.
    func handshakeError(status: Int32, subprotocol: String, text: String) -> WebSocketError {
        guard isConnected else { return refusedError }
        // libwebsockets refuses by itself an answer that names a subprotocol which was not offered.
        if status == 101 && !subprotocol.isEmpty && subprotocol != options.subprotocol { return subprotocolError }
        let answer =
            status > 0 && status != 101 ? "the answer was HTTP status \(status)" : "no answer came (\(text))"
        return WebSocketError(
            .notAWebSocketServer,
            attempted: attempted,
            status: status > 0 ? status : nil,
            advice: "\(answer) instead of a WebSocket handshake; check the address, the port and the path."
        )
    }
}
