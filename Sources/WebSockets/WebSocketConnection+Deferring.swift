import CWebSockets
import MediaCore

/// A whole message that waits for its connection's turn.
enum DeferredMessage {
    case text(String)
    case binary(PacketBuffer)
}

/// Hands out a few text messages of each peer in each turn of the loop, so that a flood delays nobody else.
///
/// Depth: the messages of one read from the socket (`ProtocolTable.receiveByteCount`); nothing more is read from the
/// peer while messages wait. Drop rule: nothing is dropped, except messages that still wait when either side closes the
/// connection. A connection's messages stay in order.
extension WebSocketConnection {
    /// Passes a text message to the handler, now or in a later turn.
    func takeText(_ text: String) {
        if deferred.isEmpty && service.admitsText(of: self) {
            handler?.receivedText(text, from: self)
        } else {
            deferMessage(.text(text))
        }
    }

    /// Passes a binary message to the handler: now, unless text messages before it wait.
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

    /// Passes waiting messages to the handler, at most `count` texts among them.
    ///
    /// - Returns: How many texts were passed.
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

    /// Starts or stops reading from the peer.
    func setReading(_ isReading: Bool) {
        guard let wsi = unsafe wsi, phase == .open || isReading else { return }
        _ = unsafe lws_rx_flow_control(wsi, isReading ? 1 : 0)
    }
}

extension Service {
    /// The most text messages in one turn of the loop, both waiting and new ones.
    ///
    /// A relay answers one in some 50 µs, so a turn takes at most about 3 ms.
    private static let textsInTurn = 64
    /// The most text messages of one connection in a turn.
    private static let textsOfConnectionInTurn = 16

    /// Whether a text message of `connection` may be passed on in this turn; if so, it is counted.
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

    /// Begins a turn: waiting messages come first, but leave half of the turn to new ones.
    func deliverDeferred() {
        turnNumber &+= 1
        textCount = 0
        guard !deferringConnections.isEmpty else { return }
        checkThread()
        // Each connection gets its share, in the order of arrival; those with more messages go to the end.
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

    /// Records that messages of `connection` wait.
    func deferred(_ connection: WebSocketConnection) {
        newlyDeferring.append(connection)
    }

    /// Stops reading from peers whose messages wait; must not be called in one of libwebsockets' callbacks.
    func holdDeferring() {
        guard !newlyDeferring.isEmpty else { return }
        for connection in newlyDeferring where !connection.deferred.isEmpty {
            connection.setReading(false)
            deferringConnections.append(connection)
        }
        newlyDeferring.removeAll(keepingCapacity: true)
    }
}
