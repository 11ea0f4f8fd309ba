import Glibc
import MediaCore

/// Reads the formats that a camera offers, within a bound on how much its driver may list.
struct FormatEnumeration {
    /// The sizes to try within a driver's ranges: those that cameras and screens commonly have.
    static let standardSizes: [Dimensions] = [
        (160, 120), (176, 144), (320, 180), (320, 240), (352, 288), (424, 240), (640, 360), (640, 480), (800, 600),
        (848, 480), (960, 540), (1024, 768), (1280, 720), (1280, 960), (1600, 1200), (1920, 1080), (2560, 1440),
        (3840, 2160),
    ].map { Dimensions(width: $0.0, height: $0.1) }

    /// The rates to try within a driver's range of intervals.
    static let standardRates = [5, 10, 15, 20, 24, 25, 30, 50, 60].map { FrameRate($0) }

    /// The rate assumed for a camera that states none: the commonest rate of USB cameras.
    static let assumedRate = FrameRate(30)

    /// The most entries of one list that are read; vivid has 83 formats, and no known driver has more than 40 sizes.
    static let longestList = 256

    /// The most questions to the driver in all; vivid, with 83 formats, takes about 5,000.
    static let mostQuestions = 16384

    private let device: V4L2Device
    private let wanted: VideoFormatRequest
    private var questions = 0

    /// Reads the formats that `device` offers.
    ///
    /// - Parameters:
    ///   - device: The camera, whose settings stay as they are.
    ///   - wanted: A size and a rate that are tried besides the standard ones.
    ///   - accepts: Whether pictures of a format can be converted directly.
    /// - Returns: The driver's pixel formats, in its order.
    /// - Throws: The driver's errors, except "no such entry" and "no such call".
    static func read(
        _ device: V4L2Device,
        wanted: VideoFormatRequest = VideoFormatRequest(),
        accepts: (PixelFormat) -> Bool = PixelFormat.readDirectly.contains
    ) throws(SystemCallFailure) -> [CaptureFormat] {
        var enumeration = FormatEnumeration(device: device, wanted: wanted)
        return try enumeration.formats(accepts: accepts)
    }

    /// Whether `device` offers a pixel format that we can read; `false` if its driver does not say.
    static func isAnyReadable(of device: V4L2Device) -> Bool {
        var enumeration = FormatEnumeration(device: device, wanted: VideoFormatRequest())
        let listed = try? enumeration.list { index throws(SystemCallFailure) in try device.pixelFormat(at: index) }
        guard let formats = listed?.map(\.pixelFormat), !formats.isEmpty else { return false }
        return formats.contains { PixelFormat.readDirectly.contains($0) }
            || !LibV4LConversion.convertible(formats, descriptor: device.node.descriptor).isEmpty
    }

    private init(device: V4L2Device, wanted: VideoFormatRequest) {
        self.device = device
        self.wanted = wanted
    }

    private mutating func formats(
        accepts: (PixelFormat) -> Bool
    ) throws(SystemCallFailure) -> [CaptureFormat] {
        let device = device
        let listed = try list { index throws(SystemCallFailure) in try device.pixelFormat(at: index) }
        let others = listed.map(\.pixelFormat).filter { !accepts($0) }
        let convertible =
            others.isEmpty || !accepts(.i420)
            ? [] : LibV4LConversion.convertible(others, descriptor: device.node.descriptor)
        var formats: [CaptureFormat] = []
        for entry in listed where !formats.contains(where: { $0.pixelFormat == entry.pixelFormat }) {
            let sizes = try sizes(of: entry.pixelFormat)
            formats.append(
                CaptureFormat(
                    pixelFormat: entry.pixelFormat,
                    name: entry.name,
                    isCompressed: entry.isCompressed,
                    decoding: accepts(entry.pixelFormat)
                        ? .direct : convertible.contains(entry.pixelFormat) ? .libv4l : .unsupported,
                    sizes: sizes,
                    formats: try oneByOne(sizes, of: entry.pixelFormat)
                )
            )
        }
        return formats
    }

    /// Reads one of the driver's lists to its end, which `EINVAL` marks; a list that the driver lacks is empty.
    private mutating func list<Entry>(
        _ entry: (Int) throws(SystemCallFailure) -> Entry?
    ) throws(SystemCallFailure) -> [Entry] {
        var entries: [Entry] = []
        for index in 0..<Self.longestList where questions < Self.mostQuestions {
            questions += 1
            do {
                if let entry = try entry(index) { entries.append(entry) }
            } catch {
                guard isEndOrAbsence(error) else { throw error }
                break
            }
        }
        return entries
    }

    private mutating func sizes(of format: PixelFormat) throws(SystemCallFailure) -> [CaptureFrameSize] {
        let device = device
        let listed = try list { index throws(SystemCallFailure) in try device.frameSize(at: index, of: format) }
        var sizes: [CaptureFrameSize] = []
        for size in listed where !sizes.contains(where: { $0.isSameSize(as: size) }) {
            if case .discrete(let dimensions, _) = size {
                sizes.append(.discrete(dimensions, intervals: try intervals(of: format, dimensions)))
            } else {
                sizes.append(size)
            }
        }
        return sizes
    }

    private mutating func intervals(
        of format: PixelFormat,
        _ size: Dimensions
    ) throws(SystemCallFailure) -> [CaptureFrameInterval] {
        let device = device
        return try list { index throws(SystemCallFailure) in
            try device.frameInterval(at: index, of: format, size)
        }
    }

