/// The rate of what was sent in the last second or so.
struct SentRate: Sendable {
    private static let window: Int64 = 500_000

    private var start: Int64 = 0
    private var bytes = 0
    private var earlier = 0.0

    /// Adds `count` bytes at `now`, in microseconds.
    mutating func add(_ count: Int, at now: Int64) {
        if now - start >= Self.window {
            earlier = now - start >= 2 * Self.window ? 0 : Double(bytes) * 8e6 / Double(now - start)
            start = now
            bytes = 0
        }
        bytes += count
    }

    /// Bits per second over the last whole window, or over the present one if that is more.
    func bitsPerSecond(at now: Int64) -> Double {
        let present = Double(bytes) * 8e6 / Double(max(now - start, Self.window))
        return now - start >= 2 * Self.window ? present : max(earlier, present)
    }
}
