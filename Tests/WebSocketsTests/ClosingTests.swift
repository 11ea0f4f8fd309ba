import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Closing", .timeLimit(.minutes(3)))
struct ClosingTests {
    @Test("Both sides see code and reason, whoever closes")
    func codes() throws {
        let server = try Server(echoes: false)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let first = try server.client(on: loop)
        let firstHandler = try server.handler(0)
        server.loop.execute { firstHandler.connection?.close(code: 4401, reason: "the token has expired") }
        #expect(try first.closure() == .byPeer(code: 4401, reason: "the token has expired"))
        #expect(try firstHandler.closure() == .byUs(code: 4401, reason: "the token has expired"))

        let second = try server.client(on: loop)
        let secondHandler = try server.handler(1)
        loop.execute {
            second.send(.text("last words"))
            second.send(.close(1000, "done"))
        }
        #expect(try second.closure() == .byUs(code: 1000, reason: "done"))
        #expect(try secondHandler.closure() == .byPeer(code: 1000, reason: "done"))
        #expect(secondHandler.events { $0.count == 3 }[1] == .text("last words"))
    }

    // It was cut off after 2 s, whatever the server's setting.
    @Test("A peer has the time that the listener's options state to answer a close message")
    func grace() throws {
        var options = ListenerOptions()
        options.closeGrace = .seconds(4)
        let server = try Server(options: options)
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        peer.handshake()
        let handler = try server.handler(0)
        let began = MonotonicClock.now
        server.loop.execute { handler.connection?.close(code: 4401, reason: "the token has expired") }
        _ = peer.receiveAll()
        #expect(MonotonicClock.now.duration(since: began) > .seconds(3.5))
    }

    // On a busy machine a client without the server's last message could not say why it was sent away.
    @Test(
        "A client receives everything that a server sent before its end, however much it was",
        // A close message; the end of the stream alone; a frame of no known kind.
        arguments: [
            clientFrame(opcode: 8, isMasked: false, [0x0f, 0xa0]), [], clientFrame(opcode: 11, isMasked: false, []),
        ]
    )
    func lastWords(end: [UInt8]) throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let (client, peer) = try server.rawServer(on: loop)
        let texts = (0..<100).map { "message \($0)" }
        peer.send(texts.flatMap { clientFrame(opcode: 1, isMasked: false, Array($0.utf8)) } + end)
        if end.isEmpty { peer.endSending() }
        let closure = try client.closure()
        let isClosed = closure == .byPeer(code: 4000, reason: "")
        #expect(end.first == 0x88 ? isClosed : failureCode(closure) == .connectionLost, "\(closure)")
        #expect(client.events { _ in true } == [.opened] + texts.map { .text($0) } + [.closed(closure)])
    }

    @Test("The end that closes waits for the peer's answer, and messages under way cause no reset")
    func waitsForAnswer() throws {
        var settings = LoopSettings()
        // Longer than this test may be held up.
        settings.closeGrace = .seconds(60)
        let server = try Server(echoes: false, settings: settings)
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        _ = peer.handshake()
        let handler = try server.handler()
        server.loop.execute { handler.connection?.close(code: 4000, reason: "") }
        #expect(closePayload(of: peer.receiveUntilClose()) == [0x0f, 0xa0])
        for _ in 0..<10 {
            peer.send(clientFrame(opcode: 2, [1, 2, 3]))
            usleep(10_000)
        }
        #expect(handler.closedCount == 0)
        peer.send(clientFrame(opcode: 8, [0x0f, 0xa0]))
        #expect(try handler.closure() == .byUs(code: 4000, reason: ""))
        errno = 0
        #expect(peer.receiveAll().isEmpty && errno == 0)
    }

    @Test("A connection can be closed as soon as it is opened, and a long reason is cut between characters")
    func closeWhenOpened() throws {
        let server = try Server(whenOpened: { $0.close(code: 4000, reason: String(repeating: "ü", count: 100)) })
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let client = try server.client(on: loop)
        #expect(try client.closure() == .byPeer(code: 4000, reason: String(repeating: "ü", count: 61)))
    }

    /// libwebsockets kept code and reason where it keeps the payload of a ping that is to be answered.
    @Test("A ping that comes while we close changes neither code nor reason")
    func pingWhileClosing() throws {
        let server = try Server(echoes: false)
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        _ = peer.handshake()
        let handler = try server.handler()
        let (isClosing, isPinged) = (Monitor(false), Monitor(false))
        server.loop.execute {
            handler.connection?.close(code: 4000, reason: "the reason")
            // In the next turn of the loop the close message has been given to libwebsockets, and a ping is there.
            server.loop.execute {
                isClosing.change { $0 = true }
                _ = isPinged.wait { $0 ? true : nil }
            }
        }
        _ = isClosing.wait { $0 ? true : nil }
        peer.send(clientFrame(opcode: 9, [UInt8](repeating: 0x41, count: 100)))
        isPinged.change { $0 = true }
        #expect(closePayload(of: peer.receiveUntilClose()) == [0x0f, 0xa0] + Array("the reason".utf8))
    }

    @Test("After the end nothing holds a loop's parts, even if a connection asked for its turn in the last moment")
    func noCycle() throws {
        weak var service: Service?
        do {
            let server = try Server(echoes: false)
            service = server.loop.service
            let peer = try RawPeer(port: server.port)
            _ = peer.handshake()
            let handler = try server.handler()
            server.onLoop {
                guard let connection = handler.connection else { return }
                // The peer answers nothing, so this is when the context is destroyed.
                handler.whenClosed = { connection.service.senders.add(connection) }
            }
            server.loop.shutdown()
            #expect(handler.closedCount == 1)
            handler.whenClosed = nil
        }
        #expect(service == nil)
    }

    @Test("A shutdown closes everything with 1001 and leaves no handler without an end")
    func shutdown() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        let clients = try (0..<8).map { _ in try server.client(on: loop) }
        for client in clients { _ = client.events { $0 == [.opened] } }
        _ = try server.handler(7)
        server.loop.shutdown()
        server.loop.shutdown()
        for client in clients { #expect(try client.closure() == .byPeer(code: 1001, reason: "going away")) }
        for handler in server.handlers.withLock({ $0 }) {
            #expect(try handler.closure() == .byUs(code: 1001, reason: "going away"))
        }
        loop.shutdown()
        let late = Recorder()
        loop.connect(try server.options(), handler: late)
        #expect(try failureCode(late.closure()) == .shutDown)
        #expect(throws: WebSocketError.self) { try loop.listen(ListenerOptions()) { Recorder() } }
    }

    @Test("A shutdown does not wait for a peer that neither reads nor answers")
    func shutdownWithStalledPeer() throws {
        let server = try Server(echoes: false)
        let peer = try RawPeer(port: server.port, receiveBuffer: 16_384)
        _ = peer.handshake()
        let halfOpen = try RawPeer(port: server.port)
        halfOpen.send("GET / HTTP/1.1\r\n")
        let handler = try server.handler()
        server.loop.execute {
            for _ in 0..<100 { handler.send(.shared([UInt8](repeating: 0, count: 16_000))) }
        }
        _ = handler.state.wait { $0.sent > 0 ? true : nil }
        server.loop.shutdown()
        #expect(try handler.closure() == .byUs(code: 1001, reason: "going away"))
        _ = (peer, halfOpen)
    }
}
