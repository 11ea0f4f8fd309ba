import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

/// A turn of the loop that takes long does not hold media up.
@Suite("Media first", .timeLimit(.minutes(1)))
struct MediaFirstTests {
    private struct Entry: Equatable, Sendable {
        var peer: Int
        var what: String
    }

    /// Notes what all connections do, in one order; each end takes 2 ms of the loop's time.
    private final class Logger: WebSocketHandler {
        let peer: Int
        let log: Monitor<[Entry]>
        let connections: Monitor<[WebSocketConnection]>
        let whenClosed: @Sendable () -> Void

        init(
            peer: Int,
            log: Monitor<[Entry]>,
            connections: Monitor<[WebSocketConnection]>,
            whenClosed: @escaping @Sendable () -> Void
        ) {
            self.peer = peer
            self.log = log
            self.connections = connections
            self.whenClosed = whenClosed
        }

        private func note(_ what: String) {
            log.change { $0.append(Entry(peer: peer, what: what)) }
        }

        func opened(_ connection: WebSocketConnection) {
            connections.change { $0.append(connection) }
            note("opened")
        }

        func receivedText(_ text: String, from connection: WebSocketConnection) {}

        func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
            note("media")
        }

        func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
            note("asked")
            return nil
        }

        func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
            note("closed")
            whenClosed()
            let start = MonotonicClock.now
            while MonotonicClock.now.duration(since: start) < .milliseconds(2) {}
        }
    }

    /// A loop with some peers, which are numbered in the order of their connections.
    private struct Crowd {
        let loop: WebSocketLoop
        let peers: [RawPeer]
        let log = Monitor<[Entry]>([])
        let connections = Monitor<[WebSocketConnection]>([])

        init(_ count: Int, whenClosed: @escaping @Sendable () -> Void = {}) throws {
            var settings = LoopSettings()
            settings.mediaProbation = .zero
            loop = try WebSocketLoop(name: "server", settings: settings)
            let next = Monitor(0)
            let port = try loop.listen(ListenerOptions()) { [log, connections] in
                let peer = next.change { number in
                    number += 1
                    return number - 1
                }
                return Logger(peer: peer, log: log, connections: connections, whenClosed: whenClosed)
            }.port
            var peers: [RawPeer] = []
            for index in 0..<count {
                let peer = try RawPeer(port: port)
                #expect(peer.handshake().contains(" 101 "))
                _ = log.wait { $0.count > index ? true : nil }
                peers.append(peer)
            }
            self.peers = peers
        }

        /// Ends the loop, and lets go of the connections: the listener holds what holds them.
        func end() {
            loop.shutdown()
            connections.change { $0 = [] }
        }

        /// Waits until `count` entries say `what`, and gives all entries.
        func entries(until count: Int, _ what: String) -> [Entry] {
            log.wait { log in log.count { $0.what == what } >= count ? log : nil } ?? []
        }
    }

    /// libev looked for new events only after all those it had found before, and nothing was read in between.
    @Test("A packet that arrives in the middle of a long turn is read in that turn, and soon")
    func readInBetween() throws {
        let (hasBegun, isSent) = (Monitor(false), Monitor(false))
        let (publisherSocket, arrival) = (Monitor<Int32>(-1), Monitor(false))
        let count = 40
        let crowd = try Crowd(count + 1) {
            hasBegun.change { $0 = true }
            _ = isSent.wait { $0 ? true : nil }
            // A busy system may take a while to carry the packet.
            var file = pollfd(fd: publisherSocket.withLock { $0 }, events: Int16(POLLIN), revents: 0)
            arrival.change { isKnown in
                if !isKnown { poll(&file, 1, 10_000) }
                isKnown = true
            }
        }
        defer { crowd.end() }
        let publisher = crowd.peers[count]
        // Shorter messages are acknowledgements.
        let packet = clientFrame(opcode: 2, [UInt8](repeating: 1, count: 100))
        publisher.send(packet)
        _ = crowd.entries(until: 1, "media")
        publisherSocket.change { $0 = crowd.connections.withLock { $0[count].socket } }

        let gate = Monitor(false)
        crowd.loop.execute { _ = gate.wait { $0 ? true : nil } }
        for peer in crowd.peers.prefix(count) { peer.reset() }
        gate.change { $0 = true }
        _ = hasBegun.wait { $0 ? true : nil }
        publisher.send(packet)
        isSent.change { $0 = true }

        _ = crowd.entries(until: count, "closed")
        // The first packet came before all ends.
        let entries = crowd.entries(until: 2, "media")
        let place = try #require(entries.lastIndex { $0.what == "media" })
        let closedBefore = entries[..<place].count { $0.what == "closed" }
        #expect(closedBefore < 5, "after \(closedBefore) ends")
    }

    @Test("A connection with an urgent message is asked before all others, and only once")
    func urgentFirst() throws {
        let count = 100
        let crowd = try Crowd(count)
        defer { crowd.end() }
        _ = crowd.connections.wait { $0.count == count ? true : nil }
        crowd.loop.execute { [connections = crowd.connections, log = crowd.log] in
            log.change { $0 = [] }
            let all = connections.withLock { $0 }
            for connection in all.dropLast() { connection.requestWrite() }
            all[count - 1].requestWrite(isUrgent: true)
            all[count - 1].requestWrite(isUrgent: true)
        }
        let entries = crowd.entries(until: count, "asked")
        #expect(entries.map(\.peer) == [count - 1] + Array(0..<(count - 1)))
    }

    @Test("A connection that asks ordinarily and then urgently is asked early, and its messages stay apart")
    func becomesUrgent() throws {
        let count = 3
        let crowd = try Crowd(count)
        defer { crowd.end() }
        _ = crowd.connections.wait { $0.count == count ? true : nil }
        crowd.loop.execute { [connections = crowd.connections, log = crowd.log] in
            log.change { $0 = [] }
            let all = connections.withLock { $0 }
            for connection in all { connection.requestWrite() }
            all[count - 1].requestWrite(isUrgent: true)
        }
        let entries = crowd.entries(until: count + 1, "asked")
        #expect(entries.map(\.peer) == [2, 0, 1, 2])
    }

    // Floods of binary messages came before everybody else.
    @Test("A peer is read early after a second of media at a publisher's rate; one that floods waits for a second")
    func conduct() {
        let start = MonotonicInstant(nanoseconds: 7_000_000_000)
        var publisher = MediaConduct(probation: .seconds(1))
        for number in 0..<300 {
            let time = Duration.milliseconds(33) * number
            // Frames of one packet, and now and then a keyframe of 50.
            for _ in 0..<(number % 100 == 0 ? 50 : 1) {
                let isTrusted = publisher.messageArrived(at: start + time)
                #expect(isTrusted == (time >= .seconds(1)))
            }
        }
        var flood = MediaConduct(probation: .seconds(1))
        for number in 0..<100_000 {
            let isTrusted = flood.messageArrived(at: start + .microseconds(100) * number)
            #expect(!isTrusted)
        }
        let quiet = start + .seconds(20)
        let burst = (1...101).map { _ in flood.messageArrived(at: quiet) }
        #expect(burst == (1...101).map { $0 <= 100 })
        let after = [900, 1000].map { flood.messageArrived(at: quiet + .milliseconds($0)) }
        #expect(after == [false, true])
    }
}
