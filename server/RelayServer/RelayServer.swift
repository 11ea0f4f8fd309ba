package import Logging
import MediaCore
package import RelayCore
import RoomProtocol
import Threading
package import WebSockets

/// A running relay: the rooms of `RelayCore` behind a listening socket.
///
/// One thread serves all connections. Bytes go from the socket that they came from to those that they go to without
/// being copied in between, and nothing waits for anybody.
public final class RelayServer: Sendable {
    /// Where the server listens, and what it allows.
    package struct Options: Sendable {
        /// What kind of socket is listened at; `host` and `port` are those of TCP.
        package var socket = ListenerOptions.Socket.tcp
        /// A numeric address or a name of this machine.
        package var host = "127.0.0.1"
        /// The TCP port; 0 lets the system choose.
        package var port: UInt16 = 8480
        /// What peers are allowed.
        package var relay = RelaySettings()
        /// Connections at a time.
        package var maximumConnections = 2000
        /// Time for a peer to complete the handshake.
        package var handshakeTimeout: Duration = .seconds(10)
        /// Which web pages may connect, beside those that this server itself serves; programs may always.
        package var origins = OriginPolicy()
        /// When a silent peer is asked whether it lives, and when it is given up.
        package var idle = IdlePolicy()
        /// Gets a line for whoever comes, goes, publishes or is turned away.
        package var logger = Logger(label: "room-server") { _ in SwiftLogNoOpLogHandler() }

        /// The options by default.
        package init() {}
    }

    /// The version of the server.
    public static let version = Release.version

    /// How long `stop` waits for everybody to have taken the word that the server goes down.
    private static let farewellTime = Duration.milliseconds(500)

    /// The port that the server listens at; 0 of a Unix socket.
    public let port: UInt16
    /// Where clients find it, by the host that the options name; a Unix socket's path, or a word on an inherited one.
    public let url: String

    private let loop: WebSocketLoop
    private let service: LoopConfined<RelayService>

    /// Starts to listen.
    ///
    /// - Parameter options: Where, and what is allowed.
    /// - Throws: `WebSocketError` when nothing can listen there.
    package init(_ options: Options = Options()) throws(WebSocketError) {
        let logger = options.logger
        loop = try WebSocketLoop(name: "relay") { line in logger.warning("\(line)") }
        let service = LoopConfined(on: loop) {
            RelayService(
                relay: Relay(
                    settings: options.relay,
                    bootID: MonotonicClock.bootID,
                    serverName: "room-server/\(Self.version)"
                ),
                logger: logger
            )
        }
        self.service = service
        var listener = ListenerOptions(host: options.host, port: options.port)
        listener.socket = options.socket
        listener.subprotocol = WireFormat.subprotocol
        listener.maximumConnections = options.maximumConnections
        listener.handshakeTimeout = options.handshakeTimeout
        listener.idle = options.idle
        listener.origins = options.origins
        listener.limits = MessageLimits(
            maximumBinaryMessage: WireFormat.maximumBinaryMessage.bytes,
            maximumTextMessage: WireFormat.maximumTextMessage.bytes
        )
        listener.greeting = "This is a room server. Join it with: room-client connect --room my-room"
        do throws(WebSocketError) {
            port = try loop.listen(listener) { service.value }
            url =
                switch options.socket {
                case .tcp: "ws://\(WebSocketURL.authority(host: options.host, port: port))"
                case .unix(let path): path
                case .inherited: port == 0 ? "the inherited Unix socket" : "the inherited socket, port \(port)"
                }
        } catch {
            loop.shutdown()
            throw error
        }
        loop.execute { [weak loop] in
            // Weakly, because the service keeps this.
            service.value.begin { [weak service] time in
                loop?.setAlarm(at: time) { [weak service] in service?.value.timerFired() }
            }
        }
    }

    /// Whether a server that listens at `host` is reached from other machines; `false`, too, where nothing can listen.
    ///
    /// May ask a name server if `host` is a name.
    package static func isReachableFromElsewhere(host: String) -> Bool {
        ListenerOptions(host: host, port: 0).isReachableFromElsewhere
    }

    /// Whether the listening socket `inherited` is reached from other machines.
    package static func isReachableFromElsewhere(inherited: Int32) -> Bool {
        var options = ListenerOptions()
        options.socket = .inherited(descriptor: inherited)
        return options.isReachableFromElsewhere
    }

    /// How many of everything there are.
    package func statistics() async -> RelayStatistics {
        await withCheckedContinuation { continuation in
            loop.execute { [service] in continuation.resume(returning: service.value.statistics) }
        }
    }

    /// What became of the packets of all subscriptions so far, and why some were not sent.
    package func packetCounts() async -> PacketCounts {
        await withCheckedContinuation { continuation in
            loop.execute { [service] in continuation.resume(returning: service.value.packetCounts) }
        }
    }

    /// Tells everybody that the server goes down, closes all connections and ends the thread; blocks until then.
    ///
    /// Any thread but the loop's. Takes up to 1.5 s, if peers do not read or do not answer.
    public func stop() {
        let isEmpty = Monitor(false)
        loop.execute { [service] in
            service.value.shutDown { isEmpty.change { $0 = true } }
        }
        // Those who read take their leave within a moment; those who don't are not waited for.
        _ = isEmpty.wait(until: MonotonicClock.now + Self.farewellTime) { $0 ? true : nil }
        loop.shutdown()
    }
}
