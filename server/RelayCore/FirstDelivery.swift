/// What a path delivers while it is fully used from the beginning, as with the first frames of a late joiner.
///
/// On a thin path, TCP soon loses packets of the first ones that it sends together. What comes after a lost one waits for
/// its repetition, for seconds altogether, and shows neither a queue nor a rate. What arrives in longer times is what the
/// path carries all the same, unless it still grows: TCP begins with few packets on any path. All times are in
/// microseconds.
package struct FirstDelivery: Sendable {
    /// The times whose rates are compared.
    ///
    /// TCP's slow start doubles the rate in each round trip.
    private static let window: Int64 = 200_000
    /// A rate that is higher than the one before by this factor still grows.
    private static let growth = 1.3
    /// The time after the first acknowledgement in which a rate is looked for.
    private static let longest: Int64 = 10_000_000

    /// Whether a rate is looked for.
    package private(set) var isOpen = true
    private var began: Int64?
    /// Where the present window began; `nil` while the path is not fully used.
    private var start: (bytes: Int64, time: Int64)?
    /// Bits per second in the window before.
    private var earlier: Double?

    /// Creates the record of a path that was just opened.
    package init() {}

    /// Notes an acknowledgement.
    ///
    /// - Parameters:
    ///   - bytes: All bytes that have been acknowledged.
    ///   - isFull: Whether more waits than the socket takes, so that the path is fully used.
    ///   - now: When it came.
    /// - Returns: The rate that the path carries, in bits per second, if that has just become known.
    package mutating func acknowledged(_ bytes: Int64, isFull: Bool, at now: Int64) -> Double? {
        guard isOpen else { return nil }
        let began = began ?? now
        self.began = began
        isOpen = now - began <= Self.longest
        guard let start, isFull else {
            start = isFull ? (bytes, now) : nil
            earlier = nil
            return nil
        }
        guard now - start.time >= Self.window else { return nil }
        let rate = Double(bytes - start.bytes) * 8e6 / Double(now - start.time)
        self.start = (bytes, now)
        guard let before = earlier, rate <= before * Self.growth else {
            earlier = rate
            return nil
        }
        isOpen = false
        return (before + rate) / 2
    }
}
