/// Receives frames from a source.
public protocol VideoSink: AnyObject, Sendable {
    /// The format that the sink prefers; a source reads it when the sink is added.
    var sourceRequirements: VideoFormatRequest { get }

    /// Receives a frame.
    ///
    /// The source calls it on its own thread, in order of capture. It must return quickly and never block.
    func onVideoFrame(_ frame: VideoFrame)

    /// Receives the part of a format request that the source leaves to its sinks; fields that are `nil` stay as they
    /// are.
    ///
    /// A sink that gets a size crops and scales down frames of any other size.
    func onVideoFormatRequest(_ request: VideoFormatRequest)
}

/// Shows the frames of a track, or uses them in another way.
public protocol VideoRenderer: AnyObject, Sendable {
    /// Receives a frame.
    ///
    /// A remote track calls it on its decoder thread, in order of decoding; a local track calls it on the source's
    /// thread. A track makes one call at a time, but a renderer of several tracks is called by several threads at once.
    /// It must return quickly: until it does, the track's next frames are left out.
    func render(_ frame: VideoFrame)
}

/// Why a frame was dropped: a captured one before encoding, or a received one before decoding.
public enum FrameDropReason: Int, CaseIterable, Sendable {
    /// A newer frame took its place before it could be taken, or the track was stopped first; at a receiver, the decoder
    /// or the disk was too slow.
    case late
    /// The encoder was still busy with an earlier frame when the next one came.
    case encoderBusy
    /// Fewer frames a second are sent than the source delivers, or the encoder left the frame out to hold its bitrate.
    case rateControl
    /// The connection had no room for it; at a receiver, a frame that it refers to did not arrive.
    case network
    /// The device delivered damaged data, or the frame could not be encoded or decoded.
    case corrupt
    /// Nobody receives the track, it is not enabled, or its sink asked for fewer frames a second.
    case notWanted

    /// The reason's name in reports and JSON.
    public var name: String { "\(self)" }
}

/// How many frames were dropped, by reason.
public struct FrameDropCounts: Sendable {
    // No SIMD vector here. Such a vector of eight words must lie at a multiple of 64 bytes, and when Swift 6.3.1
    // optimizes an async function that keeps it across an `await`, the function overruns its frame. Values with an
    // alignment of up to 16 bytes are safe.
    private var counts = InlineArray<6, Int>(repeating: 0)

    /// Creates counts of zero.
    public init() {
        precondition(FrameDropReason.allCases.count == counts.count)
    }

    /// The number of frames dropped for `reason`.
    public subscript(_ reason: FrameDropReason) -> Int {
        get { counts[reason.rawValue] }
        set { counts[reason.rawValue] = newValue }
    }

    /// All dropped frames, for any reason.
    public var total: Int { FrameDropReason.allCases.reduce(0) { $0 + self[$1] } }

    /// Adds two counts, reason by reason.
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

/// Counts the frames that a source captured and dropped.
///
/// Captured = delivered + dropped. The counts continue when capturing is started again.
public struct CaptureStatistics: Hashable, Sendable {
    /// Frames that the device handed over, including those counted in `framesDropped`.
    public var framesCaptured = 0
    /// Frames that the device handed over but the source did not deliver.
    public var framesDropped = FrameDropCounts()
    /// Frames of a screen that was found unchanged, which show the last picture again; part of `framesCaptured`.
    public var framesRepeated = 0
    /// Frames that the device itself left out, found by gaps in its sequence numbers; not part of `framesCaptured`.
    public var framesMissed = 0
    /// Frames whose timestamp from the device was impossible or of another clock.
    ///
    /// They carry the time at which they were taken from the device instead.
    public var timestampsReplaced = 0
    /// When the first frame since the last start was captured; `nil` before there is one.
    public var firstTimestamp: MonotonicInstant?
    /// When the last frame since the last start was captured; `nil` before there is one.
    public var lastTimestamp: MonotonicInstant?
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

    /// Counts a frame that the device handed over, captured at `timestamp`.
    public mutating func countCaptured(at timestamp: MonotonicInstant) {
        framesCaptured += 1
        firstTimestamp = firstTimestamp ?? timestamp
        lastTimestamp = timestamp
    }

    /// Adds later counts, whose timestamps follow those counted so far.
    package mutating func add(_ later: CaptureStatistics) {
        framesCaptured += later.framesCaptured
        framesDropped = framesDropped + later.framesDropped
        framesRepeated += later.framesRepeated
        framesMissed += later.framesMissed
        timestampsReplaced += later.timestampsReplaced
        firstTimestamp = firstTimestamp ?? later.firstTimestamp
        lastTimestamp = later.lastTimestamp ?? lastTimestamp
    }

    /// Marks a new start of capturing, so that the pause before it does not count as duration.
    package mutating func beginStretch() {
        earlierDuration = captureDuration
        firstTimestamp = nil
        lastTimestamp = nil
    }
}
