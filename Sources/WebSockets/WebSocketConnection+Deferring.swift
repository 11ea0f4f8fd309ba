import CWebSockets
import MediaCore
import Threading

/// A whole message that waits for its connection's turn.
enum DeferredMessage {
    case text(String)
    case binary(PacketBuffer)
}

/// Hands out a few text messages of each peer in each turn of the loop, so that a flood delays nobody else.
///
/// Depth: the messages of one read from the socket (`ProtocolTable.receiveByteCount`), or of two for a peer that also
/// sends media; nothing more is read from the peer in the next turns while messages wait. Drop rule: nothing is
/// dropped, except messages that still wait when either side closes the connection. A connection's messages stay in
/// order.
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
    ///
    /// A client that sends media at a publisher's rate is read even in the middle of a long turn.
    func takeBinary(_ message: PacketBuffer) {
        if case .accepted = role, message.count > Self.longestControlMessage {
            let isMedia = mediaConduct.messageArrived(at: lastHeard)
            if isMedia && !isMediaSocket { service.mediaSockets?.insert(self) }
            if !isMedia && isMediaSocket { service.mediaSockets?.remove(self) }
        }
        if deferred.isEmpty {
            handler?.receivedBinary(message, from: self)
        } else {
            deferMessage(.binary(message))
        }
    }

    /// Binary messages of up to this many bytes are no media: acknowledgements, which every viewer sends.
    private static let longestControlMessage = 64

    private func deferMessage(_ message: DeferredMessage) {
        if deferred.isEmpty { service.deferred(self) }
        deferred.append(message)
    }

    /// Passes waiting messages to the handler, at most `count` texts among them.
    func deliverDeferred(atMost count: Int) {
        var texts = 0
        var next = 0
        // The handler may close the connection, which empties the list.
        while phase == .open, next < deferred.count {
            switch deferred[next] {
            case .text(let text):
                guard texts < count else {
                    deferred.removeFirst(next)
                    return
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
    }

    /// Starts or stops reading from the peer.
    func setReading(_ isReading: Bool) {
        guard let wsi = unsafe wsi, phase == .open || isReading else { return }
        _ = unsafe lws_rx_flow_control(wsi, isReading ? 1 : 0)
    }
}

extension Service {
    /// The most text messages of one connection before others get their turn.
    private static let textsOfConnectionInTurn = 16

    /// Whether a text message of `connection` may be passed on in this turn; if so, it is counted.
    func admitsText(of connection: WebSocketConnection) -> Bool {
        if connection.textTurn != budget.number {
            connection.textTurn = budget.number
            connection.textCount = 0
        }
        // Media would wait behind the text, so a peer that sends media has one text free in each turn.
        let isFree = connection.isMediaSocket && connection.textCount == 0
        guard connection.textCount < Self.textsOfConnectionInTurn, isFree || budget.admitsText() else { return false }
        connection.textCount += 1
        return true
    }

    /// Begins a turn of the loop: waiting messages come first, but leave half of the turn to new ones.
    func beginTurn() {
        budget.begin()
        guard !deferringConnections.isEmpty else { return }
        checkThread()
        // Connections take turns, one message each; those with more go to the end.
        while let connection = deferringConnections.first, budget.admitsText(leavingHalf: true) {
            deferringConnections.removeFirst()
            connection.deliverDeferred(atMost: 1)
            interruption?.runIfDue()
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

/// How much of a turn of the loop has gone to work that strangers can ask for.
///
/// Messages with media are not limited here: their rate is limited by whoever receives them.
struct TurnBudget {
    /// The most text messages in one turn.
    private static let mostTexts = 64
    /// The time in one turn after which no further text message is begun.
    ///
    /// A relay answers one in some 50 µs, but one that it must pass on to a large room takes ten times as long. So the
    /// clock is read for each.
    private static let longestTime = Duration.milliseconds(2)
    /// The most handshakes that begin in one turn; one takes some 200 µs.
    private static let mostHandshakes = 8

    /// Counts the turns.
    private(set) var number: UInt64 = 0
    private var textCount = 0
    private var handshakeCount = 0
    private var firstText: MonotonicInstant?

    mutating func begin() {
        number &+= 1
        textCount = 0
        handshakeCount = 0
        firstText = nil
    }

    /// Whether another text message may be passed on; if so, it is counted.
    mutating func admitsText(leavingHalf: Bool = false) -> Bool {
        let parts = leavingHalf ? 2 : 1
        guard textCount < Self.mostTexts / parts else { return false }
        let now = MonotonicClock.now
        let began = firstText ?? now
        firstText = began
        guard now.duration(since: began) * parts < Self.longestTime else { return false }
        textCount += 1
        return true
    }

    /// Whether another handshake may begin; if so, it is counted.
    mutating func admitsHandshake() -> Bool {
        guard handshakeCount < Self.mostHandshakes else { return false }
        handshakeCount += 1
        return true
    }
}
