import CWebSockets
import MediaCore
import Threading

extension Service {
    /// Begins to connect; the result goes to `handler`.
    ///
    /// - Parameters:
    ///   - options: The server to connect to, and the limits.
    ///   - resolved: The server's addresses, best first; `nil` to look its name up.
    ///   - handler: The application's side of the connection.
    func connect(_ options: ClientOptions, resolved: [SocketAddress]? = nil, handler: any WebSocketHandler) {
        let attempt = ConnectAttempt(options: options, on: self)
        let connection = WebSocketConnection(
            service: self,
            role: .connecting(attempt),
            limits: options.limits,
            idle: options.idle,
            congestionControl: options.congestionControl,
            peerAddress: "",
            handler: handler
        )
        keep(connection)
        guard !isStopping else { return abandon(connection, with: .shutDown(attempt.attempted)) }
        let url = options.url
        // Only a name that requires a name server needs a thread.
        let numeric = SocketAddress.resolve(host: url.host, port: url.port, isNumericOnly: true)
        if let addresses = try? resolved ?? numeric.get() {
            attempt.resolved(to: addresses)
            tryNextAddress(connection, attempt)
        } else {
            connection.setTimer(after: options.lookupTimeout)
            lookUp(connection, attempt)
        }
    }

    private func lookUp(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) {
        guard let loop else { return }
        let (host, port) = (attempt.options.url.host, attempt.options.url.port)
        do throws(ThreadShortage) {
            lookupThreads[ObjectIdentifier(connection)] = try WorkerThread(name: "resolver") { [self] in
                let result = SocketAddress.resolve(host: host, port: port)
                loop.execute { [self] in lookedUp(result, connection) }
            }
        } catch {
            abandon(connection, with: .system(attempt.attempted, status: error.status, advice: "\(error)."))
        }
    }

    private func lookedUp(
        _ result: Result<[SocketAddress], SocketAddress.ResolutionFailure>,
        _ connection: WebSocketConnection
    ) {
        checkThread()
        lookupThreads.removeValue(forKey: ObjectIdentifier(connection))?.join()
        guard connection.phase == .handshaking, case .connecting(let attempt) = connection.role else { return }
        switch result {
        case .success(let addresses):
            attempt.resolved(to: addresses)
            tryNextAddress(connection, attempt)
        case .failure(let failure):
            let error = WebSocketError(
                .unknownHost,
                attempted: attempt.attempted,
                status: failure.status,
                advice: "\(failure.text); check the host's name and this machine's name server."
            )
            abandon(connection, with: error)
        }
    }

    private func tryNextAddress(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) {
        checkThread()
        guard connection.phase == .handshaking, unsafe connection.wsi == nil else { return }
        guard !isStopping else { return abandon(connection, with: .shutDown(attempt.attempted)) }
        guard let next = attempt.schedule.next(at: MonotonicClock.now) else {
            return abandon(connection, with: attempt.refusedError)
        }
        connection.setTimer(after: next.limit)
        connection.peerAddress = next.address.text
        attempt.isBegun = true
        guard let wsi = unsafe begin(connection, attempt) else {
            // libwebsockets reports most failures by a callback inside this call, but not all.
            if attempt.isBegun { connectFailed(connection, attempt) }
            return
        }
        guard connection.phase == .handshaking else { return }
        unsafe connection.wsi = wsi
    }

    /// Handles a failed connection to one address: tries the next one, if there is one.
    func connectFailed(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) {
        checkThread()
        attempt.isBegun = false
        guard connection.phase == .handshaking, attempt.isGivingWay(at: MonotonicClock.now), !isStopping else {
            if connection.ending == nil, connection.phase == .handshaking, !attempt.isConnected {
                connection.ending = .failed(attempt.refusedError)
            }
            return release(connection)
        }
        connection.ending = nil
        // This must not run inside libwebsockets' own cleanup.
        loop?.execute { [self] in
            guard case .connecting(let attempt) = connection.role else { return }
            tryNextAddress(connection, attempt)
        }
    }

    /// Makes libwebsockets connect to the connection's peer address.
    private func begin(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) -> OpaquePointer? {
        let url = attempt.options.url
        // All strings are copied by libwebsockets before it returns.
        return unsafe withCStrings(
            connection.peerAddress,
            url.path,
            url.authority,
            attempt.options.subprotocol
        ) { address, path, host, subprotocol in
            var information = unsafe lws_client_connect_info()
            unsafe information.context = context
            unsafe information.vhost = clientHost
            unsafe information.address = address
            unsafe information.port = Int32(url.port)
            unsafe information.path = path
            unsafe information.host = host
            unsafe information.protocol = subprotocol
            unsafe information.local_protocol_name = UnsafePointer(clientTable?.protocols.pointee.name)
            unsafe information.ssl_connection = Int32(LCCSCF_HTTP_NO_FOLLOW_REDIRECT.rawValue)
            unsafe information.retry_and_idle_policy = unsafe keepalivePolicy
            unsafe information.opaque_user_data = Unmanaged.passUnretained(connection).toOpaque()
            return unsafe lws_client_connect_via_info(&information)
        }
    }
}

private func withCStrings<Result>(
    _ first: String,
    _ second: String,
    _ third: String,
    _ fourth: String,
    _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>) -> Result
) -> Result {
    unsafe first.withCString { first in
        unsafe second.withCString { second in
            unsafe third.withCString { third in
                unsafe fourth.withCString { fourth in unsafe body(first, second, third, fourth) }
            }
        }
    }
}
