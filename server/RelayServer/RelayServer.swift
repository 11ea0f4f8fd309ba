package import Logging
import MediaCore
package import RelayCore
import RoomProtocol
import Threading
package import WebSockets

/// A running relay: the rooms of `RelayCore` behind a listening socket.
///
/// One thread serves all connections. Media bytes are copied once, out of the socket's buffer, however many sockets
/// send them on. Nothing on the thread waits for a peer.
public final class RelayServer: Sendable {
    /// Where the server listens, and its limits.
    package struct Options: Sendable {
        /// The kind of socket to listen at; `host` and `port` are used for TCP.
        package var socket = ListenerOptions.Socket.tcp
        /// A numeric address or a name of this machine.
        package var host = "127.0.0.1"
        /// The TCP port; 0 lets the system choose.
        package var port: UInt16 = 8480
        /// Whether `host` must not be reachable from other machines; else the server does not start.
        package var isLoopbackOnly = false
        /// The limits for peers.
        package var relay = RelaySettings()
        /// The most connections at a time.
        package var maximumConnections = 2000
        /// Time for a peer to complete the handshake.
        package var handshakeTimeout: Duration = .seconds(10)
        /// The web pages that may connect, besides those that this server itself serves; programs may always connect.
        package var origins = OriginPolicy()
        /// When a silent peer is pinged, and when its connection is ended.
        ///
        /// The 45 s let a program go on in its session after it was stopped, or did not read, for half a minute. A peer
        /// whose machine has gone is let go after 30 s.
        package var idle = IdlePolicy(hangUpStoppedAfter: .seconds(45))
        /// The TCP congestion control of the connections, if the system allows it; `nil` for the system's own.
        package var congestionControl: String? = TCPPath.latencyControl
        /// Gets a line for each peer that joins, leaves, publishes or is refused.
        package var logger = Logger(label: "room-server") { _ in SwiftLogNoOpLogHandler() }

        /// Creates the default options.
        package init() {}
    }

    /// The version of the server.
    public static let version = Release.version

    /// How long `stop` waits for all peers to take the message that the server is going down.
    private static let farewellTime = Duration.milliseconds(500)

    /// Where the server listens.
    package let address: ListeningAddress
    /// The port that the server listens at; 0 for a Unix socket.
    public var port: UInt16 { address.port }
    /// The URL for clients, with the host of the options; for a Unix socket its path, for an inherited one a
    /// description.
    public let url: String

    private let loop: WebSocketLoop
    private let service: LoopConfined<RelayService>

    /// Starts to listen.
    ///
    /// - Parameter options: Where to listen, and the server's limits.
    /// - Throws: `WebSocketError` when the server cannot listen there.
    package init(_ options: Options = Options()) throws(WebSocketError) {
        let logger = options.logger
        let descriptors = min(options.maximumConnections, DescriptorLimit.largest) + DescriptorLimit.reserve
        let allowed = DescriptorLimit.raise(to: descriptors)
        if allowed < descriptors {
            let limit = "the system's limit of open files is \(allowed) (ulimit -n)"
            logger.warning("\(limit): the server takes \(max(1, allowed - DescriptorLimit.reserve)) connections")
        }
        loop = try WebSocketLoop(name: "relay") { line in logger.warning("\(line)") }
        let service = LoopConfined(on: loop) {
            RelayService(
                relay: Relay(
                    settings: options.relay,
                    videoCodecs: VideoCodec.all,
                    bootID: MonotonicClock.bootID,
                    serverName: "room-server/\(Self.version)"
                ),
                logger: logger
            )
        }
        self.service = service
        var listener = ListenerOptions(host: options.host, port: options.port)
        listener.isLoopbackOnly = options.isLoopbackOnly
        listener.closeGrace = options.relay.closeTimeout
        listener.socket = options.socket
        listener.subprotocol = WireFormat.subprotocol
        listener.maximumConnections = options.maximumConnections
        listener.handshakeTimeout = options.handshakeTimeout
        listener.idle = options.idle
        listener.congestionControl = options.congestionControl
        listener.origins = options.origins
        listener.limits = MessageLimits(
            maximumBinaryMessage: WireFormat.maximumBinaryMessage.bytes,
            maximumTextMessage: WireFormat.maximumTextMessage.bytes
        )
        listener.greeting = "This is a room server. Join it with: room-client connect --room my-room"
        do throws(WebSocketError) {
            address = try loop.listen(listener) { service.value }
            url =
                switch options.socket {
                case .tcp: "ws://\(WebSocketURL.authority(host: options.host, port: address.port))"
                case .unix(let path): path
                case .inherited:
                    address.port == 0 ? "the inherited Unix socket" : "the inherited socket, port \(address.port)"
                }
        } catch {
            loop.shutdown()
            throw error
        }
        loop.execute { [weak loop] in
            // The reference is weak because the service keeps this closure.
            service.value.begin { [weak service] time in
                loop?.setAlarm(at: time) { [weak service] in service?.value.timerFired() }
            }
        }
    }

    /// Whether other machines can reach a server that listens at `host`; `false` also if no server can listen there.
    ///
    /// May ask a name server if `host` is a name.
    package static func isReachableFromElsewhere(host: String) -> Bool {
        ListenerOptions(host: host, port: 0).isReachableFromElsewhere
    }

    /// Whether other machines can reach the listening socket `inherited`.
    package static func isReachableFromElsewhere(inherited: Int32) -> Bool {
        var options = ListenerOptions()
        options.socket = .inherited(descriptor: inherited)
        return options.isReachableFromElsewhere
    }

    /// The numbers of connections, rooms and tracks, and the memory of stored packets.
    package func statistics() async -> RelayStatistics {
        await withCheckedContinuation { continuation in
            loop.execute { [service] in continuation.resume(returning: service.value.statistics) }
        }
    }

    /// The counts of packets sent and not sent, by reason, for all subscriptions so far.
    package func packetCounts() async -> PacketCounts {
        await withCheckedContinuation { continuation in
            loop.execute { [service] in continuation.resume(returning: service.value.packetCounts) }
        }
    }

    /// Tells all peers that the server is going down, closes all connections and ends the thread; blocks until then.
    ///
    /// May be called on any thread except the loop's. Takes up to 1.5 s if peers do not read or do not answer.
    public func stop() {
        let isEmpty = Monitor(false)
        loop.execute { [service] in
            service.value.shutDown { isEmpty.change { $0 = true } }
        }
        // Peers that read leave within a moment; the server does not wait longer for the others.
        _ = isEmpty.wait(until: MonotonicClock.now + Self.farewellTime) { $0 ? true : nil }
        loop.shutdown()
    }
}
