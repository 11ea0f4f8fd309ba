import CWebSockets
import Glibc
package import MediaCore
import Threading

/// One WebSocket connection of a loop, on the client's or the server's side; confined to the loop's thread.
///
/// It exists from the handshake on. After `closed`, its calls do nothing.
@safe package final class WebSocketConnection: @unchecked Sendable {
    // `@unchecked Sendable`: every call checks that it comes on the loop's thread.

    /// The end of the handshake on this side.
    enum Role {
        case accepted(Listener)
        case connecting(ConnectAttempt)
    }

    /// The state of the connection.
    enum Phase { case handshaking, open, closing, closed }

    /// The unsent bytes that the kernel may hold while the socket still counts as writable.
    ///
    /// Measured with a reader that stalls: without it 4.2 MB of old frames pile up in the kernel, with it 150 kB.
    static let lowWater = 16_384
    /// RFC 6455, section 5.5: a control frame carries at most 125 bytes, here less the code's two.
    private static let maximumReasonCount = 123

    // The fields that are read for every message come first, so that they lie close together in memory.

    var phase = Phase.handshaking
    /// Whether the connection is listed to be asked for messages at the end of the loop's turn.
    var isSendRequested = false
    /// Whether the connection is listed to be asked for messages before others.
    var isUrgentSendRequested = false
    /// Whether the handler has something urgent to send, or had when it was last asked.
    var isUrgent = false
    /// Whether the socket is among the service's `mediaSockets`.
    var isMediaSocket = false
    /// Whether the peer sends media as a publisher does.
    var mediaConduct: MediaConduct
    /// Whether the socket could take a message at the beginning of this round.
    var isRoomSeen = false
    /// Whether the connection is asked for another message after this round.
    var hasMore = false
    /// Whether libwebsockets will call `writable`.
    var isAwaitingRoom = false
    /// Whether binary messages go to the socket directly by `send()`, without libwebsockets; never on a socket with
    /// TLS.
    var sendsDirectly = false
    /// The socket's descriptor while messages can be sent.
    private(set) var socket: Int32 = -1
    /// The message with its header that will be sent at the end of this round.
    var outgoing: PacketBuffer?
    /// A number for the handler: the connection's place in the handler's own tables.
    package var tag = 0
    var handler: (any WebSocketHandler)?
    /// libwebsockets' object for the connection, until it is destroyed.
    var wsi: OpaquePointer?
    /// The bytes sent since the socket was last known to have room.
    var uncheckedByteCount = 0
    /// The bytes to send before the system is asked again whether the socket has room.
    var uncheckedByteLimit = WebSocketConnection.leastUncheckedByteCount
    let service: Service
    let role: Role

    /// The peer's numeric address without port; empty while a client looks its server up.
    package internal(set) var peerAddress: String

    /// The requested path as the client sent it, percent-encoded and without query; at most 1,024 bytes.
    ///
    /// "/" on a client's connection.
    package internal(set) var requestPath = "/"

    /// The subprotocols that the client offered, in its own text ("room.v2, room.v1"); empty if none.
    package internal(set) var offeredSubprotocols = ""

    /// The negotiated subprotocol; `nil` if there is none.
    package internal(set) var subprotocol: String?

    /// Whether messages can be sent: from `opened` until either side closes.
    package var isOpen: Bool {
        checkThread()
        return phase == .open
    }

    let limits: MessageLimits
    let idle: IdlePolicy
    private let congestionControl: String?
    /// The reason why the connection ends; the first one counts.
    var ending: WebSocketClosure?
    var incoming = IncomingMessage()
    /// Whole messages that wait for their turn.
    var deferred: [DeferredMessage] = []
    /// The turn of the loop in which `textCount` text messages were handed out.
    var textTurn: UInt64 = 0
    var textCount = 0
    var lastHeard = MonotonicClock.now
    var isPingWanted = false
    /// The close message to send once the socket can take it.
    var closeMessage: (code: UInt16, reason: String)?
    /// Whether our close message has been sent, or is queued in libwebsockets.
    var isCloseSent = false
    /// Notices that the peer has ended while libwebsockets holds bytes that the socket did not take.
    var endWatcher: ReadWatcher?
    private var tcpPath = TCPPath.none
    /// The request of a peer that has not been passed to libwebsockets yet.
    var awaitedRequest: AwaitedRequest?
    /// The timer for the handshake's deadline, then for the peer's silence, then for the end of closing.
    private(set) lazy var timer = LoopTimer { [unowned self] in timerFired() }

    init(
        service: Service,
        role: Role,
        limits: MessageLimits,
        idle: IdlePolicy,
        congestionControl: String?,
        peerAddress: String,
        handler: (any WebSocketHandler)?
    ) {
        self.service = service
        self.role = role
        self.limits = limits
        self.idle = idle
        self.congestionControl = congestionControl
        self.peerAddress = peerAddress
        self.handler = handler
        mediaConduct = MediaConduct(probation: service.settings.mediaProbation)
    }

    /// Requests a call of `nextMessage` once the socket can take a message, but not before this call returns.
    ///
    /// Several calls before that count as one.
    ///
    /// - Parameter isUrgent: Whether the handler is asked before those that have nothing urgent, until it has no more
    ///   to send. It is meant for media.
    package func requestWrite(isUrgent: Bool = false) {
        checkThread()
        if isUrgent { self.isUrgent = true }
        guard phase == .open, !isListed(isUrgent: self.isUrgent), !isAwaitingRoom else { return }
        setListed(true, isUrgent: self.isUrgent)
        service.senders.add(self, isUrgent: self.isUrgent)
    }

    /// Whether the connection is among the service's urgent senders, or among the others.
    func isListed(isUrgent: Bool) -> Bool { isUrgent ? isUrgentSendRequested : isSendRequested }

    /// Notes whether the connection is among the service's urgent senders, or among the others.
    func setListed(_ isListed: Bool, isUrgent: Bool) {
        if isUrgent { isUrgentSendRequested = isListed } else { isSendRequested = isListed }
    }

    /// Sends a ping once the socket can take one; the handler's `answeredPing` tells of the answer.
    ///
    /// Several calls before it is sent count as one.
    package func ping() {
        checkThread()
        guard phase == .open else { return }
        isPingWanted = true
        awaitRoom()
    }

    /// Closes the connection: earlier messages are sent first, then `code` and `reason`.
    ///
    /// `closed` with `.byUs` follows when the peer has answered. If the peer has not answered after two seconds, it is
    /// cut off and loses what it has not taken. `reason` is cut at 123 bytes of UTF-8. Does nothing if the connection
    /// is closing already.
    ///
    /// A code is 1000, 1001, 1003, 1007-1011 or 3000-4999 (RFC 6455, section 7.4).
    package func close(code: UInt16, reason: String) {
        checkThread()
        let reason = Self.cut(reason)
        end(.byUs(code: code, reason: reason), code: code, reason: reason)
    }

    /// Ends the connection at once: unsent data is lost, and the peer gets no close message.
    ///
    /// Use it for a peer that does not read, which a close message would not reach. `closed` follows later from the
    /// loop, not inside this call, with `.failed` and a sentence that contains `reason`.
    package func hangUp(reason: String) {
        checkThread()
        guard phase == .open || phase == .closing else { return }
        phase = .closing
        if ending == nil { ending = .failed(lost(because: reason)) }
        discardIncoming()
        setTimer(after: .zero)
    }

    /// Prepares `message` for sending to any number of peers of listeners as `OutgoingMessage.shared`.
    ///
    /// The buffer's one holder must call it once, after filling the buffer; from then on the buffer is read-only. May
    /// be called on any thread.
    package static func frameForSharing(_ message: PacketBuffer) {
        FrameHeader(payloadCount: message.count).write(to: message)
    }

    func checkThread() {
        precondition(service.isCurrent, "a WebSocketConnection is used off its loop's thread")
    }

    /// Starts closing with the result `closure`, and sends `code` and `reason` to the peer.
    func end(_ closure: WebSocketClosure, code: UInt16, reason: String) {
        guard phase == .open else { return }
        phase = .closing
        if ending == nil { ending = closure }
        discardIncoming()
        closeMessage = (code, reason)
        setTimer(after: closeGrace)
        awaitRoom()
    }

    /// Tells the handler once that the connection has ended.
    func finish() {
        guard phase != .closed else { return }
        deliverLast()
        let wasOpened = phase != .handshaking
        phase = .closed
        service.mediaSockets?.remove(self)
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

    private var closeGrace: Duration {
        guard case .accepted(let listener) = role else { return service.settings.closeGrace }
        return listener.options.closeGrace ?? service.settings.closeGrace
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
    /// Handles the end of the handshake.
    func established(handler: (any WebSocketHandler)? = nil) {
        if let handler { self.handler = handler }
        phase = .open
        lastHeard = MonotonicClock.now
        setTimer(after: idle.pingAfter)
        tuneSocket()
        self.handler?.opened(self)
    }

    /// Makes the socket send small messages at once, and limits the unsent bytes in the kernel.
    private func tuneSocket() {
        guard let wsi = unsafe wsi else { return }
        socket = unsafe lws_get_socket_fd(wsi)
        if let congestionControl { TCPPath.set(congestionControl, of: socket) }
        tcpPath = TCPPath(socket: socket)
        // On a socket with TLS, direct sending would put plain text among the records.
        sendsDirectly = unsafe service.settings.sendsDirectly && lws_get_ssl(wsi) == nil
        if peerAddress == SocketAddress.unixText {
            // Unix sockets have no TCP_NOTSENT_LOWAT: without this limit 197 kB of old frames pile up, with it 33 kB.
            return setOption(SOL_SOCKET, SO_SNDBUF, Self.lowWater)
        }
        setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        setOption(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.lowWater)
    }

    /// What the kernel knows of the connection's path; for connections that have been open.
    package var path: TCPPath {
        checkThread()
        return tcpPath
    }

    private func setOption(_ level: Int32, _ option: Int32, _ value: Int) {
        var value = Int32(value)
        unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
