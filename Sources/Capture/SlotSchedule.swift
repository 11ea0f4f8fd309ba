package import MediaCore

/// The times at which a source with its own clock must make frames: absolute instants, so that delays do not add up.
///
/// A pure value; the driver passes in the time.
package struct SlotSchedule: Sendable {
    /// Rates outside this range are changed to its nearest end: a slide show may have a picture an hour, and no camera
    /// or screen is faster than 240 pictures a second.
    private static let rates = FrameRate(numerator: 1, denominator: 3600)...FrameRate(240)
    /// A fraction with a larger term gets this denominator, so that nothing below overflows within a century.
    private static let largestTerm = 1_000_000

    /// The rate in force.
    package private(set) var rate: FrameRate
    /// When slot 0 of this rate is due.
    private var origin: MonotonicInstant
    /// The next slot, counted from `origin`.
    private var slot = 0

    /// A schedule whose first slot is due at `start`.
    package init(rate: FrameRate, start: MonotonicInstant) {
        self.rate = Self.sensible(rate)
        origin = start
    }

    /// When the next frame is due.
    package var nextDeadline: MonotonicInstant { deadline(of: slot) }

    /// Takes up the next slot at `now`, which must not be before `nextDeadline`.
    ///
    /// - Returns: How many slots before the one taken up have gone by unused, because `now` is behind by an interval
    ///   or more.
    package mutating func takeSlot(at now: MonotonicInstant) -> Int {
        let due = slot
        while deadline(of: slot + 1) <= now {
            // One division for a long gap, then at most a step or two for the rounding.
            let behind = now.duration(since: deadline(of: slot + 1))
            slot += 1 + max(0, Int(behind.wholeNanoseconds / rate.interval.wholeNanoseconds) - 1)
        }
        defer { slot += 1 }
        return slot - due
    }

    /// Goes on at another rate, from the slot taken up last; a slot that would have been due by `now` is due now.
    package mutating func change(to newRate: FrameRate, at now: MonotonicInstant) {
        let newRate = Self.sensible(newRate)
        guard newRate != rate else { return }
        origin = slot > 0 ? deadline(of: slot - 1) : origin
        slot = slot > 0 ? 1 : 0
        rate = newRate
        if slot > 0, nextDeadline < now { (origin, slot) = (now, 0) }
    }

    private func deadline(of slot: Int) -> MonotonicInstant {
        let (seconds, rest) = (slot * rate.denominator).quotientAndRemainder(dividingBy: rate.numerator)
        return origin + .seconds(seconds) + .nanoseconds(Int64(rest * 1_000_000_000 / rate.numerator))
    }

    private static func sensible(_ rate: FrameRate) -> FrameRate {
        // As floating-point numbers: comparing huge fractions multiplies their terms.
        if rate.framesPerSecond <= rates.lowerBound.framesPerSecond { return rates.lowerBound }
        if rate.framesPerSecond >= rates.upperBound.framesPerSecond { return rates.upperBound }
        guard max(rate.numerator, rate.denominator) > largestTerm else { return rate }
        let numerator = Int((rate.framesPerSecond * Double(largestTerm)).rounded())
        return FrameRate(numerator: numerator, denominator: largestTerm)
    }
}
