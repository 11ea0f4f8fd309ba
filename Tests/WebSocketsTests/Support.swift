import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

/// What a handler saw.
enum Event: Equatable, Sendable {
    case opened
    case text(String)
    case binary([UInt8])
    case closed(WebSocketClosure)
}

/// A handler that notes everything and sends what it is given.
final class Recorder: WebSocketHandler, @unchecked Sendable {
    // `@unchecked Sendable`: `connection` and, once connected, `whenClosed` are used on the loop alone.

    struct State: Sendable {
        var events: [Event] = []
        var outbox: [Message] = []
        var sent = 0
        var pulls = 0
        /// The bytes of messages that have arrived, those of unfinished ones among them.
        var receivedBytes = 0
        /// The pongs that have arrived.
        var pongs = 0
    }

    enum Message: Sendable {
        case text(String)
        case shared([UInt8])
        case exclusive([UInt8])
        case close(UInt16, String)
    }

    let state = Monitor(State())
    let echoes: Bool
    let whenOpened: (@Sendable (WebSocketConnection) -> Void)?
    var whenClosed: (@Sendable () -> Void)?
    var connection: WebSocketConnection?

    init(
        echoes: Bool = false,
        whenOpened: (@Sendable (WebSocketConnection) -> Void)? = nil,
        whenClosed: (@Sendable () -> Void)? = nil
    ) {
        self.echoes = echoes
        self.whenOpened = whenOpened
        self.whenClosed = whenClosed
    }

    func opened(_ connection: WebSocketConnection) {
        self.connection = connection
        state.change { $0.events.append(.opened) }
        whenOpened?(connection)
        connection.requestWrite()
    }

    func receivedBytes(_ count: Int, from connection: WebSocketConnection, at now: MonotonicInstant) {
        state.change { $0.receivedBytes += count }
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        state.change { $0.events.append(.text(text)) }
        if echoes { send(.text(text)) }
    }

    func answeredPing(_ connection: WebSocketConnection, at now: MonotonicInstant) {
        state.change { $0.pongs += 1 }
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        let bytes = message.withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
        state.change { $0.events.append(.binary(bytes)) }
        if echoes { send(.shared(bytes)) }
    }

    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        takeMessage().map { (message: $0, isLast: false) }
    }

    private func takeMessage() -> OutgoingMessage? {
        let next = state.change { state -> Message? in
            state.pulls += 1
            guard state.sent < state.outbox.count else { return nil }
            state.sent += 1
            return state.outbox[state.sent - 1]
        }
        switch next {
        case .text(let text): return .text(text)
        case .exclusive(let bytes): return .exclusive(packet(bytes))
        case .close(let code, let reason): return .close(code: code, reason: reason)
        case .shared(let bytes):
            let message = packet(bytes)
            WebSocketConnection.frameForSharing(message)
            return .shared(message)
        case nil: return nil
        }
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        state.change { $0.events.append(.closed(closure)) }
        self.connection = nil
        whenClosed?()
        // It may hold what holds this handler.
        whenClosed = nil
    }

    /// On the loop.
    func send(_ message: Message) {
        state.change { $0.outbox.append(message) }
        connection?.requestWrite()
    }

    /// Waits until `condition` holds, or nothing more can come.
    func events(until condition: @escaping ([Event]) -> Bool) -> [Event] {
        state.wait { state in
            var isOver = false
            if case .closed? = state.events.last { isOver = true }
            return isOver || condition(state.events) ? state.events : nil
        } ?? []
    }

    /// Waits for the end.
    func closure() throws -> WebSocketClosure {
        let events = events { $0.contains { if case .closed = $0 { true } else { false } } }
        guard case .closed(let closure)? = events.last else { throw TestFailure("something came after the end") }
        return closure
    }

    var closedCount: Int {
        state.withLock { $0.events.count { if case .closed = $0 { true } else { false } } }
    }
}

func packet(_ bytes: [UInt8]) -> PacketBuffer {
    let packet = PacketBuffer(capacity: bytes.count)
    packet.count = bytes.count
    packet.withMutableBytes { span in
        span.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
    }
    return packet
}

func failureCode(_ closure: WebSocketClosure) -> WebSocketError.Code? {
    if case .failed(let error) = closure { error.code } else { nil }
}

/// A listening loop whose handlers are recorders.
final class Server: Sendable {
    let loop: WebSocketLoop
    let port: UInt16
    let handlers: Monitor<[Recorder]>

    init(
        echoes: Bool = true,
        options: ListenerOptions = ListenerOptions(),
        settings: LoopSettings = LoopSettings(),
        whenOpened: (@Sendable (WebSocketConnection) -> Void)? = nil
    ) throws {
        let handlers = Monitor<[Recorder]>([])
        loop = try WebSocketLoop(name: "server", settings: settings)
        self.handlers = handlers
        port = try loop.listen(options) {
            let handler = Recorder(echoes: echoes, whenOpened: whenOpened)
            handlers.change { $0.append(handler) }
            return handler
        }.port
    }

    /// The handler of the connection that was opened `index`-th.
    func handler(_ index: Int = 0) throws -> Recorder {
        try #require(handlers.wait { $0.count > index ? $0[index] : nil })
    }

    /// What `body` gives on the loop's thread.
    @discardableResult
    func onLoop<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
        let outcome = Monitor<Value?>(nil)
        loop.execute { outcome.change { $0 = body() } }
        guard let value = outcome.wait(for: { $0 }) else { fatalError("a wait without an end ended") }
        return value
    }

    func options(path: String = "/") throws -> ClientOptions {
        ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(port)\(path)"))
    }

    /// Connects a recorder.
    func client(on loop: WebSocketLoop, change: (inout ClientOptions) -> Void = { _ in }) throws -> Recorder {
        var options = try options()
        change(&options)
        let handler = Recorder()
        loop.connect(options, handler: handler)
        return handler
    }

    /// A client on `loop` whose server is a test, which has let this one answer the handshake.
    func rawServer(on loop: WebSocketLoop) throws -> (client: Recorder, peer: RawPeer) {
        let listener = try SilentServer()
        let client = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(listener.port)")), handler: client)
        let peer = listener.accept()
        let answerer = try RawPeer(port: port)
        answerer.send(peer.receive())
        peer.send(answerer.receive())
        #expect(client.events { !$0.isEmpty } == [.opened])
        return (client, peer)
    }
}
