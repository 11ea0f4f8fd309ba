import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Messages between loops", .timeLimit(.minutes(2)))
struct MessageTests {
    static let sizes = [0, 1, 125, 126, 127, 1024, 15_999, 16_000]

    @Test("Text and binary messages of all header sizes come back as they were sent")
    func echo() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let client = try server.client(on: loop)
        var expected: [Event] = [.opened]
        for size in Self.sizes {
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let text = String(repeating: "x", count: size)
            loop.execute {
                client.send(.exclusive(bytes))
                client.send(.shared(bytes))
                client.send(.text(text))
            }
            expected += [.binary(bytes), .binary(bytes), .text(text)]
        }
        let long = String(repeating: "ü", count: 32_767) + "x"
        loop.execute { client.send(.text(long)) }
        expected.append(.text(long))
        let count = expected.count
        // Without the values, which would fill pages.
        let isEchoed = client.events { $0.count == count } == expected
        let isReceived = try server.handler().events { $0.count == count } == expected
        #expect(isEchoed && isReceived)
    }

    @Test(
        "Messages beyond 64 KiB take the longest header, where both sides allow them",
        arguments: [65_535, 65_536, 3_000_000]
    )
    func large(size: Int) throws {
        var options = ListenerOptions()
        options.limits = MessageLimits(maximumBinaryMessage: size)
        let server = try Server(options: options)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let client = try server.client(on: loop) { $0.limits = options.limits }
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        loop.execute { client.send(.exclusive(bytes)) }
        let isEchoed = client.events { $0.count == 2 } == [.opened, .binary(bytes)]
        #expect(isEchoed)
    }

    @Test("Ten thousand messages of all kinds keep their order both ways, far more than the sockets hold")
    func order() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let client = try server.client(on: loop)
        let filler = [UInt8](repeating: 7, count: 2_000)
        var expected: [Event] = [.opened]
        for number in 0..<10_000 {
            let bytes = filler + Array("\(number)".utf8)
            let message: Recorder.Message =
                switch number % 4 {
                case 0: .shared(bytes)
                case 2: .exclusive(bytes)
                default: .text("\(number)")
                }
            expected.append(number % 2 == 0 ? .binary(bytes) : .text("\(number)"))
            loop.execute { client.send(message) }
        }
        let count = expected.count
        let isInOrder = client.events { $0.count == count } == expected
        let isReceivedInOrder = try server.handler().events { $0.count == count } == expected
        #expect(isInOrder && isReceivedInOrder)
    }

    @Test("The bytes of a message are known as they come, before it is whole", arguments: [1, 2] as [UInt8])
    func partsOfMessages(opcode: UInt8) throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let (client, peer) = try server.rawServer(on: loop)
        let frame = clientFrame(opcode: opcode, isMasked: false, [UInt8](repeating: 65, count: 9000))
        let header = frame.count - 9000
        var sent = 0
        for count in [1100, 2000, 5001, 9000] {
            peer.send(Array(frame[sent..<(header + count)]))
            sent = header + count
            let events = client.state.waitPatiently { state in
                // libwebsockets collects 1024 bytes.
                state.receivedBytes > count - 1024 ? state.events.count : nil
            }
            #expect(events == 1 || count == 9000)
            #expect(client.state.withLock { $0.receivedBytes } <= count)
        }
        #expect(client.events { $0.count == 2 }.count == 2)
        #expect(client.state.withLock { $0.receivedBytes } == 9000)
    }

    /// A server's answers do not tell: libwebsockets takes frames without a mask.
    @Test("A client masks each binary frame, with a key that no other one has")
    func masking() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let (client, peer) = try server.rawServer(on: loop)
        let bytes = (0..<123).map { UInt8($0) }
        loop.execute {
            for _ in 0..<100 { client.send(.exclusive(bytes)) }
            for _ in 0..<100 { client.send(.shared(bytes)) }
        }
        let frameCount = 6 + bytes.count
        let received = peer.receive(count: 200 * frameCount)
        try #require(received.count == 200 * frameCount)
        var keys: Set<[UInt8]> = []
        for start in stride(from: 0, to: received.count, by: frameCount) {
            let frame = Array(received[start..<(start + frameCount)])
            #expect(frame.starts(with: [0x82, 0x80 | UInt8(bytes.count)]))
            let key = Array(frame[2..<6])
            keys.insert(key)
            let isMasked = bytes.indices.allSatisfy { frame[6 + $0] == bytes[$0] ^ key[$0 % 4] }
            #expect(isMasked)
        }
        // Two of so many random ones are the same once in two hundred thousand times.
        #expect(keys.count == 200)
    }

    @Test("An exclusive message works on a listener's side too, and one buffer serves several peers")
    func sharing() throws {
        let server = try Server(echoes: false)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let clients = try [server.client(on: loop), server.client(on: loop)]
        let handlers = try [server.handler(0), server.handler(1)]
        server.loop.execute {
            for handler in handlers {
                handler.send(.exclusive([1, 2, 3]))
                handler.send(.shared([4, 5]))
            }
        }
        for client in clients {
            #expect(client.events { $0.count == 3 } == [.opened, .binary([1, 2, 3]), .binary([4, 5])])
        }
    }

    @Test("A handler whose message is its last one is not asked for a message until it wants to be")
    func nothingMore() throws {
        final class Reticent: WebSocketHandler {
            let pulls: Monitor<Int>
            init(_ pulls: Monitor<Int>) { self.pulls = pulls }
            func opened(_ connection: WebSocketConnection) { connection.requestWrite() }
            func receivedText(_ text: String, from connection: WebSocketConnection) { connection.requestWrite() }
            func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {}
            func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
                pulls.withLock { $0 += 1 }
                return (.text("one of many"), isLast: true)
            }
            func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {}
        }
        let pulls = Monitor(0)
        let loop = try WebSocketLoop(name: "server")
        defer { loop.shutdown() }
        let port = try loop.listen(ListenerOptions()) { Reticent(pulls) }.port
        let client = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(port)")), handler: client)
        #expect(client.events { $0.count == 2 } == [.opened, .text("one of many")])
        loop.execute { client.send(.text("and now?")) }
        #expect(client.events { $0.count == 3 }.count == 3)
        #expect(pulls.withLock { $0 } == 2)
    }

    @Test("An alarm rings once, on the loop's thread, and not before its time; a later one takes its place")
    func alarms() throws {
        let loop = try WebSocketLoop(name: "alarms")
        defer { loop.shutdown() }
        let rung = Monitor([String]())
        // In one turn of the loop, so that the first does not ring before the second is set.
        loop.execute {
            loop.setAlarm(at: MonotonicClock.now + .milliseconds(50)) { rung.change { $0.append("replaced") } }
            let time = MonotonicClock.now + .milliseconds(100)
            loop.setAlarm(at: time) {
                let isEarly = MonotonicClock.now < time - .milliseconds(2)
                rung.change { $0.append(loop.isCurrent && !isEarly ? "first" : "first, wrongly") }
                loop.setAlarm(at: MonotonicClock.now - .seconds(1)) { rung.change { $0.append("overdue") } }
            }
        }
        #expect(rung.wait { $0.count == 2 ? $0 : nil } == ["first", "overdue"])
        usleep(50_000)
        #expect(rung.withLock { $0.count } == 2)
    }

    @Test("A shared message that was never framed traps with its values")
    func unframed() async {
        await #expect(processExitsWith: .failure) {
            final class Careless: WebSocketHandler {
                func opened(_ connection: WebSocketConnection) { connection.requestWrite() }
                func receivedText(_ text: String, from connection: WebSocketConnection) {}
                func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {}
                func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn?
                {
                    (.shared(packet([1])), isLast: false)
                }
                func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {}
            }
            let loop = try WebSocketLoop(name: "server")
            let port = try loop.listen(ListenerOptions()) { Careless() }.port
            let handler = Recorder()
            loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(port)")), handler: handler)
            _ = try handler.closure()
        }
    }

    @Test("A reader that stalls is asked for little, and holds nobody up")
    func stalledReader() throws {
        let server = try Server(echoes: false)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let stalled = try RawPeer(port: server.port, receiveBuffer: 16_384)
        _ = stalled.handshake()
        let toStalled = try server.handler(0)
        let chunk = [UInt8](repeating: 7, count: 16_000)
        let client = try server.client(on: loop)
        let toClient = try server.handler(1)
        server.loop.execute {
            for _ in 0..<1000 {
                toStalled.send(.shared(chunk))
                toClient.send(.shared(chunk))
            }
        }
        let received = client.events { $0.count == 1001 }.count
        #expect(received == 1001)
        let taken = toStalled.state.withLock { $0.sent }
        #expect(taken * chunk.count < 1_000_000)
        // When it reads again, the rest follows.
        _ = stalled.receive(count: 1000 * 16_004)
        _ = toStalled.state.wait { $0.sent == 1000 ? true : nil }
        // And when it stalls again, having read so much, no more is taken than before.
        server.loop.execute { for _ in 0..<1000 { toStalled.send(.shared(chunk)) } }
        var before = 0
        while before != toStalled.state.withLock({ $0.sent }) {
            before = toStalled.state.withLock { $0.sent }
            usleep(100_000)
        }
        #expect((before - 1000) * chunk.count < 1_000_000)
    }
}
