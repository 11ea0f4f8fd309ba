package import MediaCore
package import RoomProtocol
import Threading
package import WebSockets

/// Something that happened to a `SocketPeer`.
package enum SocketEvent: Sendable {
    case opened
    case text(String)
    case closed(WebSocketClosure)
}

/// One end of a WebSocket that a test controls: a client without RoomKit, or a server without a relay.
package final class SocketPeer: WebSocketHandler, @unchecked Sendable {
    // It is `@unchecked Sendable` because `connection` is used only on the loop.

    private struct State: Sendable {
        var events: [SocketEvent] = []
        /// What a server said in the first `eventsRead` events.
        var messages: [ServerMessage] = []
        var eventsRead = 0
        var packets: [MediaPacketHeader] = []
        var acknowledgements: [MediaAcknowledgement] = []
        var outbox: [Message] = []
        var sent = 0
        var receivedBytes = 0
        var isAcknowledging = false
    }

    private enum Message: Sendable {
        case text(String)
        case binary([UInt8])
        case close(UInt16)
    }

    private let loop: WebSocketLoop
    private let isServer: Bool
    private let whenText: @Sendable (SocketPeer, String) -> Void
    private let state = Monitor(State())
    private var connection: WebSocketConnection?

    /// Creates an end on `loop` that calls `whenText` for every text message.
    package init(
        on loop: WebSocketLoop,
        isServer: Bool = false,
        whenText: @escaping @Sendable (SocketPeer, String) -> Void = { _, _ in }
    ) {
        self.loop = loop
        self.isServer = isServer
        self.whenText = whenText
    }

    /// What has happened so far.
    package var events: [SocketEvent] { state.withLock { $0.events } }

    /// The text messages so far.
    package var texts: [String] {
        events.compactMap { event in if case .text(let text) = event { text } else { nil } }
    }

    /// The signaling messages of a server so far.
    package var messages: [ServerMessage] {
        state.withLock { state in
            // Each is decoded once: tests ask again every few milliseconds, also among thousands of them.
            for case .text(let text) in state.events[state.eventsRead...] {
                if let message = try? ServerMessage(reading: text) { state.messages.append(message) }
            }
            state.eventsRead = state.events.count
            return state.messages
        }
    }

    /// The headers of the media packets so far.
    package var packets: [MediaPacketHeader] { state.withLock { $0.packets } }

    /// How it ended, if it has.
    package var closure: WebSocketClosure? {
        guard case .closed(let closure)? = events.last else { return nil }
        return closure
    }

    /// The error with which the server ended the session, if it has.
    package var fatalError: ErrorMessage? {
        messages.lazy.compactMap { message in
            if case .error(let error) = message, error.fatal { error } else { nil }
        }.first
    }

    /// Sends a text message.
    package func send(_ text: String) { post(.text(text)) }

    /// Sends a signaling message to a server.
    package func send(_ message: ClientMessage) { post(.text(message.text)) }

    /// Sends a signaling message to a client.
    package func tell(_ message: ServerMessage) { post(.text(message.text)) }

    /// Sends a binary message.
    package func send(_ bytes: [UInt8]) { post(.binary(bytes)) }

    /// The acknowledgements so far.
    package var acknowledgements: [MediaAcknowledgement] { state.withLock { $0.acknowledgements } }

    /// Bytes of text and binary messages so far.
    package var receivedBytes: Int { state.withLock { $0.receivedBytes } }

    /// Acknowledges each binary message from now on, as a server does that thins nothing.
    package func beginAcknowledging() {
        state.withLock { $0.isAcknowledging = true }
    }

    /// Falls silent about what it receives from now on.
    package func stopAcknowledging() {
        state.withLock { $0.isAcknowledging = false }
    }

    /// Closes the connection.
    package func close(_ code: UInt16 = 1000) { post(.close(code)) }

    private func post(_ message: Message) {
        loop.execute { [self] in
            state.withLock { $0.outbox.append(message) }
            connection?.requestWrite()
        }
    }

    package func opened(_ connection: WebSocketConnection) {
        self.connection = connection
        state.withLock { $0.events.append(.opened) }
        connection.requestWrite()
    }

    package func receivedText(_ text: String, from connection: WebSocketConnection) {
        state.withLock { state in
            state.events.append(.text(text))
            state.receivedBytes += text.utf8.count
        }
        whenText(self, text)
    }

    package func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        let header = try? message.withBytes { try MediaPacketHeader(reading: $0) }
        let acknowledgement = try? message.withBytes { try MediaAcknowledgement(reading: $0) }
        let isAcknowledging = state.withLock { state in
            state.receivedBytes += message.count
            if let acknowledgement { state.acknowledgements.append(acknowledgement) }
            if let header {
                state.packets.append(header)
                if state.isAcknowledging { state.outbox.append(.binary(Self.acknowledgement(of: header, state))) }
            }
            return state.isAcknowledging
        }
        if isAcknowledging { connection.requestWrite() }
    }

    private static func acknowledgement(of header: MediaPacketHeader, _ state: State) -> [UInt8] {
        let time = MediaAcknowledgement.ReceiverTime(microseconds: UInt64(MonotonicClock.now.microseconds))
        return MediaAcknowledgement(
            cumulativeBytes: UInt64(state.receivedBytes),
            receiveTime: time,
            trackAlias: header.trackAlias,
            frameNumber: header.frameNumber
        ).bytes
    }

    package func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        takeMessage().map { (message: $0, isLast: false) }
    }

    private func takeMessage() -> OutgoingMessage? {
        let next = state.withLock { state -> Message? in
            guard state.sent < state.outbox.count else { return nil }
            state.sent += 1
            return state.outbox[state.sent - 1]
        }
        switch next {
        case .text(let text): return .text(text)
        case .close(let code): return .close(code: code, reason: "")
        case .binary(let bytes):
            let packet = makePacket(bytes)
            guard isServer else { return .exclusive(packet) }
            WebSocketConnection.frameForSharing(packet)
            return .shared(packet)
        case nil: return nil
        }
    }

    package func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        self.connection = nil
        state.withLock { $0.events.append(.closed(closure)) }
    }
}

