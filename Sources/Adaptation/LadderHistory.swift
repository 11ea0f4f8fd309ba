/// What the ladder remembers of the bitrate; times in microseconds, rates in bits per second.
struct RateHistory: Hashable, Sendable {
    /// A time without frames counts at most this long as time in which the bitrate was as it is.
    private static let longestGap: Int64 = 500_000

    private let settings: DegradationLadder.Settings
    /// For each rung, when the bitrate was last too low to step up to it.
    private var lastBelow: [Int64] = []
    /// For each rung, when the bitrate was last too low to step up to it early.
    private var lastBelowTwice: [Int64] = []
    /// For each rung, when its pictures would last not have been fine.
    private var lastNotFine: [Int64] = []
    /// When the bitrate last was high enough for the present rung.
    private var lastEnough: Int64 = 0
    private var highest: SlidingExtremum

    init(_ settings: DegradationLadder.Settings) {
        self.settings = settings
        highest = .maximum(over: settings.cutWindow)
    }

    /// Forgets everything: there are `count` rungs from now on.
    mutating func begin(_ count: Int, _ rate: Double, at time: Int64) {
        lastBelow = Array(repeating: time, count: count)
        lastBelowTwice = lastBelow
        lastNotFine = lastBelow
        rungChanged(rate, at: time)
    }

    /// Notes that the present rung is another from now on.
    mutating func rungChanged(_ rate: Double, at time: Int64) {
        lastEnough = time
        highest = .maximum(over: settings.cutWindow)
        highest.add(rate, at: time)
    }

    /// Notes that rates are given as `factor` times what they were before, and are at most `highestRate` from now on.
    ///
    /// What is given from now on decides about each rung; the times until now stay.
    mutating func scaleRates(by factor: Double, upTo highestRate: Double) {
        highest.changeValues { min($0 * factor, highestRate) }
    }

    /// Takes in the bitrate that was given `elapsed` after the last one.
    ///
    /// - Returns: The highest bitrate of the last `cutWindow`, or of the one before a gap.
    mutating func observe(
        _ rate: Double,
        _ rungs: LadderRungs,
        _ current: Int,
        elapsed: Int64,
        at time: Int64
    ) -> Double {
        let unseen = max(0, elapsed - Self.longestGap)
        for index in 0..<rungs.count {
            let needed = rungs[index].needed * settings.marginUp
            lastBelow[index] = rate < needed ? time : lastBelow[index] + unseen
            lastBelowTwice[index] = rate < 2 * rungs[index].needed ? time : lastBelowTwice[index] + unseen
        }
        let isEnough = rate >= rungs[current].needed * settings.marginDown
        lastEnough = isEnough ? time : lastEnough + unseen
        let before = highest.value ?? rate
        return max(before, highest.add(rate, at: time))
    }

    /// Takes in what quantizer the pictures of each rung would have.
    mutating func observe(
        _ quantizer: QuantizerAverage,
        _ rate: Double,
        _ rungs: LadderRungs,
        elapsed: Int64,
        at time: Int64
    ) {
        let unseen = max(0, elapsed - Self.longestGap)
        for index in 0..<rungs.count {
            let isFine =
                rate >= rungs[index].needed * settings.marginFine && quantizer.staysFine(rate, rungs[index].weight)
            lastNotFine[index] = isFine ? lastNotFine[index] + unseen : time
        }
    }

    /// Since when a step up to a rung has been justified, by each of the ways.
    struct Evidence: Hashable, Sendable {
        var enoughSince: Int64 = 0
        /// See `justifies`: these count twice.
        var strongSince: Int64 = 0

        /// How long the step has been justified at `time`.
        func duration(at time: Int64) -> Int64 { max(time - enoughSince, 2 * (time - strongSince)) }
    }

    /// Since when a step up to the rung `index` has been justified.
    func evidence(for index: Int) -> Evidence {
        Evidence(enoughSince: lastBelow[index], strongSince: min(lastBelowTwice[index], lastNotFine[index]))
    }

    /// How long the bitrate has been too low for the present rung.
    func timeTooLow(at time: Int64) -> Int64 { time - lastEnough }

    /// Whether the bitrate has been high enough to step up to the rung `index` for `needed`, or twice as high as the
    /// rung needs for half of that time, or whether its pictures would have been fine for half of that time.
    func justifies(_ index: Int, for needed: Int64, at time: Int64) -> Bool {
        time - lastBelow[index] >= needed
            || time - lastBelowTwice[index] >= needed / 2
            || time - lastNotFine[index] >= needed / 2
    }
}

