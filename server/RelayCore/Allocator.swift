/// Divides the rate of a subscriber's path among its tracks.
package enum Allocator {
    /// A track's claim.
    package struct Claim: Sendable {
        /// Its part compared with the others': above 0.
        package var weight: Double
        /// What it sends at present, in bits per second.
        package var rate: Double

        package init(weight: Double, rate: Double) {
            self.weight = weight
            self.rate = rate
        }
    }

    /// What is set aside for a track beyond what it sends at present, so that it can grow.
    private static let headroom = 1.3

    /// The part of `rate` that each claim gets, in bits per second.
    ///
    /// Each gets its part by weight, also one that sends little or nothing at present: it may begin at any time. What
    /// it leaves unused goes to the others, so that none is held back, and none starves. The sum may therefore exceed
    /// `rate`; the next division takes back what is used after all. A single track gets all.
    package static func shares(of rate: Double, among claims: [Claim]) -> [Double] {
        guard claims.count > 1 else { return claims.map { _ in rate } }
        var shares = claims.map { _ in 0.0 }
        var open = Array(claims.indices)
        var left = rate
        while !open.isEmpty {
            let unit = left / open.reduce(0) { $0 + claims[$1].weight }
            let modest = open.filter { claims[$0].rate * headroom < unit * claims[$0].weight }
            guard !modest.isEmpty, modest.count < open.count else {
                for index in open { shares[index] = unit * claims[index].weight }
                return shares
            }
            for index in modest {
                shares[index] = unit * claims[index].weight
                left -= claims[index].rate * headroom
            }
            open.removeAll { modest.contains($0) }
        }
        return shares
    }
}
