import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

/// What happened on a loop, in its order.
private typealias Order = Monitor<[String]>

extension Order {
    fileprivate func note(_ name: String) { change { $0.append(name) } }
}

/// The time in which a loop ran: a tenth of a second that it was held up does not count.
///
/// Each alarm is set when the one before has rung, and the loop's timers run out in their order. So a machine that stands
/// still, or has much to do, moves this clock as little as what is measured with it.
private final class LoopClock: @unchecked Sendable {
    // `@unchecked Sendable`: all of it is used on the loop alone.

    private let loop: WebSocketLoop
    private(set) var tenths = 0

    init(_ loop: WebSocketLoop) { self.loop = loop }

    func start() {
        loop.setAlarm(at: MonotonicClock.now + .milliseconds(100)) { [self] in
            tenths += 1
            start()
        }
    }
}

@Suite("Peers that do not take what they are sent", .timeLimit(.minutes(3)))
struct StuckPeerTests {
    /// A server with a peer that reads nothing, and more for it than sockets and libwebsockets take at once.
    private func stuckPeer(settings: LoopSettings) throws -> (server: Server, peer: RawPeer, handler: Recorder) {
        let server = try Server(echoes: false, settings: settings)
        let peer = try RawPeer(port: server.port, receiveBuffer: 16_384)
        _ = peer.handshake()
        let handler = try server.handler()
        server.loop.execute { for _ in 0..<1000 { handler.send(.shared([UInt8](repeating: 7, count: 16_000))) } }
        // Until libwebsockets holds what the socket does not take.
        while !server.onLoop({ handler.connection?.hasUnsentBytes == true }) { usleep(1000) }
        return (server, peer, handler)
    }

    /// Less than the 5 s after which libwebsockets gives up.
    private let limit = 20

    /// libwebsockets went on sending for 5 s, or for as long as nothing happened on the loop.
    @Test("A peer that does not take our close message is cut off when the time for that is over")
    func closeGrace() throws {
        var settings = LoopSettings()
        settings.closeGrace = .milliseconds(100)
        let (server, peer, handler) = try stuckPeer(settings: settings)
        defer { server.loop.shutdown() }
        let (clock, ended) = (LoopClock(server.loop), Monitor<Int?>(nil))
        server.loop.execute {
            handler.whenClosed = { ended.change { $0 = clock.tenths } }
            clock.start()
            handler.connection?.close(code: 4000, reason: "enough")
        }
        #expect(try #require(ended.waitPatiently { $0 }) < limit)
        #expect(try handler.closure() == .byUs(code: 4000, reason: "enough"))
        _ = peer.receiveAll()
    }

    @Test("Hanging up on a peer that reads nothing does not wait, and its handler hears of it later")
    func hangUp() throws {
        let (server, peer, handler) = try stuckPeer(settings: LoopSettings())
        defer { server.loop.shutdown() }
        let (clock, ended, order) = (LoopClock(server.loop), Monitor<Int?>(nil), Order([]))
        server.loop.execute {
            handler.whenClosed = {
                order.note("hung up")
                ended.change { $0 = clock.tenths }
            }
            clock.start()
            handler.connection?.hangUp(reason: "it reads nothing.")
            order.note("returned")
        }
        #expect(try #require(ended.waitPatiently { $0 }) < limit)
        #expect(order.withLock { $0 } == ["returned", "hung up"])
        guard case .failed(let error) = try handler.closure() else { throw TestFailure("it did not fail") }
        #expect(error.code == .connectionLost && "\(error)".contains("it reads nothing."))
        _ = peer.receiveAll()
    }

    /// libwebsockets read the end again in each turn of the loop, for 5 s, at a full core's cost.
    @Test("A peer that reads nothing and says that it sends nothing more is cut off")
    func halfClosed() throws {
        let (server, peer, handler) = try stuckPeer(settings: LoopSettings())
        defer { server.loop.shutdown() }
        let ended = Monitor<UInt64?>(nil)
        let turns = server.onLoop {
            handler.whenClosed = { ended.change { $0 = server.loop.service.budget.number } }
            return server.loop.service.budget.number
        }
        peer.endSending()
        #expect(try #require(ended.waitPatiently { $0 }) - turns < 100, "the loop waits meanwhile")
        #expect(try failureCode(handler.closure()) == .connectionLost)
    }
}

