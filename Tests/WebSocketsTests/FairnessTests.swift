import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

/// Peers that send much at once take turns with the others.
@Suite("Fair turns", .timeLimit(.minutes(1)))
struct FairnessTests {
    private typealias Log = Monitor<[(peer: Int, message: String)]>

    /// Notes what all connections receive, in one order.
    private final class Logger: WebSocketHandler {
        let peer: Int
        let log: Log
        let closesAfter: Int?

        init(peer: Int, log: Log, closesAfter: Int?) {
            self.peer = peer
            self.log = log
            self.closesAfter = closesAfter
        }

        func opened(_ connection: WebSocketConnection) {
            log.change { $0.append((peer, "opened")) }
        }

        func receivedText(_ text: String, from connection: WebSocketConnection) {
            let count = log.change { log in
                log.append((peer, text))
                return log.count
            }
            if let closesAfter, count >= closesAfter { connection.close(code: 4000, reason: "enough") }
        }

        func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
            log.change { $0.append((peer, "binary \(message.count)")) }
        }

        func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? { nil }

        func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
            log.change { $0.append((peer, "closed")) }
        }
    }

    /// Opens `count` connections to a loop that is then held, has `send` send, and lets the loop go on.
    ///
    /// - Returns: What was received, once `isOver` says so.
    private func received(
        peers count: Int,
        closesAfter: Int? = nil,
        send: ([RawPeer]) -> Void,
        until isOver: @escaping ([(peer: Int, message: String)]) -> Bool
    ) throws -> [(peer: Int, message: String)] {
        let loop = try WebSocketLoop(name: "server")
        defer { loop.shutdown() }
        let log = Log([])
        let next = Monitor(0)
        let port = try loop.listen(ListenerOptions()) {
            let peer = next.change { number in
                number += 1
                return number - 1
            }
            return Logger(peer: peer, log: log, closesAfter: closesAfter)
        }.port
        var peers: [RawPeer] = []
        for index in 0..<count {
            let peer = try RawPeer(port: port)
            #expect(peer.handshake().contains(" 101 "))
            _ = log.wait { $0.count > index ? true : nil }
            peers.append(peer)
        }
        let gate = Monitor(false)
        loop.execute { _ = gate.wait { $0 ? true : nil } }
        send(peers)
        gate.change { $0 = true }
        let result = log.wait { isOver($0) ? $0 : nil } ?? []
        for peer in peers { peer.reset() }
        return Array(result.dropFirst(count))
    }

    private func texts(_ range: Range<Int>) -> [UInt8] {
        range.flatMap { clientFrame(opcode: 1, Array("\($0)".utf8)) }
    }

    @Test("A peer's one message does not wait for another's thousand")
    func flood() throws {
        let messages = try received(peers: 2) { peers in
            peers[0].send(texts(0..<1000))
            peers[1].send(texts(0..<1))
        } until: { log in
            log.count { $0.peer == 0 && $0.message != "opened" } == 1000
                && log.contains { $0.peer == 1 && $0.message == "0" }
        }
        let place = try #require(messages.firstIndex { $0.peer == 1 })
        #expect(place <= 64, "after \(place) messages of the other")
        #expect(messages.filter { $0.peer == 0 }.map(\.message) == (0..<1000).map { "\($0)" })
    }

    @Test("Peers that all send much get the same share of each turn")
    func shares() throws {
        let messages = try received(peers: 8) { peers in
            for peer in peers { peer.send(texts(0..<400)) }
        } until: { log in
            log.count == 8 + 8 * 400
        }
        var counts = [Int](repeating: 0, count: 8)
        for message in messages {
            counts[message.peer] += 1
            guard let least = counts.min(), let most = counts.max(), counts.allSatisfy({ $0 < 400 }) else { break }
            #expect(most - least <= 96, "\(counts)")
        }
    }

    @Test("A peer's texts and binary messages stay in order while they wait")
    func order() throws {
        var expected: [String] = []
        let messages = try received(peers: 1) { peers in
            var bytes: [UInt8] = []
            for index in 0..<300 {
                bytes += clientFrame(opcode: 1, Array("\(index)".utf8))
                bytes += clientFrame(opcode: 2, [UInt8](repeating: 7, count: index % 50 + 1))
                expected += ["\(index)", "binary \(index % 50 + 1)"]
            }
            peers[0].send(bytes)
        } until: {
            $0.count == 601
        }
        #expect(messages.map(\.message) == expected)
    }

    @Test("Messages that wait for a connection are dropped when we close it")
    func closing() throws {
        let messages = try received(peers: 1, closesAfter: 40) { peers in
            peers[0].send(texts(0..<1000))
        } until: {
            $0.last?.message == "closed"
        }
        #expect(messages.map(\.message) == (0..<39).map { "\($0)" } + ["closed"])
    }
}
