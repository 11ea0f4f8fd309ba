/// A download beside the flows: it fills the link's queue as TCP does, and sends less when its packets wait too long.
package struct SimulatedBulk: Sendable {
    /// When it begins and ends, in seconds.
    package var start: Double
    package var end: Double
    /// The one-way delay beside the queue, in milliseconds.
    package var delay: Int
    /// The wait in the queue above which packets of it are lost, in milliseconds.
    package var longestWait: Int
    /// Bytes that arrived.
    package private(set) var arrived = 0

    private var window = 10.0
    private var inFlight = 0
    private var returning = Fifo<Int>()
    private var lastCut = 0

    /// A download from `start` to `end`.
    package init(from start: Double, to end: Double, delay: Int = 50, longestWait: Int = 300) {
        self.start = start
        self.end = end
        self.delay = delay
        self.longestWait = longestWait
    }

    /// Its number among the flows.
    static let flow = -1

    mutating func send(at now: Int, put: (Packet) -> Void) {
        while let next = returning.first, next <= now {
            returning.removeFirst()
            inFlight -= 1
            window += 1 / window
        }
        guard Double(now) >= start * 1000, Double(now) < end * 1000 else { return }
        while inFlight < Int(window) {
            inFlight += 1
            put(Packet(flow: Self.flow, payload: 1448, left: 1500, end: now))
        }
    }

    mutating func left(_ packet: Packet, at now: Int) {
        arrived += packet.payload
        returning.append(now + 2 * delay)
        let wait = now - packet.end
        guard wait > longestWait, now - lastCut > 2 * delay + wait else { return }
        lastCut = now
        window = max(2, window * 0.7)
    }
}
