import CWebSockets
import Glibc

/// Accepts connections from a listening socket that libwebsockets only watches; confined to the loop's thread.
///
/// It is not `Sendable`: only its service and its connections use it, and they check their thread.
@safe final class Listener {
    /// The connections accepted at a time before the loop's other connections get their turn.
    private static let acceptsPerTurn = 16
    private static let busyAnswer: StaticString =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    let options: ListenerOptions
    let makeHandler: @Sendable () -> any WebSocketHandler

    private unowned let service: Service
    /// Kept alive because libwebsockets reads it.
    private let table: ProtocolTable
    private var host: OpaquePointer?
    private let maximumConnections: Int
    private var connectionCount = 0
    private var descriptor: Int32 = -1
    private var wsi: OpaquePointer?
    /// A reserve descriptor.
    ///
    /// When descriptors run out it is closed for a moment, so that a peer can be refused instead
    /// of waiting for ever.
    private var spareDescriptor: Int32

    init(
        options: ListenerOptions,
        service: Service,
        table: ProtocolTable,
        makeHandler: @escaping @Sendable () -> any WebSocketHandler
    ) {
        self.options = options
        self.service = service
        self.table = table
        self.makeHandler = makeHandler
        let descriptors = service.descriptorCapacity - DescriptorLimit.reserve
        maximumConnections = max(1, min(options.maximumConnections, descriptors))
        spareDescriptor = Self.openSpare()
    }

    deinit {
        Glibc.close(spareDescriptor)
    }

    /// Passes the socket to libwebsockets, which will close it.
    ///
    /// The caller must hold the listener until the context is destroyed, because the virtual host points to it and to
    /// its table.
    func start(_ descriptor: Int32) throws(WebSocketError) {
        service.checkThread()
        do throws(WebSocketError) {
            unsafe host = try service.makeHost(table, user: Unmanaged.passUnretained(self).toOpaque())
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        var description = unsafe lws_adopt_desc_t()
        unsafe description.vh = host
        unsafe description.type = LWS_ADOPT_RAW_FILE_DESC
        unsafe description.fd.filefd = descriptor
        unsafe description.vh_prot_name = UnsafePointer(table.protocols.pointee.name)
        unsafe wsi = lws_adopt_descriptor_vhost_via_info(&description)
        guard unsafe wsi != nil else {
            let attempted = "listen at \(options.place)"
            throw .system(attempted, status: nil, advice: "libwebsockets has no memory or no descriptor left.")
        }
        self.descriptor = descriptor
    }

    /// Accepts no more connections.
    func stop() {
        service.checkThread()
        guard let wsi = unsafe wsi else { return }
        descriptor = -1
        unsafe self.wsi = nil
        unsafe cwebsockets_kill(wsi)
    }

    /// Records that one of the connections has ended.
    func connectionEnded() {
        service.checkThread()
        connectionCount -= 1
    }

    /// Accepts all waiting connections.
    func acceptAll() {
        service.checkThread()
        for _ in 0..<Self.acceptsPerTurn {
            guard descriptor >= 0 else { return }
            if let (accepted, peer) = SocketAddress.accept(from: descriptor) {
                take(accepted, peer: peer)
                continue
            }
            switch errno {
            case EMFILE, ENFILE: turnOneAway()
            case EINTR, ECONNABORTED, EPROTO: continue
            default: return
            }
        }
    }

    private func take(_ accepted: Int32, peer: String) {
        guard connectionCount < maximumConnections else {
            return refuse(accepted, peer, because: "the limit of connections, \(maximumConnections), is reached")
        }
        guard accepted < service.descriptorCapacity else {
            return refuse(accepted, peer, because: "the limit of open files was raised after the server's start")
        }
        let connection = WebSocketConnection(
            service: service,
            role: .accepted(self),
            limits: options.limits,
            idle: options.idle,
            congestionControl: options.congestionControl,
            peerAddress: peer,
            handler: nil
        )
        service.keep(connection)
        connectionCount += 1
        connection.awaitRequest(on: accepted, timeout: options.handshakeTimeout)
    }

    /// Passes a socket to libwebsockets, which owns it from now on.
    func adopt(_ accepted: Int32, for connection: WebSocketConnection) {
        service.checkThread()
        var description = unsafe lws_adopt_desc_t()
        unsafe description.vh = host
        unsafe description.type = lws_adoption_type(
            rawValue: LWS_ADOPT_SOCKET.rawValue | LWS_ADOPT_HTTP.rawValue
        )
        unsafe description.fd.sockfd = accepted
        unsafe description.opaque = Unmanaged.passUnretained(connection).toOpaque()
        guard let wsi = unsafe lws_adopt_descriptor_vhost_via_info(&description) else {
            // libwebsockets has closed the descriptor, and may have reported the end.
            return service.adoptionFailed(connection)
        }
        unsafe connection.wsi = wsi
    }

    private func refuse(_ accepted: Int32, _ peer: String, because reason: String) {
        LibraryLog.noteRefusal("refused \(peer): \(reason)")
        let answer = Self.busyAnswer
        _ = unsafe send(accepted, answer.utf8Start, answer.utf8CodeUnitCount, Int32(MSG_NOSIGNAL))
        Glibc.close(accepted)
    }

    private func turnOneAway() {
        Glibc.close(spareDescriptor)
        if let (accepted, peer) = SocketAddress.accept(from: descriptor) {
            refuse(accepted, peer, because: "no descriptor is left (ulimit -n)")
        }
        spareDescriptor = Self.openSpare()
    }

    private static func openSpare() -> Int32 {
        unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    }
}
