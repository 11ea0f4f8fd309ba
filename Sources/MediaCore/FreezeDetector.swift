/// Counts freezes of a video by libwebrtc's definition, which is also the one of WebRTC's `freezeCount`.
///
/// A gap between two shown frames is a freeze if it is at least three times the average gap and at least 150 ms longer
/// than it. The average is that of the last 30 gaps, the gap itself included; with fewer than 5 gaps nothing counts as
/// a freeze. (libwebrtc `video/video_quality_observer2.cc`.)
///
/// A source that stands still marks its frames as repeats. The time up to a repeat of the picture that is shown is no
/// gap: nothing was missed. Nor is the time after a repeat that is no longer than the time between repeats. Gaps are
/// counted as of a source that changes at irregular times, once a repeat has come.
///
/// A pure value, for one track. Tell it of every shown frame in order, and of every pause.
package struct FreezeDetector: Hashable, Sendable {
    /// The number of gaps in the average.
    private static let window = 30
    /// The number of gaps from which a gap can be a freeze.
    private static let fewestGaps = 5
    /// By how much a freeze is longer than the average gap, in microseconds.
    private static let leastIncrease: Int64 = 150_000
    /// How many times a freeze is longer than the average gap.
    private static let leastRatio: Int64 = 3

    /// The time between the repeats of a picture that stands still for long, in microseconds (`docs/protocol.md`, 6.2).
    private static let repeatInterval: Int64 = 1_000_000
    /// The shortest standstill that is worth a word while it lasts, in microseconds.
    ///
    /// A source that has ended is paused a second later, which is no freeze.
    private static let leastStandstill: Int64 = 1_500_000
    /// The time from a change to the first repeat of it, in microseconds: a shorter gap is the source's own.
    private static let settlingTime: Int64 = 200_000

    /// What is known of a shown frame besides its time.
    package struct Frame: Hashable, Sendable {
        var number: UInt32
        var simulcastLayer: Int
        var isRepeat: Bool

        /// A frame with a number in its simulcast layer.
        package init(number: UInt32, simulcastLayer: Int, isRepeat: Bool) {
            self.number = number
            self.simulcastLayer = simulcastLayer
            self.isRepeat = isRepeat
        }

        /// The frame that `info` describes.
        package init(_ info: EncodedFrameInfo) {
            self.init(number: info.number, simulcastLayer: Int(info.simulcastLayer), isRepeat: info.isRepeat)
        }

        /// Whether the frame shows the picture of `former` again; one that was left out between them may have changed
        /// it.
        fileprivate func repeats(_ former: Frame?) -> Bool {
            guard isRepeat, let former else { return false }
            return former.simulcastLayer == simulcastLayer && number == former.number &+ 1
        }
    }

    /// The last gaps, in microseconds; a ring of `window` once it is full.
    private var gaps: [Int64] = []
    private var oldest = 0
    private var sum: Int64 = 0
    /// When the last frame was shown; `nil` before the first, and in a pause.
    package private(set) var lastFrame: MonotonicInstant?
    private var last: Frame?
    /// How long the picture may stand still from now on, in microseconds; 0 unless the last frame was a repeat.
    private var stillness: Int64 = 0

    /// The freezes that are over.
    package private(set) var count = 0
    /// The length of these freezes together: each from the last frame before it to the first one after it.
    package private(set) var totalDuration = Duration.zero

    /// A smaller average counts as this one, in microseconds.
    private var leastAverage: Int64

    /// A detector of a video that has shown nothing yet.
    ///
    /// - Parameter leastAverageGap: A shorter average gap counts as this one. A screen delivers few frames while it
    ///   stands still, which is no freeze.
    package init(leastAverageGap: Duration = .zero) {
        leastAverage = leastAverageGap.wholeMicroseconds
        gaps.reserveCapacity(Self.window)
    }

    /// Notes that a frame was shown.
    ///
    /// - Parameters:
    ///   - frame: Says whether it is a repeat, if that is known.
    ///   - now: When it was shown.
    ///   - wishedGap: What the average gap counts as at least, because the viewer wants no more frames.
    /// - Returns: The length of the freeze that the frame ended; `nil` if there was none.
    @discardableResult
    package mutating func shown(
        _ frame: Frame? = nil,
        at now: MonotonicInstant,
        wishedGap: Duration = .zero
    ) -> Duration? {
        let isStill = frame?.repeats(last) ?? false
        last = frame
        guard let time = lastFrame else {
            lastFrame = now
            return nil
        }
        // A time that goes back counts as no time.
        let gap = max(0, now.duration(since: time).wholeMicroseconds)
        lastFrame = max(time, now)
        if isStill {
            // A source of few frames repeats at its own rate.
            stillness = max(Self.repeatInterval, gap)
            leastAverage = Self.settlingTime
            return nil
        }
        defer { stillness = 0 }
        if stillness > 0, gap <= stillness { return nil }
        add(gap - stillness)
        guard gaps.count >= Self.fewestGaps else { return nil }
        let average = max(sum / Int64(gaps.count), wishedGap.wholeMicroseconds)
        guard isFreeze(gap - stillness, average: average) else { return nil }
        count += 1
        totalDuration += .microseconds(gap)
        return .microseconds(gap)
    }

    /// When a freeze is worth a word while it lasts, unless another frame is shown before.
    ///
    /// That is 1.5 s after the last frame, or three times the average gap if that is longer: shorter freezes are only
    /// counted. A picture that is repeated is to be repeated again, at the latest 1.5 s after its time.
    ///
    /// - Parameters:
    ///   - expectedGap: What the average of the gaps is at least while there are few.
    ///   - wishedGap: What it is at least because the viewer wants no more frames.
    /// - Returns: The time; `nil` before the first frame and in a pause.
    package func standstill(expectedGap: Duration, wishedGap: Duration = .zero) -> MonotonicInstant? {
        guard let lastFrame else { return nil }
        let wished = wishedGap.wholeMicroseconds
        guard stillness == 0 else { return lastFrame + .microseconds(max(stillness, wished) + Self.leastStandstill) }
        var gap = max(wished, leastAverage)
        if !gaps.isEmpty { gap = max(gap, sum / Int64(gaps.count)) }
        if gaps.count < Self.fewestGaps { gap = max(gap, Self.repeatInterval, expectedGap.wholeMicroseconds) }
        return lastFrame + .microseconds(max(Self.leastStandstill, Self.leastRatio * gap))
    }

    /// Notes that a picture was shown at `now` that stood still before: the time up to it is no gap.
    package mutating func shownStill(_ frame: Frame, at now: MonotonicInstant) {
        (lastFrame, last, stillness) = (now, frame, Self.repeatInterval)
    }

    /// Notes that `frame` brought the picture that is shown already, and is no repeat: it ends no gap.
    package mutating func shownAgain(_ frame: Frame) {
        last = frame
    }

    /// Notes a pause, for example of a disabled track: the time until the next frame is no gap.
    package mutating func paused() {
        lastFrame = nil
        last = nil
        stillness = 0
    }

    private func isFreeze(_ gap: Int64, average: Int64) -> Bool {
        let average = max(average, leastAverage)
        return gap >= max(Self.leastRatio * average, average + Self.leastIncrease)
    }

    private mutating func add(_ gap: Int64) {
        // No gap may overflow the sum.
        let gap = min(gap, 86_400_000_000)
        sum += gap
        if gaps.count < Self.window {
            gaps.append(gap)
        } else {
            sum -= gaps[oldest]
            gaps[oldest] = gap
            oldest = (oldest + 1) % Self.window
        }
    }
}
