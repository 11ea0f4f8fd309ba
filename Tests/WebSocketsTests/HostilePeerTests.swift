import Glibc
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Hostile peers", .timeLimit(.minutes(3)))
struct HostilePeerTests {
    /// Lets `attack` do its worst on a connection, and checks that another one goes on undisturbed.
    ///
    /// - Returns: How the attacker's connection ended, and what it was sent.
    private func survive(
        options: ListenerOptions = ListenerOptions(),
        _ attack: (RawPeer) throws -> Void
    ) throws -> (closure: WebSocketClosure, events: [Event], answer: [UInt8]) {
        let server = try Server(options: options)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake().contains(" 101 "))
        let handler = try server.handler()
        let bystander = try server.client(on: loop)
        loop.execute { bystander.send(.text("before")) }
        _ = bystander.events { $0.count == 2 }
        try attack(peer)
        let answer = peer.receiveUntilClose()
        peer.reset()
        let closure = try handler.closure()
        loop.execute { bystander.send(.text("after")) }
        #expect(bystander.events { $0.count == 3 } == [.opened, .text("before"), .text("after")])
        #expect(handler.closedCount == 1)
        return (closure, handler.state.withLock { $0.events }, answer)
    }

    /// The code of a server's close frame.
    private func closeCode(_ answer: [UInt8]) -> Int? {
        guard let payload = closePayload(of: answer), payload.count >= 2 else { return nil }
        return Int(payload[0]) << 8 | Int(payload[1])
    }

    @Test("A reserved opcode ends the connection", arguments: [3, 7, 0xb, 0xf] as [UInt8])
    func reservedOpcode(opcode: UInt8) throws {
        let outcome = try survive { $0.send(clientFrame(opcode: opcode, [1])) }
        #expect(failureCode(outcome.closure) == .connectionLost)
        #expect(closeCode(outcome.answer) == 1002)
    }

    @Test("Text that is not UTF-8 is answered with 1007")
    func badText() throws {
        let outcome = try survive { $0.send(clientFrame(opcode: 1, [0x68, 0xff])) }
        #expect(failureCode(outcome.closure) == .invalidText)
        #expect(closeCode(outcome.answer) == 1007)
    }

    @Test("A message beyond the limit is answered with 1009 before it is there", arguments: [16_001, 1 << 24, 1 << 40])
    func oversized(declared: Int) throws {
        let outcome = try survive { $0.send(clientFrame(opcode: 2, declared: declared, [1, 2, 3])) }
        #expect(failureCode(outcome.closure) == .messageTooLarge && closeCode(outcome.answer) == 1009)
        #expect(outcome.events.count == 2)
    }

    @Test("A flood of fragments ends at the limit, whatever their size", arguments: [1, 1000, 15_000])
    func fragmentFlood(size: Int) throws {
        let outcome = try survive { peer in
            let payload = [UInt8](repeating: 0, count: size)
            peer.send(clientFrame(opcode: 2, isFinal: false, payload))
            for _ in 0..<(32_000 / size) { peer.send(clientFrame(opcode: 0, isFinal: false, payload)) }
        }
        #expect(failureCode(outcome.closure) == .messageTooLarge)
    }

    @Test("Fragments within the limit make one message, even with a ping among them")
    func fragments() throws {
        let outcome = try survive { peer in
            peer.send(clientFrame(opcode: 2, isFinal: false, [1, 2]))
            peer.send(clientFrame(opcode: 9, [9]))
            peer.send(clientFrame(opcode: 0, isFinal: false, []))
            peer.send(clientFrame(opcode: 0, isFinal: false, [UInt8](repeating: 3, count: 9000)))
            peer.send(clientFrame(opcode: 0, [4]))
            peer.send(clientFrame(opcode: 1, isFinal: false, Array("ab".utf8) + [0xc3]))
            peer.send(clientFrame(opcode: 0, [0xbc]))
            peer.send(clientFrame(opcode: 1, isFinal: false, []))
            peer.send(clientFrame(opcode: 0, []))
            // What waits for the loop's next turn is dropped for a client that closes.
            _ = peer.receive { bytes in messages(in: bytes).count { $0.opcode == 1 } == 2 }
            peer.send(clientFrame(opcode: 8, [0x0f, 0xa0]))
        }
        let whole: [UInt8] = [1, 2] + [UInt8](repeating: 3, count: 9000) + [4]
        #expect(
            outcome.events == [
                .opened, .binary(whole), .text("abü"), .text(""), .closed(.byPeer(code: 4000, reason: "")),
            ]
        )
    }

    @Test("A continuation of nothing, and a message inside a message, end the connection", arguments: [false, true])
    func disorder(isNested: Bool) throws {
        let outcome = try survive { peer in
            if isNested { peer.send(clientFrame(opcode: 2, isFinal: false, [1])) }
            peer.send(clientFrame(opcode: isNested ? 2 : 0, [2]))
        }
        #expect(outcome.events.count == 2)
        #expect(closeCode(outcome.answer) == 1002)
    }

    @Test("A reserved bit and a control frame in fragments end with 1002, one that is too long without a code")
    func badFrames() throws {
        let reservedBit: UInt8 = 0x40
        let frames = [
            clientFrame(opcode: reservedBit | 1, [0x61]), clientFrame(opcode: 9, isFinal: false, [1]),
            clientFrame(opcode: 9, [UInt8](repeating: 1, count: 126)),
        ]
        let outcomes = try frames.map { frame in try survive { $0.send(frame) } }
        #expect(outcomes.map { closeCode($0.answer) } == [1002, 1002, nil])
        #expect(outcomes.allSatisfy { failureCode($0.closure) == .connectionLost })
    }

    /// libwebsockets drops a ping that comes before the pong to an earlier one is sent.
    @Test("The first of several pings at once is answered, and so is each ping that waits for the answer before")
    func pings() throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake().contains(" 101 "))
        peer.send((1...5).flatMap { clientFrame(opcode: 9, [$0]) })
        #expect(peer.receive(exactly: 3) == [0x8a, 1, 1])
        for number in 6...8 as ClosedRange<UInt8> {
            peer.send(clientFrame(opcode: 9, [number]))
            #expect(peer.receive(exactly: 3) == [0x8a, 1, number])
        }
    }

    @Test("A flood of pings is survived")
    func pingFlood() throws {
        let outcome = try survive { peer in
            let ping = clientFrame(opcode: 9, [UInt8](repeating: 1, count: 125))
            for _ in 0..<3000 { peer.send(ping) }
            peer.send(clientFrame(opcode: 8, []))
        }
        #expect(outcome.closure == .byPeer(code: 1005, reason: ""))
    }

    @Test("An unmasked frame disturbs nobody")
    func unmasked() throws {
        // RFC 6455 wants it refused; libwebsockets 4.1.6 takes it, later versions close with 1002.
        _ = try survive { peer in
            peer.send(clientFrame(opcode: 2, isMasked: false, [1, 2, 3]))
            peer.send(clientFrame(opcode: 8, []))
        }
    }

    @Test("A reset is told as a lost connection")
    func reset() throws {
        let outcome = try survive { peer in
            peer.send(clientFrame(opcode: 2, [1, 2, 3]))
            peer.reset()
        }
        #expect(failureCode(outcome.closure) == .connectionLost)
    }

    @Test("A silent peer is pinged, and hung up on if it does not answer")
    func silence() throws {
        var options = ListenerOptions()
        // The bystander answers its pings, so it stays. This process may be stopped between a ping and its answer.
        options.idle = IdlePolicy(pingAfter: .milliseconds(50), hangUpAfter: .seconds(4))
        let outcome = try survive(options: options) { _ in }
        #expect(failureCode(outcome.closure) == .idleTimeout)
        #expect(outcome.answer.starts(with: [0x89, 8]))
    }

    @Test("A ping that is asked for is sent once, whatever the idle times, and its answer is reported")
    func ping() throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake().contains(" 101 "))
        let handler = try server.handler()
        server.loop.execute {
            handler.connection?.ping()
            handler.connection?.ping()
        }
        let header = peer.receive(exactly: 2)
        #expect(header.first == 0x89)
        let payload = peer.receive(exactly: Int(header.last ?? 0))
        #expect(handler.state.change { $0.pongs } == 0)
        peer.send(clientFrame(opcode: 10, payload))
        #expect(handler.state.wait { $0.pongs > 0 ? $0.pongs : nil } == 1)
        // What comes next is our text, and no second ping.
        server.loop.execute { handler.send(.text("next")) }
        #expect(peer.receive(exactly: 2) == [0x81, 4])
    }

    /// The answers of the peer's kernel show that its machine is there.
    @Test("A peer whose program has stopped is hung up on later than one whose machine is gone")
    func stoppedPeer() throws {
        func silentPeer(patience: Duration) throws -> (server: Server, peer: RawPeer, handler: Recorder) {
            var options = ListenerOptions()
            options.idle = IdlePolicy(
                pingAfter: .milliseconds(400),
                hangUpAfter: .milliseconds(1200),
                hangUpStoppedAfter: patience
            )
            let server = try Server(options: options)
            let peer = try RawPeer(port: server.port)
            #expect(peer.handshake().contains(" 101 "))
            return (server, peer, try server.handler())
        }
        let patient = try silentPeer(patience: .seconds(6))
        defer { patient.server.loop.shutdown() }
        let usual = try silentPeer(patience: .milliseconds(1200))
        defer { usual.server.loop.shutdown() }
        #expect(try failureCode(usual.handler.closure()) == .idleTimeout)
        #expect(patient.handler.closedCount == 0)
        #expect(try failureCode(patient.handler.closure()) == .idleTimeout)
    }

    // A client that was stopped for 30 s, as by a debugger, ended its own connection when it went on.
    @Test("A peer that has sent something is not silent, however long this process was stopped")
    func stoppedProcess() throws {
        var options = ListenerOptions()
        // The peer answers no ping: what it says must come before this is over.
        options.idle = IdlePolicy(pingAfter: .milliseconds(400), hangUpAfter: .seconds(4))
        let server = try Server(options: options)
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake().contains(" 101 "))
        let handler = try server.handler()
        let (isStopped, goesOn) = (Flag(), Flag())
        server.loop.execute {
            isStopped.set()
            goesOn.wait()
            usleep(4_400_000)
        }
        isStopped.wait()
        peer.send(clientFrame(opcode: 1, Array("still here".utf8)))
        goesOn.set()
        try #require(handler.events { $0.count == 2 } == [.opened, .text("still here")])
        peer.send(clientFrame(opcode: 1, Array("and here".utf8)))
        #expect(handler.events { $0.count == 3 }.last == .text("and here"))
    }

    @Test("Random bytes after the handshake end in one way or another, once", arguments: 0..<20 as Range<UInt64>)
    func randomFrames(seed: UInt64) throws {
        _ = try survive { peer in
            var random = SeededBytes(seed: seed)
            let bytes = random.next(4000)
            peer.send(bytes)
            peer.reset()
        }
    }

    @Test("Half a handshake and nonsense are dropped when their time is up, and no handler hears of them")
    func handshakes() throws {
        var options = ListenerOptions()
        // The last peer's handshake must not take so long.
        options.handshakeTimeout = .seconds(4)
        let server = try Server(options: options)
        defer { server.loop.shutdown() }
        let openings = [
            "", "GET / HTTP/1.1\r\nUpgrade: webs", "\u{16}\u{3}\u{1}garbage\r\n\r\n", "GET", "\r\n\r\n\r\n\r\n",
            "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
            "GET / HTTP/1.1\r\nX: " + String(repeating: "a", count: 100_000),
        ]
        let peers = try openings.map { opening in
            let peer = try RawPeer(port: server.port)
            peer.send(opening)
            return peer
        }
        for peer in peers { _ = peer.receiveAll() }
        #expect(server.handlers.withLock { $0.count } == 0)
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake().contains(" 101 "))
    }
}

/// Lets one thread wait for another.
private struct Flag: Sendable {
    private let state = Monitor(false)

    func set() { state.change { $0 = true } }

    func wait() { _ = state.wait { $0 ? true : nil } }
}
