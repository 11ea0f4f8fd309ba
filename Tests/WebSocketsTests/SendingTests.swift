import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

/// The ways to a socket: `send()`, and libwebsockets, which TLS will need.
@Suite("Sending", .timeLimit(.minutes(3)))
struct SendingTests {
    /// Asks for more with each message it gives, as often as it is asked.
    private final class Insistent: WebSocketHandler {
        static let count = 1000
        private var sent = 0

        func opened(_ connection: WebSocketConnection) { connection.requestWrite() }
        func receivedText(_ text: String, from connection: WebSocketConnection) {}
        func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {}
        func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {}

        func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
            guard sent < Self.count else { return nil }
            connection.requestWrite()
            sent += 1
            let text = "\(sent)"
            // Some go by libwebsockets in any case.
            guard sent % 10 != 0 else { return (.text(text), isLast: false) }
            let bytes = [UInt8](repeating: UInt8(sent % 251), count: 16_000)
            return (.exclusive(packet(bytes)), isLast: false)
        }
    }

    /// A connection that asked for its turn while it had it was listed again each time, and had several messages in one
    /// round: what the socket did not take of one waited in libwebsockets, and the next one went past it.
    @Test(
        "However often a handler asks, a connection has one message at a time, and none lands inside another",
        arguments: [true, false]
    )
    func oneAtATime(sendsDirectly: Bool) throws {
        var settings = LoopSettings()
        settings.sendsDirectly = sendsDirectly
        let loop = try WebSocketLoop(name: "server", settings: settings)
        defer { loop.shutdown() }
        let port = try loop.listen(ListenerOptions()) { Insistent() }.port
        for _ in 0..<3 {
            let peer = try RawPeer(port: port, receiveBuffer: 40_000)
            #expect(peer.handshake().contains(" 101 "))
            for number in 1...Insistent.count {
                let isText = number % 10 == 0
                let expected = isText ? Array("\(number)".utf8) : [UInt8](repeating: UInt8(number % 251), count: 16_000)
                let header: [UInt8] = isText ? [0x81, UInt8(expected.count)] : [0x82, 126, 0x3e, 0x80]
                let frame = peer.receive(exactly: header.count + expected.count)
                let isWhole = frame == header + expected
                try #require(isWhole, "message \(number)")
            }
        }
    }

    @Test("Messages sent by libwebsockets alone arrive like messages sent past it", arguments: [true, false])
    func libraryWrites(sendsDirectly: Bool) throws {
        var settings = LoopSettings()
        settings.sendsDirectly = sendsDirectly
        let server = try Server(settings: settings)
        let loop = try WebSocketLoop(name: "client", settings: settings)
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let client = try server.client(on: loop)
        let handler = try server.handler()
        #expect(server.onLoop { handler.connection?.sendsDirectly } == sendsDirectly)
        var expected: [Event] = [.opened]
        for number in 0..<2000 {
            let bytes = [UInt8](repeating: UInt8(number % 251), count: 1 + number * 7)
            guard bytes.count <= 16_000 else { break }
            loop.execute {
                client.send(number % 2 == 0 ? .shared(bytes) : .exclusive(bytes))
                client.send(.text("\(number)"))
            }
            expected += [.binary(bytes), .text("\(number)")]
        }
        let count = expected.count
        let isEchoed = client.events { $0.count == count } == expected
        #expect(isEchoed)
        loop.execute { client.send(.close(4001, "done")) }
        #expect(try handler.closure() == .byPeer(code: 4001, reason: "done"))
        #expect(try client.closure() == .byUs(code: 4001, reason: "done"))
    }

    /// By default it pings after 300 s and hangs up after 310 s, whatever came meanwhile.
    @Test("libwebsockets neither pings nor hangs up by itself, at either end", arguments: [true, false])
    func keepalive(isOn: Bool) throws {
        var settings = LoopSettings()
        if isOn { (settings.libraryPingSeconds, settings.libraryHangUpSeconds) = (1, 2) }
        let server = try Server(echoes: false, settings: settings)
        let loop = try WebSocketLoop(name: "client", settings: settings)
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let peer = try RawPeer(port: server.port)
        _ = peer.handshake()
        let handler = try server.handler()
        let (client, silent) = try server.rawServer(on: loop)
        // Messages keep the loops awake, which look at libwebsockets' timers only then.
        for number in 0..<27 {
            peer.send(text: "\(number)")
            silent.send([0x81, 1, 0x78])
            usleep(100_000)
        }
        let toPeer = messages(in: peer.receiveWithoutWaiting(atMost: 1000)).map(\.opcode)
        let toServer = silent.receiveWithoutWaiting(atMost: 1000)
        #expect(toPeer == (isOn ? [9] : []))
        #expect(toServer.first == (isOn ? 0x89 : nil))
        #expect((handler.closedCount, client.closedCount) == (isOn ? (1, 1) : (0, 0)))
    }
}
