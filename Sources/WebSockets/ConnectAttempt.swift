import CWebSockets
import MediaCore
import Threading

/// What a client's connection is made from; confined to the loop's thread.
final class ConnectAttempt: @unchecked Sendable {
    // `@unchecked Sendable`: its thread rule; closures that run on the loop hold it.

    let options: ClientOptions
    let deadline: MonotonicInstant
    /// Those not tried yet, the next one last.
    var addresses: [SocketAddress] = []
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

    /// What libwebsockets' `text` and the HTTP `status` of the answer say.
    func handshakeError(text: String, status: Int32) -> WebSocketError {
        guard isConnected else { return refusedError }
        if status == 101 && text.contains("rotocol") || text.contains("PROTOCOL") { return subprotocolError }
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
