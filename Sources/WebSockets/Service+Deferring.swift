/// The turns of connections whose text messages wait.
extension Service {
    /// The most text messages of one connection before others get their turn.
    private static let textsOfConnectionInTurn = 16

    /// Whether a text message of `connection` may be passed on in this turn; if so, it is counted.
    func admitsText(of connection: WebSocketConnection) -> Bool {
        checkThread()
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
        checkThread()
        newlyDeferring.append(connection)
    }

    /// Stops reading from peers whose messages wait; must not be called in one of libwebsockets' callbacks.
    func holdDeferring() {
        checkThread()
        guard !newlyDeferring.isEmpty else { return }
        for connection in newlyDeferring where !connection.deferred.isEmpty {
            connection.setReading(false)
            deferringConnections.append(connection)
        }
        newlyDeferring.removeAll(keepingCapacity: true)
    }
}
