/// Percentiles in milliseconds.
struct Percentiles: Encodable, Sendable {
    var p50: Double
    var p95: Double
    var p99: Double?
    var max: Double?
}

extension Percentiles {
    /// Computes the percentiles of samples in milliseconds, by nearest rank; `nil` without samples.
    init?(of samples: [Double]) {
        guard !samples.isEmpty else { return nil }
        let sorted = samples.sorted()
        func rank(_ percent: Double) -> Double {
            sorted[Swift.max(0, Int((percent / 100 * Double(sorted.count)).rounded(.up)) - 1)]
        }
        self.init(p50: rank(50), p95: rank(95), p99: rank(99), max: sorted[sorted.count - 1])
    }
}