extension MediaAcknowledgement {
    /// The message.
    package var bytes: [UInt8] {
        let packet = PacketBuffer(capacity: Self.length)
        packet.count = Self.length
        packet.withMutableBytes { write(to: &$0) }
        return packet.withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
    }
}

/// A buffer with `bytes` as its message.
package func makePacket(_ bytes: [UInt8]) -> PacketBuffer {
    let packet = PacketBuffer(capacity: max(bytes.count, 1))
    packet.count = bytes.count
    packet.withMutableBytes { span in
        span.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
    }
    return packet
}

/// Clients without RoomKit, on a loop of their own.
package final class SocketClients: Sendable {
    private let loop: WebSocketLoop

    /// No clients yet.
    package init() throws {
        loop = try WebSocketLoop(name: "peers")
    }

    deinit {
        let loop = loop
        // Stop on another thread, because this one may be the loop's own.
        _ = try? WorkerThread(name: "peers-end") { loop.shutdown() }
    }

    /// Connects a client, with room for the answer to a join into a large room.
    package func connect(_ url: String, limits: MessageLimits = largeLimits) throws -> SocketPeer {
        let peer = SocketPeer(on: loop)
        var options = ClientOptions(url: try WebSocketURL(url))
        options.limits = limits
        options.connectTimeout = .seconds(20)
        loop.connect(options, handler: peer)
        return peer
    }

    /// Connects a client that joins.
    package func join(_ url: String, identity: String, room: String = "stage") throws -> SocketPeer {
        let peer = try connect(url)
        peer.send(.join(Join(room: room, identity: identity)))
        return peer
    }
}

/// The message limits of a client; they exceed what any server sends.
package let largeLimits = MessageLimits(maximumBinaryMessage: 1 << 20, maximumTextMessage: 4 << 20)

/// A server that answers `join`, and then sends what a test tells it to send.
package final class ScriptedServer: Sendable {
    /// Where it listens.
    package let port: UInt16

    private let loop: WebSocketLoop
    private let peers = Monitor<[SocketPeer]>([])

    /// Starts to listen; `answer` is called for each text message, on the loop.
    package init(answer: @escaping @Sendable (SocketPeer, String) -> Void = ScriptedServer.welcome) throws {
        let loop = try WebSocketLoop(name: "scripted")
        let peers = peers
        self.loop = loop
        var options = ListenerOptions()
        options.limits = largeLimits
        port = try loop.listen(options) {
            let peer = SocketPeer(on: loop, isServer: true, whenText: answer)
            peers.withLock { $0.append(peer) }
            return peer
        }.port
    }

    /// Where it listens.
    package var url: String { "ws://127.0.0.1:\(port)" }

    /// The connection that was opened first.
    package func peer() async throws -> SocketPeer {
        try await eventual("a client connects") { peers.withLock { $0.first } }
    }

    /// Ends the listening and all connections.
    package func stop() {
        loop.shutdown()
    }

    /// Answers `join` with a room in which `theirs` has published `pattern`, and subscribes us to it under the alias 7.
    @Sendable package static func welcome(_ peer: SocketPeer, _ text: String) {
        guard case .join(let join)? = try? ClientMessage(reading: text) else { return }
        peer.tell(.joined(joined(join)))
        peer.tell(.subscribed(Subscribed(trackId: "TR_theirs", alias: 7, catchUpThrough: nil)))
    }

    /// The answer to a `join`, with one other participant and its track.
    package static func joined(_ join: Join, serverTime: Int64 = MonotonicClock.now.microseconds) -> Joined {
        Joined(
            room: Joined.RoomInfo(id: "RM_scripted", name: join.room),
            participant: ParticipantInfo(id: "PA_own", identity: join.identity, tracks: []),
            participants: [ParticipantInfo(id: "PA_theirs", identity: "theirs", tracks: [theirTrack])],
            serverTime: serverTime,
            bootId: nil,
            server: "scripted"
        )
    }

    /// The track of the other participant.
    package static let theirTrack = TrackInfo(
        id: "TR_theirs",
        alias: 7,
        name: "pattern",
        source: "pattern",
        codec: VideoCodec.vp8,
        width: testSize.width,
        height: testSize.height,
        frameRate: 30
    )
}
