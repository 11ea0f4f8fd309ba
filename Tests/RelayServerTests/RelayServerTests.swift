import Glibc
import MediaCore
import RelayCore
import RoomProtocol
import Testing
import Threading
import WebSockets

@testable import RelayServer

/// A participant that joins and notes what it is told.
private final class Participant: WebSocketHandler, Sendable {
    struct State: Sendable {
        var isJoinSent = false
        var messages: [ServerMessage] = []
        var closure: WebSocketClosure?
    }

    let state = Monitor(State())
    private let identity: String

    init(identity: String) {
        self.identity = identity
    }

    func opened(_ connection: WebSocketConnection) {
        connection.requestWrite()
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        guard let message = try? ServerMessage(reading: text) else { return }
        state.change { $0.messages.append(message) }
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {}

    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        let isFirst = state.withLock { state in
            defer { state.isJoinSent = true }
            return !state.isJoinSent
        }
        guard isFirst else { return nil }
        return (.text(ClientMessage.join(Join(room: "lab", identity: identity)).text), isLast: false)
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        state.change { $0.closure = closure }
    }

    /// Waits for a message, which the suite's time limit bounds.
    func message(_ matches: @Sendable (ServerMessage) -> Bool) -> ServerMessage? {
        state.wait { state in state.messages.first(where: matches) ?? nil }
    }
}

@Suite("Relay server", .timeLimit(.minutes(1)))
struct RelayServerTests {
    private func server(port: UInt16 = 0) throws -> RelayServer {
        var options = RelayServer.Options()
        options.port = port
        return try RelayServer(options)
    }

    private func join(_ server: RelayServer, _ identity: String, on loop: WebSocketLoop) throws -> Participant {
        var options = ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)"))
        options.subprotocol = WireFormat.subprotocol
        let participant = Participant(identity: identity)
        loop.connect(options, handler: participant)
        let joined = participant.message { if case .joined = $0 { true } else { false } }
        try #require(joined != nil)
        return participant
    }

    @Test("It starts at a port of the system's choice, stops, and stops again")
    func startAndStop() async throws {
        let server = try server()
        #expect(server.port != 0)
        #expect(await server.statistics().connections == 0)
        server.stop()
        server.stop()
        #expect(await server.statistics().connections == 0)
    }

    @Test("A port in use is an error, and free again after stop")
    func portInUse() throws {
        let first = try server()
        let error = #expect(throws: WebSocketError.self) { try server(port: first.port) }
        #expect(error?.code == .addressInUse)
        first.stop()
        let second = try server(port: first.port)
        #expect(second.port == first.port)
        second.stop()
    }

    @Test("An address that is not this machine's is an error")
    func badAddress() {
        var options = RelayServer.Options()
        options.port = 0
        for host in ["192.0.2.1", "no such host"] {
            options.host = host
            #expect(throws: WebSocketError.self) { try RelayServer(options) }
        }
    }

    @Test("The statistics tell who is there")
    func statistics() async throws {
        let server = try server()
        defer { server.stop() }
        let loop = try WebSocketLoop(name: "clients")
        let participants = try ["a", "b"].map { try join(server, $0, on: loop) }
        let statistics = await server.statistics()
        #expect(
            statistics.connections == 2 && statistics.rooms == 1 && statistics.tracks == 0
                && statistics.storedBytes == 0
        )
        loop.shutdown()
        #expect(participants.allSatisfy { $0.state.withLock { $0.closure } != nil })
        while await server.statistics().connections > 0 { await Task.yield() }
        #expect(await server.statistics().rooms == 0)
    }

    @Test("A server that stops tells its participants, and closes their connections properly")
    func stopTells() throws {
        let server = try server()
        let loop = try WebSocketLoop(name: "clients")
        defer { loop.shutdown() }
        let participant = try join(server, "a", on: loop)
        server.stop()
        let closure = participant.state.wait { $0.closure }
        guard case .byPeer = closure else {
            Issue.record("ended by \(String(describing: closure))")
            return
        }
        let farewell = participant.state.withLock { $0.messages.last }
        guard case .leave? = farewell else {
            Issue.record("not told, but \(String(describing: farewell))")
            return
        }
    }

    @Test("While it waits for peers that do not read, the thread that stops it sleeps")
    func stopSleeps() throws {
        let server = try server()
        let loop = try WebSocketLoop(name: "clients")
        defer { loop.shutdown() }
        let participant = try join(server, "a", on: loop)
        let isStopped = Monitor(false)
        // Nothing that the server says is read before this ends.
        loop.execute { _ = isStopped.wait { $0 ? true : nil } }
        let before = waits()
        server.stop()
        // A few for the locks on the way; a check each 10 ms would be 50 in the time that peers get to leave.
        #expect(waits() - before < 20)
        isStopped.change { $0 = true }
        #expect(participant.state.wait { $0.closure } != nil)
    }

    /// How often the calling thread has waited so far.
    private func waits() -> Int {
        var usage = rusage()
        // RUSAGE_THREAD, which only C with GNU's extensions names.
        getrusage(1, &usage)
        return usage.ru_nvcsw
    }

    @Test("A connection that says nothing does not keep it from stopping")
    func silentPeer() throws {
        let server = try server()
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = server.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0)
        server.stop()
        var byte: UInt8 = 0
        #expect(read(descriptor, &byte, 1) <= 0, "the connection is over")
    }
}
