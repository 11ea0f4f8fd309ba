import CWebSockets
import Glibc
package import MediaCore
import Threading

/// One WebSocket connection of a loop, of either side; confined to the loop's thread.
///
/// It lives from the handshake on; after `closed` its calls do nothing.
@safe package final class WebSocketConnection: @unchecked Sendable {
    // `@unchecked Sendable`: every call checks that it comes on the loop's thread.

    /// Which end of the handshake this side is.
    enum Role {
        case accepted(Listener)
        case connecting(ConnectAttempt)
    }

    /// How far the connection has come.
    enum Phase { case handshaking, open, closing, closed }

    /// Bytes that the kernel may hold unsent and still call the socket writable.
    ///
    /// Measured with a reader that stalls: 4.2 MB of old frames pile up in the kernel without it, 150 kB with it.
    static let lowWater = 16_384
    /// RFC 6455, section 5.5: a control frame carries at most 125 bytes, here less the code's two.
    private static let maximumReasonCount = 123

    // What is looked at for every message stands first, to be close together in memory.

    var phase = Phase.handshaking
    /// Whether the connection is listed to be asked for messages at the end of the loop's turn.
    var isSendRequested = false
    /// Whether libwebsockets will call `writable`.
    var isAwaitingRoom = false
    /// Whether binary messages go to the socket by `send()`, past libwebsockets; never on a socket with TLS.
    var sendsDirectly = false
    /// The socket's descriptor, while messages can be sent.
    private(set) var socket: Int32 = -1
    /// The message, with its header, that is delivered at the end of this round.
    var outgoing: PacketBuffer?
    /// For the handler: where this connection stands in its own tables.
    package var tag = 0
    var handler: (any WebSocketHandler)?
    /// libwebsockets' side of the connection, until that is destroyed.
    var wsi: OpaquePointer?
    /// The bytes that were sent since the socket was last known to have room.
    var uncheckedByteCount = 0
    /// The bytes that are sent before the system is asked about the socket's room again.
    var uncheckedByteLimit = WebSocketConnection.leastUncheckedByteCount
    let service: Service
    let role: Role

    /// The peer's numeric address, without port; empty while a client looks its server up.
    package internal(set) var peerAddress: String

    /// The path that the client asked for, as it was sent, percent-encoded and without query; at most 1,024 bytes.
    ///
    /// "/" on a client's connection.
    package internal(set) var requestPath = "/"

    /// The subprotocols that the client offered, as it listed them ("room.v2, room.v1"); empty if none.
    package internal(set) var offeredSubprotocols = ""

    /// The subprotocol that is in force; `nil` if none was negotiated.
    package internal(set) var subprotocol: String?

    /// Whether messages can be sent: from `opened` until either side closes.
    package var isOpen: Bool {
        checkThread()
        return phase == .open
    }

    let limits: MessageLimits
    let idle: IdlePolicy
    /// Why the connection ends; the first reason counts.
    var ending: WebSocketClosure?
    var incoming = IncomingMessage()
    /// Whole messages that wait for their turn.
    var deferred: [DeferredMessage] = []
    /// The turn of the loop in which `textCount` text messages were handed out.
    var textTurn: UInt64 = 0
    var textCount = 0
    var lastHeard = MonotonicClock.now
    var isPingWanted = false
    /// What the peer is told once the socket can take it.
    var closeMessage: (code: UInt16, reason: String)?
    /// Whether our close message has been sent, or waits in libwebsockets.
    var isCloseSent = false
    /// What a plain HTTP request is answered with, until that is written.
    var httpAnswer: String?
    /// Whether a plain HTTP request has been answered.
    var hasAnswered = false
    /// Sees the peer's end while libwebsockets holds bytes that the socket did not take.
    var endWatcher: ReadWatcher?
    /// The request of a peer that libwebsockets does not know yet.
    var awaitedRequest: AwaitedRequest?
    /// Handshake deadline, then the silence of the peer, then the end of closing.
    private(set) lazy var timer = LoopTimer { [unowned self] in timeIsUp() }

    init(
        service: Service,
        role: Role,
        limits: MessageLimits,
        idle: IdlePolicy,
        peerAddress: String,
        handler: (any WebSocketHandler)?
    ) {
        self.service = service
        self.role = role
        self.limits = limits
        self.idle = idle
        self.peerAddress = peerAddress
        self.handler = handler
    }

    /// Asks for `nextMessage` to be called once the socket can take a message, not before this call returns.
    ///
    /// Any number of calls before that count as one.
    package func requestWrite() {
        checkThread()
        guard phase == .open, !isSendRequested, !isAwaitingRoom else { return }
        isSendRequested = true
        service.sendSoon(self)
    }

    /// Ends the connection: what libwebsockets has taken is sent first, then `code` and `reason`.
    ///
    /// `closed` follows, with `.byUs`, when the peer has answered, or after two seconds, in which case the peer is cut off
    /// with all that it has not taken. `reason` is cut at 123 bytes of
    /// UTF-8. Does nothing if the connection is closing already.
    ///
    /// A code is 1000, 1001, 1003, 1007-1011 or 3000-4999 (RFC 6455, section 7.4).
    package func close(code: UInt16, reason: String) {
        checkThread()
        let reason = Self.cut(reason)
        end(.byUs(code: code, reason: reason), code: code, reason: reason)
    }

    /// Ends the connection at once: what has not been sent is lost, and the peer gets no close message.
    ///
    /// For a peer that does not read, whom a close message would not reach. `closed` follows from the loop, not from
    /// inside this call, with `.failed` and `reason` in its sentence.
    package func hangUp(reason: String) {
        checkThread()
        guard phase == .open || phase == .closing else { return }
        phase = .closing
        if ending == nil { ending = .failed(lost(because: reason)) }
        discardIncoming()
        setTimer(after: .zero)
    }

    /// Prepares `message` for being sent to any number of peers of listeners, as `OutgoingMessage.shared`.
    ///
    /// To be called once, by the buffer's one holder, after it is filled; from then on the buffer is read-only. Any
    /// thread.
    package static func frameForSharing(_ message: PacketBuffer) {
        FrameHeader(payloadCount: message.count).write(to: message)
    }

    func checkThread() {
        precondition(service.isCurrent, "a WebSocketConnection is used off its loop's thread")
    }

    /// Starts closing for `closure`, telling the peer `code` and `reason`.
    func end(_ closure: WebSocketClosure, code: UInt16, reason: String) {
        guard phase == .open else { return }
        phase = .closing
        if ending == nil { ending = closure }
        discardIncoming()
        closeMessage = (code, reason)
        setTimer(after: service.settings.closeGrace)
        awaitRoom()
    }

    /// Tells the handler of the end, once.
    func finish() {
        guard phase != .closed else { return }
        let wasOpened = phase != .handshaking
        phase = .closed
        timer.stop()
        endWatcher?.stop()
        awaitedRequest?.drop()
        discardIncoming()
        outgoing = nil
        let handler = handler
        self.handler = nil
        guard let handler else { return }
        if case .accepted = role, !wasOpened { return }
        let reason = "it ended without a close message: the network failed, the peer died, or it broke the protocol."
        handler.closed(self, ending ?? .failed(lost(because: reason)))
    }

    private func discardIncoming() {
        incoming.discard()
        deferred = []
    }

    private func lost(because reason: String) -> WebSocketError {
        WebSocketError(.connectionLost, attempted: "keep the connection with \(peerAddress)", advice: reason)
    }

    private static func cut(_ reason: String) -> String {
        guard reason.utf8.count > maximumReasonCount else { return reason }
        var cut = reason
        while cut.utf8.count > maximumReasonCount { cut.unicodeScalars.removeLast() }
        return cut
    }
}

extension WebSocketConnection {
    /// The handshake is done.
    func established(handler: (any WebSocketHandler)? = nil) {
        if let handler { self.handler = handler }
        phase = .open
        lastHeard = MonotonicClock.now
        setTimer(after: idle.pingAfter)
        tuneSocket()
        self.handler?.opened(self)
    }

    /// Sends at once what is small, and lets the kernel hold little that is not sent yet.
    private func tuneSocket() {
        guard let wsi = unsafe wsi else { return }
        socket = unsafe lws_get_socket_fd(wsi)
        // On a socket with TLS it would put plain text among the records.
        sendsDirectly = unsafe service.settings.sendsDirectly && lws_get_ssl(wsi) == nil
        if peerAddress == SocketAddress.unixText {
            // There is no TCP_NOTSENT_LOWAT: 197 kB of old frames pile up without this, 33 kB with it.
            return setOption(SOL_SOCKET, SO_SNDBUF, Self.lowWater)
        }
        setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        setOption(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.lowWater)
    }

    private func setOption(_ level: Int32, _ option: Int32, _ value: Int) {
        var value = Int32(value)
        unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