    private mutating func oneByOne(
        _ sizes: [CaptureFrameSize],
        of format: PixelFormat
    ) throws(SystemCallFailure) -> [VideoFormat] {
        var formats: [VideoFormat] = []
        for size in sizes {
            switch size {
            case .discrete(let dimensions, let intervals):
                formats += videoFormats(format, dimensions, intervals)
            case .range(let smallest, let largest, let step):
                for dimensions in sizesWithin(smallest, largest, step) {
                    formats += videoFormats(format, dimensions, try intervals(of: format, dimensions))
                }
            }
        }
        if sizes.isEmpty {
            for dimensions in try unlistedSizes(of: format) {
                formats += videoFormats(format, dimensions, try intervals(of: format, dimensions))
            }
        }
        return formats.sortedByDimensions()
    }

    /// Both ends of a range and, for each usual size and the wanted one, the smallest size in it that covers that size.
    private func sizesWithin(_ smallest: Dimensions, _ largest: Dimensions, _ step: Dimensions) -> [Dimensions] {
        let up = { (side: Int, first: Int, step: Int) in
            first + (max(0, side - first) + step - 1) / step * step
        }
        let fitting = (Self.standardSizes + [wanted.dimensions].compactMap(\.self)).filter { size in
            isPlausible(size) && size.width >= smallest.width && size.height >= smallest.height
        }.map { size in
            Dimensions(
                width: up(size.width, smallest.width, step.width),
                height: up(size.height, smallest.height, step.height)
            )
        }.filter { $0.width <= largest.width && $0.height <= largest.height }
        return Array(Set(fitting + [smallest, largest]))
    }

    /// The sizes of a driver that lists none: those that it accepts unchanged, or else its current one.
    private mutating func unlistedSizes(of format: PixelFormat) throws(SystemCallFailure) -> [Dimensions] {
        var taken: [Dimensions] = []
        for size in Self.standardSizes + [wanted.dimensions].compactMap(\.self) where questions < Self.mostQuestions {
            questions += 1
            guard isPlausible(size) else { continue }
            do {
                let answer = try device.tryFormat(format, size)
                if answer?.pixelFormat == format, answer?.dimensions == size { taken.append(size) }
            } catch {
                guard isEndOrAbsence(error) else { throw error }
            }
        }
        guard taken.isEmpty else { return taken }
        do {
            let current = try device.currentFormat()
            return current?.pixelFormat == format ? [current?.dimensions].compactMap(\.self) : []
        } catch {
            guard isEndOrAbsence(error) else { throw error }
            return []
        }
    }

    private mutating func videoFormats(
        _ format: PixelFormat,
        _ size: Dimensions,
        _ intervals: [CaptureFrameInterval]
    ) -> [VideoFormat] {
        var rates = intervals.flatMap { interval -> [FrameRate] in
            switch interval {
            case .discrete(let rate): [rate]
            case .range(let slowest, let fastest, let step):
                [slowest, fastest]
                    + (Self.standardRates + [wanted.frameRate].compactMap(\.self))
                    .map { reaching($0, fastest, step) }.filter { (slowest...fastest).contains($0) }
            }
        }
        // A driver that lists no rates may still accept the wanted one; it states the rate that it makes of it.
        if rates.isEmpty {
            rates = [(try? device.currentFrameRate()) ?? Self.assumedRate] + [wanted.frameRate].compactMap(\.self)
        }
        return rates.map { VideoFormat(dimensions: size, frameRate: $0, pixelFormat: format) }
    }

    /// The wanted rate, or the next higher one whose interval is a whole number of steps from the fastest's.
    private func reaching(_ wanted: FrameRate, _ fastest: FrameRate, _ step: FrameRate?) -> FrameRate {
        guard let step else { return wanted }
        let steps = (1 / wanted.framesPerSecond - 1 / fastest.framesPerSecond) * step.framesPerSecond
        // Beyond this, the steps are so small that the range is as good as continuous.
        guard steps >= 0, steps < 100_000 else { return wanted }
        // A number slightly below a whole one counts as whole, because the division is not exact.
        let whole = Int((steps + 1e-6).rounded(.down))
        // This is fastest.denominator / fastest.numerator + whole * step.denominator / step.numerator, upside down.
        let (numerator, isTooLarge) = fastest.numerator.multipliedReportingOverflow(by: step.numerator)
        let (base, isBaseTooLarge) = fastest.denominator.multipliedReportingOverflow(by: step.numerator)
        let (unit, isUnitTooLarge) = step.denominator.multipliedReportingOverflow(by: fastest.numerator)
        let (added, isAddedTooLarge) = unit.multipliedReportingOverflow(by: whole)
        let (denominator, isSumTooLarge) = base.addingReportingOverflow(added)
        guard !isTooLarge, !isBaseTooLarge, !isUnitTooLarge, !isAddedTooLarge, !isSumTooLarge else { return wanted }
        let divisor = greatestCommonDivisor(numerator, denominator)
        return FrameRate(numerator: numerator / divisor, denominator: denominator / divisor)
    }

    private func isPlausible(_ size: Dimensions) -> Bool {
        (1...Dimensions.largestCodable.width).contains(size.width)
            && (1...Dimensions.largestCodable.height).contains(size.height)
    }
}

private func greatestCommonDivisor(_ first: Int, _ second: Int) -> Int {
    var (larger, smaller) = (first, second)
    while smaller != 0 { (larger, smaller) = (smaller, larger % smaller) }
    return larger
}

/// Whether the failure marks the end of a list, or means that the driver does not have the call at all.
private func isEndOrAbsence(_ failure: SystemCallFailure) -> Bool {
    [EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP, ENODATA].contains(failure.status)
}

extension CaptureFrameSize {
    fileprivate func isSameSize(as other: CaptureFrameSize) -> Bool {
        if case .discrete(let own, _) = self, case .discrete(let theirs, _) = other { return own == theirs }
        return self == other
    }
}
