import CWebSockets
import MediaCore

/// A whole message that waits for its connection's turn.
enum DeferredMessage {
    case text(String)
    case binary(PacketBuffer)
}

/// Text messages of one peer are handed out a few in each turn of the loop, so that a flood of them holds up nobody else.
///
/// Depth: what one read from the socket brings (`ProtocolTable.receiveByteCount`); nothing is read from the peer while
/// messages of it wait. A connection's messages stay in order. Nothing is dropped, but for what still waits when either side
/// closes the connection.
extension WebSocketConnection {
    /// Hands a text message to the handler, now or in a later turn.
    func takeText(_ text: String) {
        if deferred.isEmpty && service.admitsText(of: self) {
            handler?.receivedText(text, from: self)
        } else {
            deferMessage(.text(text))
        }
    }

    /// Hands a binary message to the handler: now, unless text messages before it wait.
    func takeBinary(_ message: PacketBuffer) {
        if deferred.isEmpty {
            handler?.receivedBinary(message, from: self)
        } else {
            deferMessage(.binary(message))
        }
    }

    private func deferMessage(_ message: DeferredMessage) {
        if deferred.isEmpty { service.deferred(self) }
        deferred.append(message)
    }

    /// Hands out messages that wait, at most `count` texts among them.
    ///
    /// - Returns: How many texts were handed out.
    func deliverDeferred(atMost count: Int) -> Int {
        var texts = 0
        var next = 0
        // The handler may close the connection, which empties the list.
        while phase == .open, next < deferred.count {
            switch deferred[next] {
            case .text(let text):
                guard texts < count else {
                    deferred.removeFirst(next)
                    return texts
                }
                texts += 1
                next += 1
                handler?.receivedText(text, from: self)
            case .binary(let message):
                next += 1
                handler?.receivedBinary(message, from: self)
            }
        }
        deferred = []
        return texts
    }

    /// Reads from the peer, or no longer.
    func setReading(_ isReading: Bool) {
        guard let wsi = unsafe wsi, phase == .open || isReading else { return }
        _ = unsafe lws_rx_flow_control(wsi, isReading ? 1 : 0)
    }
}

extension Service {
    /// Text messages that are handed out in a turn of the loop, those that waited and those that come.
    ///
    /// A relay answers one in some 50 µs, so that a turn takes at most about 3 ms.
    private static let textsInTurn = 64
    /// Of these, what one connection may have.
    private static let textsOfConnectionInTurn = 16

    /// Whether a text message of `connection` may be handed out in this turn; it counts as handed out then.
    func admitsText(of connection: WebSocketConnection) -> Bool {
        if connection.textTurn != turnNumber {
            connection.textTurn = turnNumber
            connection.textCount = 0
        }
        guard textCount < Self.textsInTurn, connection.textCount < Self.textsOfConnectionInTurn else { return false }
        textCount += 1
        connection.textCount += 1
        return true
    }

    /// Begins a turn: messages that wait are handed out first, but leave half of the turn to those that come.
    func deliverDeferred() {
        turnNumber &+= 1
        textCount = 0
        guard !deferringConnections.isEmpty else { return }
        checkThread()
        // Each gets its share, in the order in which they came; those that are not done go to the end.
        for _ in 0..<deferringConnections.count where textCount < Self.textsInTurn / 2 {
            let connection = deferringConnections.removeFirst()
            let share = min(Self.textsOfConnectionInTurn, Self.textsInTurn / 2 - textCount)
            textCount += connection.deliverDeferred(atMost: share)
            if connection.deferred.isEmpty {
                connection.setReading(true)
            } else {
                deferringConnections.append(connection)
            }
        }
    }

    /// Notes that messages of `connection` wait.
    func deferred(_ connection: WebSocketConnection) {
        newlyDeferring.append(connection)
    }

    /// Reads no more from peers whose messages wait; not in one of libwebsockets' callbacks.
    func holdDeferring() {
        guard !newlyDeferring.isEmpty else { return }
        for connection in newlyDeferring where !connection.deferred.isEmpty {
            connection.setReading(false)
            deferringConnections.append(connection)
        }
        newlyDeferring.removeAll(keepingCapacity: true)
    }
}
