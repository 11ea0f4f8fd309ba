import Threading

/// The connections of a loop that have something to send, and the order in which they send; confined to the loop's
/// thread.
///
/// It is a class because connections are added while others are asked for their messages.
final class Senders {
    /// The most messages that one connection sends before others get their turn.
    private static let rounds = 8
    /// The messages that are sent in a turn of the loop before sockets are looked at again; a round is always finished.
    ///
    /// At some 5 to 10 µs each, they take little more than 2 ms, however much waits for however many peers.
    private static let messagesInTurn = 256
    /// The connections that send what is not urgent before urgent messages get their turn again.
    private static let groupCount = 32

    /// Connections whose handlers have something to send; each is listed only once.
    private var ordinary: [WebSocketConnection] = []
    /// Connections whose handlers have something urgent to send; each is listed only once.
    private var urgent: [WebSocketConnection] = []
    /// The ordinary senders of this turn of the loop.
    ///
    /// Like the next one it is empty otherwise; the arrays are kept to reuse their memory.
    private var waiting: [WebSocketConnection] = []
    /// The connections whose turn it is.
    private var current: [WebSocketConnection] = []

    var isEmpty: Bool { ordinary.isEmpty && urgent.isEmpty }

    /// Asks `connection`'s handler for messages before the loop waits again.
    ///
    /// The connection makes sure that it is listed only once of each kind.
    func add(_ connection: WebSocketConnection, isUrgent: Bool = false) {
        if isUrgent { urgent.append(connection) } else { ordinary.append(connection) }
    }

    /// Sends for the connections that requested it, the urgent ones first; requests made meanwhile are for the next
    /// turn.
    ///
    /// Calls `betweenGroups` now and then; it may call `sendUrgent`.
    func send(betweenGroups: () -> Void) {
        sendUrgent()
        guard !ordinary.isEmpty else { return }
        swap(&ordinary, &waiting)
        var (next, count) = (0, 0)
        while next < waiting.count && count < Self.messagesInTurn {
            let end = min(next + Self.groupCount, waiting.count)
            current.append(contentsOf: waiting[next..<end])
            next = end
            count += runRounds(areUrgent: false)
            ordinary.append(contentsOf: current)
            current.removeAll(keepingCapacity: true)
            betweenGroups()
        }
        // Senders that did not get their turn come first in the next one.
        if next < waiting.count { ordinary.insert(contentsOf: waiting[next...], at: 0) }
        waiting.removeAll(keepingCapacity: true)
    }

    /// Sends for the connections that have something urgent.
    func sendUrgent() {
        guard !urgent.isEmpty else { return }
        swap(&urgent, &current)
        _ = runRounds(areUrgent: true)
        urgent.append(contentsOf: current)
        current.removeAll(keepingCapacity: true)
    }

    /// Sends for the current connections; those that have more remain there.
    ///
    /// In each round all sockets are asked for room first, then all handlers for their next message, and then all
    /// messages are sent. Doing one kind of work after the other uses the processor's caches better than alternating.
    /// The sockets' structures are in none of them, and one after the other they are fetched side by side. A connection
    /// has at most one message in a round.
    ///
    /// - Returns: How many messages were asked for.
    private func runRounds(areUrgent: Bool) -> Int {
        // Local, because each access to the object's own lists is checked by the runtime.
        var senders: [WebSocketConnection] = []
        swap(&senders, &current)
        var count = 0
        for _ in 0..<Self.rounds where !senders.isEmpty && count < Self.messagesInTurn {
            count += senders.count
            let now = MonotonicClock.now
            for sender in senders { sender.lookForRoom() }
            for sender in senders { sender.askForNext(isUrgent: areUrgent, at: now) }
            senders.removeAll { !$0.sendNext() }
        }
        swap(&senders, &current)
        return count
    }
}
