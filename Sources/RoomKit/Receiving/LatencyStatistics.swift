import MediaCore

/// The distribution of ages or delays, in bounded memory.
///
/// Percentiles come from a histogram. Its steps are exact below 128 µs, and at most 1/64 of the value above that.
/// Count, mean and extremes are exact. This is a pure value of fixed size, without memory of its own: recording
/// allocates nothing, also after the value has been copied for a reader.
struct LatencyStatistics: Sendable {
    /// The number of histogram steps for each doubling of the value.
    private static let stepsPerOctave = 64
    private static let octaveShift = 6
    /// The highest value that the histogram distinguishes: 2⁴⁰ µs, almost 13 days.
    private static let highest: Int64 = 1 << 40 - 1

    /// One count for each step up to that of `highest`.
    private var histogram = InlineArray<2240, UInt32>(repeating: 0)
    private var sum = 0.0
    /// The number of samples so far.
    private(set) var count = 0
    private var lowestMicroseconds = Int64.max
    private var highestMicroseconds = Int64.min

    /// Creates statistics without samples.
    init() {
        precondition(histogram.count == Self.step(of: Self.highest) + 1)
    }

    /// Adds a sample, in whole microseconds.
    ///
    /// The error of a clock offset can make a sample negative. Percentiles count it as 0; the other figures use it as
    /// it is.
    mutating func record(_ sample: Duration) {
        let microseconds = sample.wholeMicroseconds
        // The count of a step would wrap after two years at 60 fps.
        histogram[Self.step(of: min(max(microseconds, 0), Self.highest))] &+= 1
        count += 1
        sum += Double(microseconds)
        lowestMicroseconds = min(lowestMicroseconds, microseconds)
        highestMicroseconds = max(highestMicroseconds, microseconds)
    }

    /// The smallest sample; `nil` without any.
    var minimum: Duration? { count > 0 ? .microseconds(lowestMicroseconds) : nil }
    /// The largest sample; `nil` without any.
    var maximum: Duration? { count > 0 ? .microseconds(highestMicroseconds) : nil }
    /// The mean of all samples; `nil` without any.
    var mean: Duration? { count > 0 ? .microseconds(Int64((sum / Double(count)).rounded())) : nil }

    /// The value that `percent` percent of the samples do not exceed (nearest rank); `nil` without samples.
    func percentile(_ percent: Double) -> Duration? {
        guard count > 0 else { return nil }
        let rank = UInt64(max(1, (min(max(percent, 0), 100) / 100 * Double(count)).rounded(.up)))
        var below: UInt64 = 0
        for step in histogram.indices {
            below += UInt64(histogram[step])
            if below >= rank { return .microseconds(min(Self.upperEnd(of: step), max(highestMicroseconds, 0))) }
        }
        return maximum
    }

    /// The histogram's step for a value that is not negative.
    private static func step(of microseconds: Int64) -> Int {
        let magnitude = Int64.bitWidth - microseconds.leadingZeroBitCount
        let shift = max(0, magnitude - octaveShift - 1)
        return shift * stepsPerOctave + Int(microseconds >> Int64(shift))
    }

    /// The highest value that falls into `step`.
    private static func upperEnd(of step: Int) -> Int64 {
        let shift = max(0, step / stepsPerOctave - 1)
        let mantissa = step - shift * stepsPerOctave
        return Int64(mantissa + 1) << Int64(shift) - 1
    }
}
