import Glibc

/// The most that a peer may send in one message, all its fragments together.
package struct MessageLimits: Sendable {
    /// The most bytes of a binary message; default 16,000, the wire format's limit for a media packet.
    package var maximumBinaryMessage: Int
    /// The most bytes of a text message; default 64 KiB, which is ample for signaling.
    package var maximumTextMessage: Int

    /// Creates limits; the defaults are those of the wire format.
    package init(maximumBinaryMessage: Int = 16_000, maximumTextMessage: Int = 65_536) {
        self.maximumBinaryMessage = maximumBinaryMessage
        self.maximumTextMessage = maximumTextMessage
    }
}

/// When a silent peer is pinged, and when its connection is ended.
package struct IdlePolicy: Sendable {
    /// The silence after which a ping is sent; default 10 s, well below the idle limits of home routers.
    package var pingAfter: Duration
    /// The silence after which the connection is ended; default 30 s, so that two pings may get lost in a stall.
    package var hangUpAfter: Duration
    /// The silence after which the connection is ended although the peer's machine still answers; never less than
    /// `hangUpAfter`, its default.
    ///
    /// The peer's kernel acknowledges what it receives (TCP) also while the peer's program is stopped. On a Unix socket
    /// there are no such acknowledgements, and this longer time applies.
    package var hangUpStoppedAfter: Duration

    /// Creates a policy; any message or pong from the peer ends its silence.
    package init(
        pingAfter: Duration = .seconds(10),
        hangUpAfter: Duration = .seconds(30),
        hangUpStoppedAfter: Duration? = nil
    ) {
        self.pingAfter = pingAfter
        self.hangUpAfter = hangUpAfter
        self.hangUpStoppedAfter = max(hangUpAfter, hangUpStoppedAfter ?? hangUpAfter)
    }
}

/// Where a loop listens for connections, and how it accepts them.
package struct ListenerOptions: Sendable {
    /// The kinds of listening socket.
    package enum Socket: Equatable, Sendable {
        /// TCP, at `host` and `port`.
        case tcp
        /// A Unix socket at a path of at most 107 bytes.
        ///
        /// If there is a socket at the path at which nobody listens, it is replaced. The socket's file remains after
        /// the end.
        case unix(path: String)
        /// A listening socket that this process inherited, such as one from systemd (`LISTEN_FDS`).
        case inherited(descriptor: Int32)
    }

    /// The kind of socket to listen at.
    package var socket = Socket.tcp
    /// A numeric address (IPv4 or IPv6) or a name of this machine; "::" takes IPv4 as well.
    package var host: String
    /// The TCP port; 0 lets the system choose one.
    package var port: UInt16
    /// Whether `host` must not be reachable from other machines; else listening there is an error.
    package var isLoopbackOnly = false
    /// The subprotocol that the handler speaks.
    package var subprotocol = "room.v1"
    /// Subprotocols that are accepted only so that the handler can refuse them with a close code and a sentence.
    ///
    /// A client that offers no subprotocol is accepted as well. A client that offers only names of neither list is
    /// disconnected. If a client offers several known names, its first one is used.
    package var refusedSubprotocols = ["room.v0"] + (2...9).map { "room.v\($0)" }
    /// The web pages that may connect; others get HTTP 403.
    package var origins = OriginPolicy()
    /// The answer to a browser's plain GET of "/".
    package var greeting = "This is a WebSocket server."
    /// The most connections at a time, including those in their handshake; further peers get HTTP 503.
    ///
    /// The process's limit of open files (`ulimit -n`), less a reserve, applies as well.
    package var maximumConnections = 1000
    /// The time within which a peer must complete the handshake; default 10 s.
    package var handshakeTimeout = Duration.seconds(10)
    /// The time that a peer has to take our close message and answer it before it is cut off; `nil` for the loop's.
    package var closeGrace: Duration?
    /// The most that a peer may send in one message.
    package var limits = MessageLimits()
    /// When a silent peer is pinged and disconnected.
    package var idle = IdlePolicy()
    /// The TCP congestion control of the connections; see `ClientOptions.congestionControl`.
    package var congestionControl: String?

    /// Creates options for listening at `host` and `port`; by default on this machine only, at a free port.
    package init(host: String = "127.0.0.1", port: UInt16 = 0) {
        self.host = host
        self.port = port
    }

    /// The place to listen at, for errors: "127.0.0.1:8480", a path or a number.
    var place: String {
        switch socket {
        case .tcp: WebSocketURL.authority(host: host, port: port)
        case .unix(let path): path
        case .inherited(let descriptor): "the inherited socket \(descriptor)"
        }
    }

    /// Whether other machines can reach an address of `host`, or an inherited socket; `false` if there is none.
    ///
    /// May ask a name server if `host` is a name.
    package var isReachableFromElsewhere: Bool {
        switch socket {
        case .tcp: break
        case .unix: return false
        case .inherited(let descriptor):
            let address = SocketAddress(localOf: descriptor)
            return ![AF_UNSPEC, AF_UNIX].contains(address.family) && !address.isLoopback
        }
        guard case .success(let addresses) = SocketAddress.resolve(host: host, port: port, isForListening: true) else {
            return false
        }
        return !addresses.allSatisfy(\.isLoopback)
    }
}

/// The server to connect to, and the limits.
package struct ClientOptions: Sendable {
    /// The server; `WebSocketURL.init` parses and checks it.
    package var url: WebSocketURL
    /// The subprotocol to offer; the client disconnects from a server that does not accept it.
    package var subprotocol = "room.v1"
    /// The time for the look-up of the server's name; default 12 s.
    ///
    /// The C library waits 5 s for each name server that is silent before it asks the next one (resolv.conf(5)).
    package var lookupTimeout = Duration.seconds(12)
    /// The time for connection and handshake together, after the look-up; default 5 s.
    ///
    /// An address that does not answer gives way to the next one after at most 1 s, and is tried again after the last.
    package var connectTimeout = Duration.seconds(5)
    /// The most that the server may send in one message.
    package var limits = MessageLimits()
    /// When a silent server is pinged and disconnected.
    package var idle = IdlePolicy()
    /// The name of the connection's TCP congestion control, such as "cubic"; `nil` for that of the system.
    ///
    /// If the system refuses it, its own stays; `TCPPath.isUsable(congestionControl:)` tells.
    package var congestionControl: String?

    /// Creates options for connecting to `url`.
    package init(url: WebSocketURL) {
        self.url = url
    }
}
