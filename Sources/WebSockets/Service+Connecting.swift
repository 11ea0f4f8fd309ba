import CWebSockets
import MediaCore
import Threading

extension Service {
    /// Begins to connect; the outcome goes to `handler`.
    func connect(_ options: ClientOptions, handler: any WebSocketHandler) {
        let attempt = ConnectAttempt(options: options)
        let connection = WebSocketConnection(
            service: self,
            role: .connecting(attempt),
            limits: options.limits,
            idle: options.idle,
            peerAddress: "",
            handler: handler
        )
        keep(connection)
        guard !isStopping else { return abandon(connection, with: .shutDown(attempt.attempted)) }
        let url = options.url
        // Only a name that a server must be asked about is worth a thread.
        let numeric = SocketAddress.resolve(host: url.host, port: url.port, isNumericOnly: true)
        if case .success(let addresses) = numeric {
            attempt.addresses = addresses.reversed()
            tryNextAddress(connection, attempt)
        } else {
            lookUp(connection, attempt)
        }
    }

    private func lookUp(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) {
        guard let loop else { return }
        let (host, port) = (attempt.options.url.host, attempt.options.url.port)
        do throws(ThreadShortage) {
            lookupThreads[ObjectIdentifier(attempt)] = try WorkerThread(name: "resolver") { [self] in
                let result = SocketAddress.resolve(host: host, port: port)
                loop.execute { [self] in lookedUp(result, connection, attempt) }
            }
        } catch {
            return abandon(connection, with: .system(attempt.attempted, status: error.status, advice: "\(error)."))
        }
        lookups.append(connection)
        wake(after: attempt.deadline.duration(since: MonotonicClock.now))
    }

    private func lookedUp(
        _ result: Result<[SocketAddress], SocketAddress.ResolutionFailure>,
        _ connection: WebSocketConnection,
        _ attempt: ConnectAttempt
    ) {
        lookupThreads.removeValue(forKey: ObjectIdentifier(attempt))?.join()
        lookups.removeAll { $0 === connection }
        guard connection.phase == .handshaking else { return }
        switch result {
        case .success(let addresses):
            attempt.addresses = addresses.reversed()
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

    /// Gives up the look-ups that take too long, and sees to it that the next one is given up in time.
    func checkLookups() {
        let now = MonotonicClock.now
        for connection in lookups {
            guard case .connecting(let attempt) = connection.role else { continue }
            if attempt.deadline <= now { abandon(connection, with: attempt.timeOutError) }
        }
        let next = lookups.compactMap { connection -> MonotonicInstant? in
            guard case .connecting(let attempt) = connection.role else { return nil }
            return attempt.deadline
        }.min()
        if stopDeadline == nil, let next { wake(after: next.duration(since: now)) }
    }

    func tryNextAddress(_ connection: WebSocketConnection, _ attempt: ConnectAttempt) {
        guard connection.phase == .handshaking, unsafe connection.wsi == nil else { return }
        guard !isStopping else { return abandon(connection, with: .shutDown(attempt.attempted)) }
        guard let address = attempt.addresses.popLast() else {
            return abandon(connection, with: attempt.refusedError)
        }
        connection.peerAddress = address.text
        let wsi = unsafe begin(connection, attempt)
        // The connection may have failed already, and be gone; a failure before it was known is told by `nil` alone.
        guard let wsi = unsafe wsi else { return abandon(connection, with: attempt.refusedError) }
        guard connection.phase == .handshaking else { return }
        unsafe connection.wsi = wsi
        connection.setTimer(after: attempt.deadline.duration(since: MonotonicClock.now))
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
