/// Produces pictures for one track and hands them to its sink.
///
/// The chain is source → sink, as in Twilio Video: a camera, a scaler, an encoder and a test pattern are links of it.
public protocol VideoSource: AnyObject, Sendable {
    /// Where frames go.
    ///
    /// Set by the track that the source belongs to; not kept alive by the source while it is idle.
    var sink: (any VideoSink)? { get set }

    /// Whether the pictures are a screen's: detail matters more than rate.
    var isScreencast: Bool { get }

    /// Asks the source for another output format; fields that are `nil` stay as they are.
    ///
    /// Taken up as soon as the source can; what it delivers is to be read off the frames. A source passes on to its sink's
    /// `onVideoFormatRequest` what it does not carry out itself: a published track crops and scales to the size.
    func requestOutputFormat(_ request: VideoFormatRequest)
}

/// A source that has a device or a clock of its own to start and stop.
public protocol VideoCapturer: VideoSource {
    /// Opens the device and begins to deliver frames, on a thread of the capturer's own.
    ///
    /// Returns once the first frames may come. Starting twice does nothing.
    ///
    /// - Throws: The capturer's own error when the device cannot deliver.
    func startCapture() async throws

    /// Stops delivering and gives the device free; no frame is delivered after it returns.
    ///
    /// Stopping twice does nothing.
    func stopCapture() async

    /// What is being captured, once started; `nil` where the capturer cannot say.
    var captureFormat: VideoFormat? { get }

    /// What has been captured and dropped since the start; may be read from any thread.
    var captureStatistics: CaptureStatistics { get }
}

/// Takes pictures from a source.
public protocol VideoSink: AnyObject, Sendable {
    /// What the sink would like to be given; consulted by a source when it starts.
    var sourceRequirements: VideoFormatRequest { get }

    /// Takes a frame.
    ///
    /// Called on the source's thread, in order of capture; must return quickly and never block.
    func onVideoFrame(_ frame: VideoFrame)

    /// Takes what the source was asked for and leaves to its sink; fields that are `nil` stay as they are.
    ///
    /// Of a size the sink makes what the source does not: it crops and scales down the frames that come.
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

/// What a capturer has done since it was started.
public struct CaptureStatistics: Hashable, Sendable {
    /// Frames that the device handed over; those dropped below are among them.
    public var framesCaptured = 0
    /// Frames that the device handed over and the capturer did not deliver.
    public var framesDropped = FrameDropCounts()
    /// Frames that the device itself left out, by the gaps in its sequence numbers; not among `framesCaptured`.
    public var framesMissed = 0
    /// When the first of `framesCaptured` was captured, by the device's stamp; `nil` before there is one.
    public var firstTimestamp: MonotonicInstant?
    /// When the last of `framesCaptured` was captured, by the device's stamp; `nil` before there is one.
    public var lastTimestamp: MonotonicInstant?

    /// Nothing captured yet.
    public init() {}

    /// From the first to the last of `framesCaptured`; zero for fewer than two.
    ///
    /// The device's own frame rate is `framesCaptured + framesMissed - 1` in this time.
    public var captureDuration: Duration {
        guard let firstTimestamp, let lastTimestamp else { return .zero }
        return lastTimestamp.duration(since: firstTimestamp)
    }

    /// Counts a frame that the device handed over, captured at `timestamp`.
    public mutating func countCaptured(at timestamp: MonotonicInstant) {
        framesCaptured += 1
        firstTimestamp = firstTimestamp ?? timestamp
        lastTimestamp = timestamp
    }
}
