import Glibc
import Threading

extension Service {
    /// Begins to accept connections from the listening socket `descriptor`, which the service owns from now on.
    func listen(
        _ options: ListenerOptions,
        descriptor: Int32,
        makeHandler: @escaping @Sendable () -> any WebSocketHandler
    ) throws(WebSocketError) {
        checkThread()
        guard !isStopping else {
            Glibc.close(descriptor)
            throw .shutDown("listen at \(options.place)")
        }
        if let first = listeners.first {
            precondition(
                first.options.subprotocol == options.subprotocol
                    && first.options.refusedSubprotocols == options.refusedSubprotocols,
                "\(options.subprotocol) beside \(first.options.subprotocol): listeners of a loop share subprotocols"
            )
        }
        let name = "listener-\(listeners.count)"
        let names = [options.subprotocol] + options.refusedSubprotocols.filter { $0 != options.subprotocol }
        let table = ProtocolTable(hostName: name, protocolNames: names)
        let listener = Listener(
            options: options,
            service: self,
            table: table,
            makeHandler: makeHandler
        )
        // The listener is kept even if this fails, because the host points to it.
        listeners.append(listener)
        try listener.start(descriptor)
    }

    /// Owns `connection` until `release`.
    func keep(_ connection: WebSocketConnection) {
        checkThread()
        connections[ObjectIdentifier(connection)] = connection
    }

    /// Ends `connection` for good.
    func release(_ connection: WebSocketConnection) {
        checkThread()
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        connection.finish()
    }

    /// Handles the case that libwebsockets did not accept `connection`.
    func adoptionFailed(_ connection: WebSocketConnection) {
        checkThread()
        guard connections[ObjectIdentifier(connection)] != nil else { return }
        wsiDestroyed(of: connection)
    }

    /// Handles the destruction of libwebsockets' object for `connection`.
    func wsiDestroyed(of connection: WebSocketConnection) {
        checkThread()
        switch connection.role {
        case .accepted(let listener):
            listener.connectionEnded()
            release(connection)
        case .connecting(let attempt):
            attempt.isBegun = false
            connectFailed(connection, attempt)
        }
    }
}
