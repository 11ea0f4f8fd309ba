/// Takes frames from a source.
public protocol VideoSink: AnyObject, Sendable {
    /// What the sink would like to be given; a source reads it when the sink is added.
    var sourceRequirements: VideoFormatRequest { get }

    /// Takes a frame.
    ///
    /// Called on the source's thread, in order of capture; must return quickly and never block.
    func onVideoFrame(_ frame: VideoFrame)

    /// Takes what the source was asked for and leaves to its sink; fields that are `nil` stay as they are.
    ///
    /// A sink that is asked for a size crops and scales down the frames that come in another one.
    func onVideoFormatRequest(_ request: VideoFormatRequest)
}

/// Shows or otherwise uses the pictures of a track.
public protocol VideoRenderer: AnyObject, Sendable {
    /// Takes a frame.
    ///
    /// Called on the decoder thread of a remote track, in order of decoding, or on the source's thread of a local one; one
    /// call at a time, but a renderer of several tracks is called by several threads at once. Must return quickly: while
    /// it does not, the track's frames are left out.
    func render(_ frame: VideoFrame)
}

/// Why a captured frame was not encoded.
public enum FrameDropReason: Int, CaseIterable, Sendable {
    /// A newer frame was already there when this one could be taken, or the track was stopped first.
    case late
    /// The encoder was still busy with an earlier frame when the next one came.
    case encoderBusy
    /// The encoder left the frame out to hold its bit rate.
    case rateControl
    /// The connection had not yet taken the frames before.
    case network
    /// The device delivered damaged data, or the frame could not be encoded.
    case corrupt
    /// Nobody receives the track, it is not enabled, or fewer frames a second were asked for.
    case notWanted

    /// The reason's name in reports and JSON.
    public var name: String { "\(self)" }
}

/// How many frames were dropped, by reason.
public struct FrameDropCounts: Sendable {
    // No SIMD vector: eight words of one lie at multiples of 64 bytes, and an async function that keeps such a value
    // across an `await` overruns its frame when Swift 6.3.1 optimizes it. Values of up to 16 bytes' alignment are safe.
    private var counts = InlineArray<6, Int>(repeating: 0)

    /// No drops.
    public init() {
        precondition(FrameDropReason.allCases.count == counts.count)
    }

    /// The number of frames dropped for `reason`.
    public subscript(_ reason: FrameDropReason) -> Int {
        get { counts[reason.rawValue] }
        set { counts[reason.rawValue] = newValue }
    }

    /// Frames dropped, for whatever reason.
    public var total: Int { FrameDropReason.allCases.reduce(0) { $0 + self[$1] } }

    /// The sums, reason by reason, of two counts.
    public static func + (lhs: FrameDropCounts, rhs: FrameDropCounts) -> FrameDropCounts {
        var sum = lhs
        for reason in FrameDropReason.allCases { sum[reason] += rhs[reason] }
        return sum
    }
}

extension FrameDropCounts: Hashable {
    /// Whether all counts are equal.
    public static func == (lhs: FrameDropCounts, rhs: FrameDropCounts) -> Bool {
        FrameDropReason.allCases.allSatisfy { lhs[$0] == rhs[$0] }
    }

    /// Hashes all counts.
    public func hash(into hasher: inout Hasher) {
        for reason in FrameDropReason.allCases { hasher.combine(self[reason]) }
    }
}

/// What a source has captured and dropped.
///
/// Captured = delivered + dropped. The counts go on when capturing is started again.
public struct CaptureStatistics: Hashable, Sendable {
    /// Frames that the device handed over; those dropped below are among them.
    public var framesCaptured = 0
    /// Frames that the device handed over and the source did not deliver.
    public var framesDropped = FrameDropCounts()
    /// Frames that the device itself left out, by the gaps in its sequence numbers; not among `framesCaptured`.
    public var framesMissed = 0
    /// Frames whose time stamp by the device could not be true, or was of another clock; they have the time at which
    /// they were taken from the device instead.
    public var timestampsReplaced = 0
    /// When the first frame since the last start was captured; `nil` before there is one.
    public var firstTimestamp: MonotonicInstant?
    /// When the last frame since the last start was captured; `nil` before there is one.
    public var lastTimestamp: MonotonicInstant?
    /// The duration of what was captured before the last start.
    private var earlierDuration = Duration.zero

    /// Nothing captured yet.
    public init() {}

    /// From the first to the last of `framesCaptured`, without the time between a stop and the next start.
    ///
    /// For a source that was started once, the device's frame rate is `framesCaptured + framesMissed - 1` in this time.
    public var captureDuration: Duration {
        guard let firstTimestamp, let lastTimestamp else { return earlierDuration }
        return earlierDuration + max(.zero, lastTimestamp.duration(since: firstTimestamp))
    }

    /// Counts a frame that the device handed over, captured at `timestamp`.
    public mutating func countCaptured(at timestamp: MonotonicInstant) {
        framesCaptured += 1
        firstTimestamp = firstTimestamp ?? timestamp
        lastTimestamp = timestamp
    }

    /// Adds what was counted since, with time stamps that follow.
    package mutating func add(_ later: CaptureStatistics) {
        framesCaptured += later.framesCaptured
        framesDropped = framesDropped + later.framesDropped
        framesMissed += later.framesMissed
        timestampsReplaced += later.timestampsReplaced
        firstTimestamp = firstTimestamp ?? later.firstTimestamp
        lastTimestamp = later.lastTimestamp ?? lastTimestamp
    }

    /// Notes that capturing starts anew, so that the pause before does not count as duration.
    package mutating func beginStretch() {
        earlierDuration = captureDuration
        firstTimestamp = nil
        lastTimestamp = nil
    }
}
