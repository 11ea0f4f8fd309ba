/// Which of a track's encodings would be best for each of its subscribers now.
///
/// The largest encoding is made for the subscriber whose path carries the most. Those who can nearly take it share it.
/// Those whose paths carry clearly less get the next smaller one, and so on. So a track whose subscribers are all on
/// equally thin paths has one encoding, which its publisher makes smaller.
package enum LayerPlan {
    /// An encoding.
    package struct Layer: Sendable {
        /// The highest rate at which it comes, in bits per second; `nil` if that is not known.
        package var rate: Double?
        /// Whether the publisher was told to send it and does not, while it sends another one.
        package var isMissing: Bool

        package init(rate: Double?, isMissing: Bool = false) {
            self.rate = rate
            self.isMissing = isMissing
        }
    }

    /// A subscriber.
    package struct Viewer: Sendable {
        /// What its path carries of the track, in bits per second; `nil` if no limit is known.
        package var share: Double?
        /// The largest encoding that it can use.
        package var largest: Int
        /// The encoding that it gets.
        package var current: Int
        /// Whether frames come too late for it, and have done so for a while.
        package var isLagging: Bool

        package init(share: Double?, largest: Int, current: Int, isLagging: Bool = false) {
            self.share = share
            self.largest = largest
            self.current = current
            self.isLagging = isLagging
        }
    }

    /// The least part of an encoding's rate that the path of a subscriber carries which stays in it.
    private static let stayingShare = 0.6
    /// As `stayingShare`, if the subscriber lags.
    private static let laggingShare = 0.85
    /// The least part that the path of a subscriber carries which goes up to it.
    private static let risingShare = 0.8

    /// The number of the best encoding for each of `viewers`.
    package static func best(for viewers: [Viewer], of layers: [Layer]) -> [Int] {
        plan(for: viewers, of: layers).best
    }

    /// The number of the best encoding for each of `viewers`, and the rate at which each encoding comes then.
    ///
    /// The rate is in bits per second, and infinite if it is not known.
    package static func plan(for viewers: [Viewer], of layers: [Layer]) -> (best: [Int], rates: [Double]) {
        var result = viewers.map { min($0.largest, layers.count - 1) }
        var rates = layers.map { $0.rate ?? .infinity }
        for number in stride(from: layers.count - 1, to: 0, by: -1) {
            var most = 0.0
            for index in viewers.indices where result[index] == number {
                most = max(most, viewers[index].share ?? .infinity)
            }
            let rate = layers[number].rate.map { min($0, most) } ?? most
            rates[number] = rate
            for index in viewers.indices where result[index] == number {
                if layers[number].isMissing || !carries(viewers[index], rate, number) { result[index] = number - 1 }
            }
        }
        return (result, rates)
    }

    /// Whether a subscriber's path carries encoding `number`, which comes at `rate`.
    private static func carries(_ viewer: Viewer, _ rate: Double, _ number: Int) -> Bool {
        guard let share = viewer.share else { return !viewer.isLagging }
        // Nothing can be said before the first packets have come.
        guard rate.isFinite else { return viewer.current >= number }
        if viewer.current < number { return share >= risingShare * rate }
        return share >= (viewer.isLagging ? laggingShare : stayingShare) * rate
    }
}
