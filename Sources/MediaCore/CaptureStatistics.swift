/// Counts the frames that a source captured and dropped.
///
/// Captured = delivered + dropped. The counts continue when capturing is started again.
public struct CaptureStatistics: Hashable, Sendable {
    /// Frames that the device handed over, including those counted in `framesDropped`.
    public var framesCaptured = 0
    /// Frames that the device handed over but the source did not deliver.
    public var framesDropped = FrameDropCounts()
    /// Frames that the device itself left out, found by gaps in its sequence numbers; not part of `framesCaptured`.
    public var framesMissed = 0
    /// Frames whose timestamp from the device or the application was impossible or of another clock.
    ///
    /// They carry the time at which they were taken from it instead.
    public var timestampsReplaced = 0
    /// Frames of a screen that was found unchanged, or of a hidden window, which show the last picture again; part of
    /// `framesCaptured`.
    public var framesRepeated = 0
    /// Slates that the source delivered in place of pictures that did not come; they are part of `framesCaptured`.
    public var framesSubstituted = 0
    /// How often the source gave no pictures for a while, and went on by itself.
    public var interruptions = 0
    /// When the first frame since the last start was captured; `nil` before there is one.
    public var firstTimestamp: MonotonicInstant?
    /// When the last frame since the last start was captured; `nil` before there is one.
    public var lastTimestamp: MonotonicInstant?
    /// How long the last frame took from its timestamp until it was taken from the device; `nil` if that is unknown.
    ///
    /// This is measured for cameras and custom capturers, and for screens until the picture has been fetched and
    /// converted; repeats of a still screen do not count. Painted sources stamp a picture when they begin to paint it.
    public private(set) var captureDelay: Duration?
    /// The longest such delay; `nil` if none is known.
    public private(set) var longestCaptureDelay: Duration?
    /// The frames captured in a second, estimated by the timestamps of about the last second; `nil` before that, and 0
    /// once no frame has come for two seconds, two frame intervals and the last frame's `captureDelay`.
    public private(set) var framesPerSecond: Double?
    private var delayedFrames = 0
    private var totalDelay = Duration.zero
    /// Where the estimate of the rate began to count.
    private var rateStart: MonotonicInstant?
    private var framesSinceRateStart = 0
    /// The capture duration of all earlier starts.
    private var earlierDuration = Duration.zero

    /// Creates statistics of zero.
    public init() {}

    /// The time from the first to the last of `framesCaptured`, without the pauses between a stop and the next start.
    ///
    /// For a source that was started once, the device's frame rate is `framesCaptured + framesMissed - 1` divided by
    /// this time.
    public var captureDuration: Duration {
        guard let firstTimestamp, let lastTimestamp else { return earlierDuration }
        return earlierDuration + max(.zero, lastTimestamp.duration(since: firstTimestamp))
    }

    /// The mean time from a frame's timestamp until it was taken from the device; `nil` if none is known.
    public var meanCaptureDelay: Duration? { delayedFrames > 0 ? totalDelay / delayedFrames : nil }

    /// Counts a frame that the device handed over, captured at `timestamp` and taken from the device at `taken`.
    public mutating func countCaptured(at timestamp: MonotonicInstant, takenAt taken: MonotonicInstant? = nil) {
        framesCaptured += 1
        firstTimestamp = firstTimestamp ?? timestamp
        lastTimestamp = timestamp
        estimateRate(framesCaptured: 1, until: timestamp)
        if let taken { countDelay(from: timestamp, until: taken) }
    }

    /// Counts how long a frame that was captured at `timestamp` took until `taken`.
    package mutating func countDelay(from timestamp: MonotonicInstant, until taken: MonotonicInstant) {
        let delay = max(.zero, taken.duration(since: timestamp))
        captureDelay = delay
        longestCaptureDelay = max(longestCaptureDelay ?? delay, delay)
        totalDelay += delay
        delayedFrames += 1
    }

    private mutating func estimateRate(framesCaptured frames: Int, until timestamp: MonotonicInstant) {
        guard let rateStart, timestamp >= rateStart else {
            (self.rateStart, framesSinceRateStart) = (timestamp, 0)
            return
        }
        framesSinceRateStart += frames
        let elapsed = timestamp.duration(since: rateStart)
        guard elapsed >= .seconds(1) else { return }
        framesPerSecond = Double(framesSinceRateStart) / elapsed.seconds
        (self.rateStart, framesSinceRateStart) = (timestamp, 0)
    }

    /// Notes that `now` is later than the last frame: a rate does not outlast its frames.
    package mutating func age(to now: MonotonicInstant) {
        guard let rate = framesPerSecond, rate > 0, let lastTimestamp else { return }
        // A source may be slow to hand over its frames, but then it is with each of them.
        let longest = Duration.seconds(2) + .seconds(2 / rate) + (captureDelay ?? .zero)
        if now.duration(since: lastTimestamp) > longest { framesPerSecond = 0 }
    }

    /// Adds later counts, whose timestamps follow those counted so far.
    package mutating func add(_ later: CaptureStatistics) {
        framesCaptured += later.framesCaptured
        framesDropped = framesDropped + later.framesDropped
        framesMissed += later.framesMissed
        timestampsReplaced += later.timestampsReplaced
        framesRepeated += later.framesRepeated
        framesSubstituted += later.framesSubstituted
        interruptions += later.interruptions
        firstTimestamp = firstTimestamp ?? later.firstTimestamp
        lastTimestamp = later.lastTimestamp ?? lastTimestamp
        if let last = later.lastTimestamp { estimateRate(framesCaptured: later.framesCaptured, until: last) }
        captureDelay = later.captureDelay ?? captureDelay
        if let longest = later.longestCaptureDelay {
            longestCaptureDelay = max(longestCaptureDelay ?? longest, longest)
        }
        totalDelay += later.totalDelay
        delayedFrames += later.delayedFrames
    }

    /// Marks a new start of capturing, so that the pause before it does not count as duration.
    package mutating func beginStretch() {
        earlierDuration = captureDuration
        firstTimestamp = nil
        lastTimestamp = nil
        (rateStart, framesSinceRateStart, framesPerSecond) = (nil, 0, nil)
    }
}
