/// The error of a loop, a listener or a connection.
package struct WebSocketError: Error, Equatable, Sendable {
    /// The kind of failure, for programs.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// A stable name.
        package let description: String

        /// Another program listens at the address.
        package static let addressInUse = Code(description: "addressInUse")
        /// The system does not let this user listen at the port or path.
        package static let permissionDenied = Code(description: "permissionDenied")
        /// The address to listen at is not one of this machine, or no address at all.
        package static let badAddress = Code(description: "badAddress")
        /// The directory of a Unix socket does not exist.
        package static let noSuchDirectory = Code(description: "noSuchDirectory")
        /// The URL cannot be read.
        package static let badURL = Code(description: "badURL")
        /// The URL asks for TLS.
        package static let tlsNotSupported = Code(description: "tlsNotSupported")
        /// The host's name does not resolve.
        package static let unknownHost = Code(description: "unknownHost")
        /// Nothing accepts connections there, or the network has no route to it.
        package static let connectionRefused = Code(description: "connectionRefused")
        /// There was no connection, or no answer to the handshake, in time.
        package static let timedOut = Code(description: "timedOut")
        /// The peer is not a WebSocket server, or refused; `status` is its HTTP status, if any.
        package static let notAWebSocketServer = Code(description: "notAWebSocketServer")
        /// The server does not accept the offered subprotocol.
        package static let subprotocolRefused = Code(description: "subprotocolRefused")
        /// The connection ended without a close message.
        package static let connectionLost = Code(description: "connectionLost")
        /// The peer was silent for too long.
        package static let idleTimeout = Code(description: "idleTimeout")
        /// The peer sent a message above the limit, and got the close code 1009.
        package static let messageTooLarge = Code(description: "messageTooLarge")
        /// The peer sent text that is not UTF-8, and got the close code 1007.
        package static let invalidText = Code(description: "invalidText")
        /// The loop has been shut down, or is shutting down.
        package static let shutDown = Code(description: "shutDown")
        /// A system call or libwebsockets failed in another way.
        package static let systemFailure = Code(description: "systemFailure")
    }

    /// The kind of failure.
    package let code: Code
    /// What was attempted, such as "listen at 127.0.0.1:8480".
    package let attempted: String
    /// The `errno`, HTTP status or `getaddrinfo` status, if there is one.
    package let status: Int32?
    /// What happened and what to do about it, as a sentence.
    private let advice: String

    /// Creates an error of kind `code`; `advice` is a sentence that says what to do.
    package init(_ code: Code, attempted: String, status: Int32? = nil, advice: String) {
        self.code = code
        self.attempted = attempted
        self.status = status
        self.advice = advice
    }
}

extension WebSocketError: CustomStringConvertible {
    /// One line: what was attempted, what happened, what to do.
    package var description: String { "Cannot \(attempted)\(systemWords): \(advice)" }

    /// The system's own words for the status, if the advice does not contain them.
    private var systemWords: String {
        guard let status, [.addressInUse, .permissionDenied, .badAddress, .noSuchDirectory].contains(code) else {
            return ""
        }
        // The numbers of `getaddrinfo` are negative, and the advice contains its words.
        return status > 0 ? " (\(systemText(status)))" : ""
    }
}

extension WebSocketError {
    static func shutDown(_ attempted: String) -> WebSocketError {
        WebSocketError(.shutDown, attempted: attempted, advice: "this program is shutting its connections down.")
    }

    static func system(_ attempted: String, status: Int32?, advice: String) -> WebSocketError {
        WebSocketError(.systemFailure, attempted: attempted, status: status, advice: advice)
    }
}
