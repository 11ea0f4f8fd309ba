/// The rate towards a receiver that acknowledges nothing: only how fast the socket takes the frames is known.
struct UnacknowledgedRate: Hashable, Sendable {
    /// By this part the rate grows each second.
    private static let increase = 0.1
    /// What a socket that is full leaves of the rate.
    private static let cutFactor = 0.7
    /// The shortest time between two cuts, in microseconds.
    private static let cutInterval: Int64 = 500_000

    /// Bits per second; it stays while less can be used.
    private(set) var rate: Double
    private let lowest: Double
    private var lastUpdate: Int64
    private var lastCut: Int64?

    /// Whether the socket has been full.
    var hasFoundLimit: Bool { lastCut != nil }

    init(from rate: Double, lowest: Double, at now: Int64) {
        self.rate = rate
        self.lowest = lowest
        lastUpdate = now
    }

    /// Notes a picture; `isFull` says that it finds frames that the socket has not taken, `highest` what can be used.
    mutating func update(isFull: Bool, highest: Double, at now: Int64) {
        let elapsed = Double(min(1_000_000, now - lastUpdate)) / 1e6
        lastUpdate = now
        if !isFull {
            if rate < highest { rate = min(highest, rate * (1 + Self.increase * elapsed)) }
        } else if now - (lastCut ?? .min / 2) >= Self.cutInterval {
            lastCut = now
            rate = max(lowest, rate * Self.cutFactor)
        }
    }
}
