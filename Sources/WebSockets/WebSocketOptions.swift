import Glibc

/// How much a peer may send in one message, fragments together.
package struct MessageLimits: Sendable {
    /// Bytes of a binary message; default 16,000, the longest chunk of a media packet (the wire format's limit).
    package var maximumBinaryMessage: Int
    /// Bytes of a text message; default 64 KiB, ample for signaling.
    package var maximumTextMessage: Int

    /// Limits, by default those of the wire format.
    package init(maximumBinaryMessage: Int = 16_000, maximumTextMessage: Int = 65_536) {
        self.maximumBinaryMessage = maximumBinaryMessage
        self.maximumTextMessage = maximumTextMessage
    }
}

/// When a silent peer is asked whether it lives, and when it is given up.
package struct IdlePolicy: Sendable {
    /// Silence after which a ping is sent; default 10 s, well below the idle limits of home routers.
    package var pingAfter: Duration
    /// Silence after which the connection is ended; default 30 s, so that two pings may get lost in a stall.
    package var hangUpAfter: Duration

    /// A policy; any message or pong from the peer ends its silence.
    package init(pingAfter: Duration = .seconds(10), hangUpAfter: Duration = .seconds(30)) {
        self.pingAfter = pingAfter
        self.hangUpAfter = hangUpAfter
    }
}

/// Where and how a loop accepts connections.
package struct ListenerOptions: Sendable {
    /// What kind of socket is listened at.
    package enum Socket: Equatable, Sendable {
        /// TCP, at `host` and `port`.
        case tcp
        /// A Unix socket at a path of at most 107 bytes.
        ///
        /// It is made anew if nobody listens at one that is there, and stays behind in the end.
        case unix(path: String)
        /// One that this process was started with and that listens already, such as one of systemd's (`LISTEN_FDS`).
        case inherited(descriptor: Int32)
    }

    /// What kind of socket is listened at.
    package var socket = Socket.tcp
    /// A numeric address (IPv4 or IPv6) or a name of this machine; "::" takes IPv4 as well.
    package var host: String
    /// The TCP port; 0 lets the system choose one.
    package var port: UInt16
    /// The subprotocol that is spoken.
    package var subprotocol = "room.v1"
    /// Subprotocols that are accepted only so that the handler can refuse them with a close code and a sentence.
    ///
    /// A client that offers none is accepted as well; one that offers only names of neither list is hung up on. Of
    /// several known names that a client offers, the first is taken.
    package var refusedSubprotocols = ["room.v0"] + (2...9).map { "room.v\($0)" }
    /// Which web pages may connect; others get HTTP 403.
    package var origins = OriginPolicy()
    /// What a browser's plain GET of "/" is answered with.
    package var greeting = "This is a WebSocket server."
    /// Connections at a time, those in their handshake included; beyond, a peer gets HTTP 503.
    ///
    /// The process's limit of open files (`ulimit -n`), less a reserve, applies on top.
    package var maximumConnections = 1000
    /// Time for a peer to complete the handshake; default 10 s.
    package var handshakeTimeout = Duration.seconds(10)
    /// How much a peer may send in one message.
    package var limits = MessageLimits()
    /// When a silent peer is hung up on.
    package var idle = IdlePolicy()

    /// Listening at `host` and `port`, by default on this machine alone at a free port.
    package init(host: String = "127.0.0.1", port: UInt16 = 0) {
        self.host = host
        self.port = port
    }

    /// Where is listened, for errors: "127.0.0.1:8480", a path or a number.
    var place: String {
        switch socket {
        case .tcp: WebSocketURL.authority(host: host, port: port)
        case .unix(let path): path
        case .inherited(let descriptor): "the inherited socket \(descriptor)"
        }
    }

    /// Whether other machines can reach one of the addresses of `host`, or an inherited socket; not if there is none.
    ///
    /// May ask a name server if `host` is a name.
    package var isReachableFromElsewhere: Bool {
        switch socket {
        case .tcp: break
        case .unix: return false
        case .inherited(let descriptor):
            let address = SocketAddress(localOf: descriptor)
            return address.family != AF_UNIX && !address.isLoopback
        }
        guard case .success(let addresses) = SocketAddress.resolve(host: host, port: port, isForListening: true) else {
            return false
        }
        return !addresses.allSatisfy(\.isLoopback)
    }
}

/// Where and how to connect.
package struct ClientOptions: Sendable {
    /// The server; `WebSocketURL.init` parses and checks it.
    package var url: WebSocketURL
    /// The subprotocol that is offered; a server that does not take it is left again.
    package var subprotocol = "room.v1"
    /// Time for name look-up, connection and handshake together; default 5 s.
    package var connectTimeout = Duration.seconds(5)
    /// How much the server may send in one message.
    package var limits = MessageLimits()
    /// When a silent server is hung up on.
    package var idle = IdlePolicy()

    /// Connecting to `url`.
    package init(url: WebSocketURL) {
        self.url = url
    }
}
