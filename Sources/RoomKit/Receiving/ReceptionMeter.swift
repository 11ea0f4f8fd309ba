import MediaCore
import RoomProtocol

/// Counts what is received of a track, and measures the last seconds.
///
/// It is a pure value, and all but the 30 intervals of the freeze detector lies in the value itself. So noting a frame
/// allocates nothing (after a reading, once), and a reader holds the track's lock only to copy the value.
struct ReceptionMeter: Sendable {
    /// A frame that has been decoded.
    struct Decoded {
        var info: EncodedFrameInfo
        /// The size of the last picture up to this frame, as it is shown; `nil` if there has been none.
        var dimensions: Dimensions?
        var isCatchUp: Bool
        var isShown: Bool
        /// When decoding ended.
        var at: MonotonicInstant
        var decodeTime: Duration
        var clock: ClockEstimate
        /// When the track was requested.
        var subscribed: MonotonicInstant
    }

    private var statistics = RemoteVideoTrackStatistics()
    private var ages = LatencyStatistics()
    private var arrivals = ArrivalRate()
    private var recent = RecentFrames()
    private var freezes: FreezeDetector
    private var lastShown: MonotonicInstant?
    /// The capture time of the picture that is shown; `nil` if none is.
    private var shownTimestamp: MonotonicInstant?
    private let expectedGap: Duration
    /// The time between the frames that the viewer wishes for; zero for all.
    var wishedGap = Duration.zero
    /// When the picture was shown that has stood still for too long since; `nil` if none has.
    private(set) var frozenSince: MonotonicInstant?

    /// The time between the frames of a screen that stands still, which is no freeze; for publishers that do not mark
    /// repeats.
    static let screenGap = Duration.seconds(1)

    /// Creates the meter of a track before its first frame.
    ///
    /// - Parameters:
    ///   - leastAverageGap: A shorter average of the gaps between frames counts as this one.
    ///   - expectedGap: What the average counts as while there are few gaps.
    init(leastAverageGap: Duration = .zero, expectedGap: Duration = .zero) {
        freezes = FreezeDetector(leastAverageGap: leastAverageGap)
        self.expectedGap = expectedGap
    }

    /// Notes a whole frame of `size` that arrived at `now`.
    mutating func received(_ size: DataSize, isKeyframe: Bool, at now: MonotonicInstant) {
        statistics.framesReceived += 1
        statistics.bytes += size.bytes
        if isKeyframe { statistics.keyframes += 1 }
        arrivals.add(size, at: now)
    }

    /// Notes a frame whose header alone can be read.
    mutating func receivedUnreadable() {
        statistics.framesReceived += 1
    }

    /// Notes frames that were dropped.
    mutating func dropped(_ counts: FrameDropCounts) {
        statistics.framesDroppedByReason = statistics.framesDroppedByReason + counts
    }

    /// Notes a frame that was decoded.
    mutating func decoded(_ frame: Decoded) {
        statistics.framesDecoded += 1
        if frame.info.isRepeat { statistics.framesRepeated += 1 }
        statistics.totalDecodeTime += frame.decodeTime
        statistics.simulcastLayer = Int(frame.info.simulcastLayer)
        statistics.clock = FrameAgeClock(frame.clock.basis)
        statistics.ageErrorBound = frame.clock.errorBound
        if let size = frame.dimensions {
            if let former = statistics.dimensions, former != size { statistics.sizeChanges += 1 }
            statistics.dimensions = size
        }
        let detected = FreezeDetector.Frame(frame.info)
        guard !frame.isCatchUp else {
            // Such a frame is old on purpose, and only its picture counts. It is shown if the picture stood still.
            guard frame.isShown else { return }
            countShown(frame)
            freezes.shownStill(detected, at: frame.at)
            frozenSince = nil
            return
        }
        let age = frame.at.duration(since: frame.info.timestamp)
        recent.add(age: frame.isShown ? age : nil, decodeTime: frame.decodeTime, at: frame.at)
        guard frame.isShown else { return }
        // A keyframe for somebody who came meanwhile, from a source that has stalled. Other frames may be as close: those of
        // an encoder that writes what it has kept back.
        let distance = shownTimestamp.map { abs(frame.info.timestamp.microseconds - $0.microseconds) }
        let isSame = frame.info.isKeyframe && distance.map { $0 < 1000 } ?? false
        countShown(frame)
        guard !isSame || frame.info.isRepeat else { return freezes.shownAgain(detected) }
        ages.record(age)
        freezes.shown(detected, at: frame.at, wishedGap: wishedGap)
        frozenSince = nil
    }

    /// When the picture counts as frozen, unless another one is shown before; `nil` if it does, and if none is expected.
    var standstill: MonotonicInstant? {
        frozenSince == nil ? freezes.standstill(expectedGap: expectedGap, wishedGap: wishedGap) : nil
    }

    /// Notes that it is `now`: the picture may stand still for so long that it counts as frozen.
    mutating func noteStandstill(at now: MonotonicInstant) {
        if let standstill, now >= standstill { frozenSince = freezes.lastFrame }
    }