/// What the ladder knows of the quantizer.
struct QuantizerAverage: Hashable, Sendable {
    private let timeConstant: Double
    private let fine: Double
    private let surelyFine: Double
    private let coarse: Double
    private let expected: Double
    /// The average step size at the present rung; `nil` if unknown.
    private var average: Double?
    /// The average of step size × bitrate / the rung's weight, which a change of rate or rung does not change much: the
    /// bits of a picture are about in inverse proportion to the step size.
    private var complexity: Double?

    init(_ settings: DegradationLadder.Settings) {
        timeConstant = settings.quantizerTime
        fine = Self.stepSize(settings.fineQuantizer)
        surelyFine = settings.fineShare * fine
        coarse = Self.stepSize(settings.coarseQuantizer)
        expected = Self.stepSize(settings.expectedQuantizer)
    }

    /// Whether the pictures are fine as they are.
    var isFine: Bool { average.map { $0 <= fine } ?? false }

    /// Whether the pictures of the present rung, of weight `weight`, are too coarse, and will be at `rate`.
    ///
    /// For seconds after the bitrate rose, the average alone still reflects the lower bitrate of before.
    func isCoarse(_ rate: Double, _ weight: Double) -> Bool {
        guard let average, let expected = prediction(rate, weight) else { return false }
        return min(average, expected) > coarse
    }

    /// Takes in the quantizer that was told `elapsed` microseconds after the last one; `rate` is the bitrate of such
    /// frames.
    mutating func observe(_ quantizer: UInt8?, _ rate: Double, _ weight: Double, elapsed: Int64) {
        guard let quantizer else { return }
        let step = Self.stepSize(quantizer)
        let part = Double(elapsed) / (Double(elapsed) + timeConstant)
        average = average.map { $0 + part * (step - $0) } ?? step
        let sample = step * rate / weight
        complexity = complexity.map { $0 + part * (sample - $0) } ?? sample
    }

    /// Notes that rates are given as `factor` times what they were before.
    mutating func scaleRates(by factor: Double) {
        complexity = complexity.map { $0 * factor }
    }

    /// Notes that a rung of weight `weight` is encoded from now on.
    mutating func rungChanged(_ rate: Double, _ weight: Double) {
        average = prediction(rate, weight)
    }

    /// Whether the pictures of a rung of weight `weight` will be about fine.
    ///
    /// Twice the fine step size counts, because an encoder that is at its finest already does not use all of its rate.
    func willBeFine(_ rate: Double, _ weight: Double) -> Bool {
        prediction(rate, weight).map { $0 <= 2 * fine } ?? false
    }

    /// Whether the pictures of a rung of weight `weight` will be fine, also if the bitrate falls a little.
    func staysFine(_ rate: Double, _ weight: Double) -> Bool {
        prediction(rate, weight).map { $0 <= surelyFine } ?? false
    }

    /// Whether the pictures of a rung of weight `weight` may be expected to stay below the coarse quantizer.
    func allows(_ rate: Double, _ weight: Double) -> Bool {
        prediction(rate, weight).map { $0 <= expected } ?? true
    }

    private func prediction(_ rate: Double, _ weight: Double) -> Double? {
        complexity.map { min($0 * weight / rate, Self.stepSize(127)) }
    }

    /// The step size of VP8's AC coefficients for a quantizer index: the table of RFC 6386, section 14.1, in its linear
    /// parts.
    static func stepSize(_ quantizer: UInt8) -> Double {
        let index = Int(min(quantizer, 127))
        let size =
            switch index {
            case ...54: index + 4
            case ...83: 58 + 2 * (index - 54)
            case ...102: 116 + 3 * (index - 83)
            case ...116: 173 + 4 * (index - 102)
            default: 229 + 5 * (index - 116)
            }
        return Double(size)
    }
}

/// Counts the size changes of the last minute.
struct ChangeBudget: Hashable, Sendable {
    /// The most changes in `period`.
    static let most = 6
    /// How many of these a step up leaves for steps down, unless it has been justified for long.
    static let usualReserve = 2
    /// Microseconds: a minute, and some more because a viewer gets the first frames of different sizes after different
    /// times.
    static let period: Int64 = 62_000_000

    /// The times of the last changes, oldest first.
    private var changes: [Int64] = []

    init() {
        changes.reserveCapacity(Self.most)
    }

    /// Whether the size may change now, so that `reserve` further changes are left.
    func allowsChange(leaving reserve: Int, at time: Int64) -> Bool {
        changes.count { time - $0 <= Self.period } < Self.most - reserve
    }

    /// Counts a change.
    mutating func changed(at time: Int64) {
        if changes.count == Self.most { changes.removeFirst() }
        changes.append(time)
    }
}