@Suite(
    "Peers that vanish",
    .timeLimit(.minutes(3)),
    .enabled(if: NetworkNamespaces.areUsed, NetworkNamespaces.absence)
)
struct VanishedPeerTests {
    /// A loop whose thread is in one of the namespaces.
    private func loop(
        _ name: String,
        in namespaces: NetworkNamespaces,
        at end: NetworkNamespaces.End
    ) throws
        -> WebSocketLoop
    {
        let loop = try WebSocketLoop(name: name)
        loop.execute { namespaces.enter(end) }
        return loop
    }

    /// libwebsockets went on sending what it held for such a peer, for 5 s and more.
    ///
    /// The witness is a connection with nothing to send and a longer patience.
    @Test("A peer whose address vanishes is gone at both ends after the silence allowed, whatever waits to be sent")
    func vanish() throws {
        let namespaces = try NetworkNamespaces()
        let server = try loop("server", in: namespaces, at: .near)
        let client = try loop("client", in: namespaces, at: .far)
        defer {
            client.shutdown()
            server.shutdown()
        }
        let witness = try Pair(server, client, patience: .milliseconds(3600), floods: false)
        let busy = try Pair(server, client, patience: .milliseconds(1200), floods: true)
        let order = (near: Order([]), far: Order([]))
        server.execute {
            witness.near.whenClosed = { order.near.note("witness") }
            busy.near.whenClosed = { order.near.note("busy") }
        }
        client.execute {
            witness.far.whenClosed = { order.far.note("witness") }
            busy.far.whenClosed = { order.far.note("busy") }
        }
        // Sockets that have had room for long are given more than they hold.
        for handler in [busy.near, busy.far] { _ = handler.state.wait { $0.received > 200 ? true : nil } }
        try namespaces.vanish()
        for order in [order.near, order.far] {
            #expect(order.wait { $0.count == 2 ? $0 : nil } == ["busy", "witness"])
        }
        for handler in [busy.near, busy.far, witness.near, witness.far] {
            #expect(try failureCode(#require(handler.state.wait { $0.closure })) == .idleTimeout)
        }
    }

    /// A server's end of a connection and a client's.
    private struct Pair: Sendable {
        let near: Flooder
        let far: Flooder

        init(_ server: WebSocketLoop, _ client: WebSocketLoop, patience: Duration, floods: Bool) throws {
            let (near, far) = (Flooder(floods: floods), Flooder(floods: floods))
            (self.near, self.far) = (near, far)
            // The longer patience is for peers whose machine answers.
            let idle = IdlePolicy(
                pingAfter: .milliseconds(400),
                hangUpAfter: patience,
                hangUpStoppedAfter: patience + .seconds(60)
            )
            let outcome = Monitor<Result<UInt16, WebSocketError>?>(nil)
            // The listening socket must be made on the thread that is in the namespace.
            server.execute {
                var options = ListenerOptions(host: NetworkNamespaces.End.near.address)
                options.idle = idle
                do throws(WebSocketError) {
                    let port = try server.listen(options) { near }.port
                    outcome.change { $0 = .success(port) }
                } catch {
                    outcome.change { $0 = .failure(error) }
                }
            }
            let port = try #require(outcome.wait { $0 }).get()
            let url = try WebSocketURL("ws://\(NetworkNamespaces.End.near.address):\(port)")
            var options = ClientOptions(url: url)
            options.idle = idle
            client.connect(options, handler: far)
            for handler in [near, far] { _ = handler.state.wait { $0.isOpen ? true : nil } }
        }
    }
}

/// Sends for ever, if it shall, and counts what it receives.
private final class Flooder: WebSocketHandler, @unchecked Sendable {
    // `@unchecked Sendable`: all but `state` is used on the loop alone.

    struct State: Sendable {
        var isOpen = false
        var received = 0
        var closure: WebSocketClosure?
    }

    let state = Monitor(State())
    let floods: Bool
    var whenClosed: (() -> Void)?

    init(floods: Bool) { self.floods = floods }

    func opened(_ connection: WebSocketConnection) {
        state.change { $0.isOpen = true }
        connection.requestWrite()
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {}

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        state.change { $0.received += 1 }
    }

    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        floods ? (.exclusive(packet([UInt8](repeating: 7, count: 16_000))), isLast: false) : nil
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        state.change { $0.closure = closure }
        whenClosed?()
        whenClosed = nil
    }
}
