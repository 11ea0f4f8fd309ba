import MediaCore

/// The steps of a track from its full size and frame rate down to the least of both, in the order of a preference.
struct LadderRungs: Hashable, Sendable {
    /// A size and a frame rate.
    struct Rung: Hashable, Sendable {
        var dimensions: Dimensions
        var frameRate: FrameRate
        /// The bitrate from which this rung is better than the next lower one, in bits per second.
        var needed: Double
        /// How many bits this rung takes at a given quantizer, as a multiple of what others take: pixels × (frames per
        /// second)^¾.
        var weight: Double
        /// Pixels in a second: the measure of the CPU's work.
        var pixelRate: Double

        init(_ dimensions: Dimensions, _ frameRate: FrameRate) {
            self.dimensions = dimensions
            self.frameRate = frameRate
            let framesPerSecond = frameRate.framesPerSecond
            // Twice the frames are not twice the bits, because they differ less: of three temporal layers, libwebrtc
            // gives the lowest quarter of the frames 0.4 of the bits and the lowest half 0.6, which is about the power
            // ¾. Square roots are rounded alike on every machine, and a power is not.
            let temporal = (framesPerSecond * framesPerSecond.squareRoot()).squareRoot()
            let usual = (30 * 30.0.squareRoot()).squareRoot()
            needed = Double(SizeBitrates(for: dimensions).lowestToStart.bitsPerSecond) * temporal / usual
            weight = Double(dimensions.area) * temporal
            pixelRate = Double(dimensions.area) * framesPerSecond
        }
    }

    /// No step leads to pictures with fewer pixels (libwebrtc `min_pixels_per_frame`).
    static let smallestArea = 320 * 180
    /// No step leads to fewer frames a second (libwebrtc `kMinFrameRateFps`).
    static let lowestFrameRate = FrameRate(2)
    /// The rate of the tables of sizes.
    private static let usualFrameRate = FrameRate(30)
    /// A receiver's wish for smaller pictures is met down to sides of this length.
    private static let shortestSide = 16

    private let list: [Rung]

    /// The rungs of pictures of size `largest` at `frameRate`, no larger and faster than the bounds need; `nil` is no
    /// bound.
    ///
    /// The first size is the smallest one that covers the bound. A larger one would be scaled down again where it is
    /// shown, and a smaller one scaled up.
    init(
        largest: Dimensions,
        frameRate: FrameRate,
        preference: DegradationPreference,
        bounds: (dimensions: Dimensions?, frameRate: FrameRate?) = (nil, nil)
    ) {
        var sizes = Self.sizes(of: largest)
        if let bound = bounds.dimensions {
            sizes.removeFirst(sizes.lastIndex { $0.covers(bound) } ?? 0)
        }
        let rate = min(Self.simplified(frameRate), bounds.frameRate.map(Self.simplified) ?? Self.simplified(frameRate))
        list =
            switch preference {
            case .maintainFramerate: Self.steps(through: sizes).map { Rung($0, rate) }
            case .maintainResolution: Self.rates(from: rate).map { Rung(sizes[0], $0) }
            case .balanced: Self.balanced(Self.steps(through: sizes), rate)
            }
    }

    var count: Int { list.count }

    subscript(index: Int) -> Rung { list[index] }

    /// The index of the best rung that `isAllowed`, or else the last one.
    func best(where isAllowed: (Rung) -> Bool) -> Int {
        list.firstIndex(where: isAllowed) ?? list.count - 1
    }

    /// All sizes by which pictures of size `largest` can be scaled well, from `largest` down.
    ///
    /// The fractions are those of libwebrtc's video adapter: 3/4, 1/2, 3/8, 1/4 …, or 2/3, 1/2, 1/3, 1/4 … where three
    /// divides both sides. Both sides are even. To be so, they lose less than two pixels each; that is what is cropped.
    static func sizes(of largest: Dimensions) -> [Dimensions] {
        let width = min(max(2, largest.width), Dimensions.largestCodable.width)
        let height = min(max(2, largest.height), Dimensions.largestCodable.height)
        var (numerator, denominator) = (1, 1)
        if width % 9 == 0 && height % 9 == 0 {
            (numerator, denominator) = (36, 36)
        } else if width % 3 == 0 && height % 3 == 0 {
            (numerator, denominator) = (6, 6)
        }
        func scaled(_ side: Int) -> Int { side * numerator / denominator & ~1 }
        var sizes = [Dimensions(width: scaled(width), height: scaled(height))]
        while true {
            if numerator % 3 == 0 && denominator % 2 == 0 {
                (numerator, denominator) = (numerator / 3, denominator / 2)
            } else {
                (numerator, denominator) = (numerator * 3, denominator * 4)
            }
            let next = Dimensions(width: scaled(width), height: scaled(height))
            guard min(next.width, next.height) >= shortestSide else { return sizes }
            sizes.append(next)
        }
    }

    /// The sizes that are steps: each has at most 3/5 of the pixels of the one before (libwebrtc).
    private static func steps(through sizes: [Dimensions]) -> [Dimensions] {
        var steps = [sizes[0]]
        for size in sizes.dropFirst() where size.area >= smallestArea {
            if size.area * 5 <= steps[steps.count - 1].area * 3 { steps.append(size) }
        }
        return steps
    }

    /// The frame rates from `first` down, each 2/3 of the one before (libwebrtc).
    ///
    /// 30 is among them, so that a faster source comes down to what slower ones have.
    private static func rates(from first: FrameRate) -> [FrameRate] {
        var rates = [first]
        while true {
            let last = rates[rates.count - 1]
            var next = FrameRate(numerator: last.numerator * 2, denominator: last.denominator * 3)
            if last > usualFrameRate { next = max(next, usualFrameRate) }
            guard next >= lowestFrameRate else { return rates }
            rates.append(next)
        }
    }

    /// First the frame rate that libwebrtc's table (`BalancedDegradationSettings`) has for a size, then the next size.
    ///
    /// The table is for 30 frames a second; faster sources first come down to that, step by step.
    private static func balanced(_ sizes: [Dimensions], _ frameRate: FrameRate) -> [Rung] {
        var rungs = rates(from: frameRate).prefix { $0 > usualFrameRate }.map { Rung(sizes[0], $0) }
        var rate = min(frameRate, usualFrameRate)
        for size in sizes {
            rungs.append(Rung(size, rate))
            guard let limit = balancedFrameRate(of: size), limit < rate else { continue }
            rate = limit
            rungs.append(Rung(size, rate))
        }
        return rungs
    }

    private static func balancedFrameRate(of size: Dimensions) -> FrameRate? {
        switch size.area {
        case ...(320 * 240): FrameRate(7)
        case ...(480 * 360): FrameRate(10)
        case ...(640 * 480): FrameRate(15)
        default: nil
        }
    }

    /// The rate as a fraction whose terms are small enough to be multiplied; at least 0.001 and at most 1,000 frames a
    /// second.
    private static func simplified(_ rate: FrameRate) -> FrameRate {
        let framesPerSecond = rate.framesPerSecond
        let isSmall = rate.numerator <= 1_000_000 && rate.denominator <= 1_000_000
        guard !isSmall || !(0.001...1000).contains(framesPerSecond) else { return rate }
        return FrameRate(numerator: Int(min(1e6, max(1, (framesPerSecond * 1000).rounded()))), denominator: 1000)
    }
}
