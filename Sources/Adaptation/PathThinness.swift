/// Tells whether a path is thin: whether it has delivered little for some time.
struct PathThinness: Hashable, Sendable {
    private let limit: Double
    private let longestGap: Int64
    private var fastest: SlidingExtremum
    /// The receiver's time without the rest of long silences, in microseconds.
    private var time: Int64 = 0

    /// Whether the path is thin; `false` before anything is known.
    private(set) var isThin = false

    init(_ settings: PathEstimator.Settings) {
        limit = settings.thinRate
        longestGap = settings.longestGap
        fastest = .maximum(over: settings.thinWindow)
    }

    /// Notes the delivery rate in bits per second, `silence` microseconds after the acknowledgement before.
    mutating func note(_ rate: Double?, after silence: Int64) {
        guard limit > 0 else { return }
        time += min(silence, longestGap)
        guard let rate else { return }
        isThin = fastest.add(rate, at: time) < limit
    }
}