    private mutating func countShown(_ frame: Decoded) {
        guard frame.isShown else { return }
        statistics.framesRendered += 1
        statistics.timeToFirstFrame = statistics.timeToFirstFrame ?? frame.at.duration(since: frame.subscribed)
        lastShown = frame.at
        shownTimestamp = frame.info.timestamp
    }

    /// The size of the last picture that was decoded, as it is shown.
    var dimensions: Dimensions? { statistics.dimensions }

    /// Notes that no frames are expected until the next one, so that the time up to it is no freeze.
    mutating func interrupt() {
        freezes.paused()
        (lastShown, shownTimestamp) = (nil, nil)
        frozenSince = nil
    }

    /// The statistics, with rates and recent ages as of `now`.
    func statistics(at now: MonotonicInstant) -> RemoteVideoTrackStatistics {
        var statistics = statistics
        if let p50 = ages.percentile(50), let p95 = ages.percentile(95), let max = ages.maximum {
            statistics.frameAge = FrameAgeSummary(p50: p50, p95: p95, maximum: max)
        }
        statistics.bitrate = arrivals.rate(at: now)
        recent.summarize(at: now, into: &statistics)
        statistics.freezeCount = freezes.count
        statistics.totalFreezesDuration = freezes.totalDuration
        statistics.timeSinceLastFrame = lastShown.map { now.duration(since: $0) }
        return statistics
    }
}

/// The rate at which bytes arrived in the last second, in steps of 100 ms.
private struct ArrivalRate: Sendable {
    private struct Step: Sendable {
        /// The number of the step, counted from the clock's origin.
        var number = Int64.min
        var bytes = 0
    }

    private static let stepLength: Int64 = 100_000
    private static let stepsPerSecond: Int64 = 10

    /// The present step and those of the second before, each at its number modulo the count.
    private var steps = InlineArray<16, Step>(repeating: Step())

    private static func number(at now: MonotonicInstant) -> Int64 { max(0, now.microseconds) / stepLength }

    mutating func add(_ size: DataSize, at now: MonotonicInstant) {
        let number = Self.number(at: now)
        let index = Int(number % Int64(steps.count))
        if steps[index].number != number { steps[index] = Step(number: number) }
        steps[index].bytes += size.bytes
    }

    /// The rate of the last second up to the beginning of the present step.
    func rate(at now: MonotonicInstant) -> Bitrate {
        let present = Self.number(at: now)
        var bytes = 0
        for index in steps.indices where (present - Self.stepsPerSecond..<present).contains(steps[index].number) {
            bytes += steps[index].bytes
        }
        return Bitrate(bitsPerSecond: bytes * 8)
    }
}

/// The frames that were decoded in the last seconds.
private struct RecentFrames: Sendable {
    private struct Frame: Sendable {
        /// When it was decoded, in microseconds of the machine's clock.
        var at = Int64.min
        /// In microseconds; `notShown` if it was not shown.
        var age: Int32 = 0
        /// In microseconds.
        var decodeTime: Int32 = 0

        static let notShown = Int32.min
    }

    /// The time over which ages are summarized; several seconds, so that a single late frame does not set the p95.
    private static let span: Int64 = 5_000_000
    private static let second: Int64 = 1_000_000

    /// Five seconds at 100 fps, in a circle.
    private var frames = InlineArray<512, Frame>(repeating: Frame())
    private var next = 0

    /// Adds a frame; `age` is `nil` if it was not shown.
    mutating func add(age: Duration?, decodeTime: Duration, at now: MonotonicInstant) {
        frames[next] = Frame(
            at: now.microseconds,
            age: age.map { max(Int32(clamping: $0.wholeMicroseconds), -.max) } ?? Frame.notShown,
            decodeTime: Int32(clamping: decodeTime.wholeMicroseconds)
        )
        next = (next + 1) % frames.count
    }

    /// Fills in the values of the last seconds.
    func summarize(at now: MonotonicInstant, into statistics: inout RemoteVideoTrackStatistics) {
        let present = now.microseconds
        var ages: [Int32] = []
        var last: Int32?
        var (decoded, decodeTime, inLastSecond): (Int64, Int64, Int) = (0, 0, 0)
        for offset in 0..<frames.count {
            // From the oldest to the newest.
            let frame = frames[(next + offset) % frames.count]
            guard frame.at > present - Self.span else { continue }
            decoded += 1
            decodeTime += Int64(frame.decodeTime)
            if frame.at > present - Self.second { inLastSecond += 1 }
            guard frame.age != Frame.notShown else { continue }
            ages.append(frame.age)
            last = frame.age
        }
        statistics.framesPerSecond = inLastSecond
        statistics.decodeTime = decoded > 0 ? .microseconds(decodeTime / decoded) : nil
        guard let last else { return }
        ages.sort()
        func rank(_ percent: Int) -> Duration { .microseconds(ages[max(0, (percent * ages.count + 99) / 100 - 1)]) }
        statistics.recentFrameAge = RecentFrameAge(last: .microseconds(last), p50: rank(50), p95: rank(95))
    }
}
