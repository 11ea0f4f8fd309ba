/// Receives frames from a source.
public protocol VideoSink: AnyObject, Sendable {
    /// The format that the sink prefers; a source reads it when the sink is added.
    var sourceRequirements: VideoFormatRequest { get }

    /// Receives a frame.
    ///
    /// The source calls it on its own thread, in order of capture. It must return quickly and never block.
    func onVideoFrame(_ frame: VideoFrame)

    /// Tells the sink which format to produce from now on.
    ///
    /// It is the part of the requests for all sinks that the source does not fulfil itself, with what was requested for
    /// this sink alone. Fields that are `nil` mean "don't care". A sink that gets a size crops and scales down frames of
    /// any other size. Without one, it takes them as they are.
    func onVideoFormatRequest(_ request: VideoFormatRequest)
}

/// Shows the frames of a track, or uses them in another way.
public protocol VideoRenderer: AnyObject, Sendable {
    /// Receives the newest frame of a track.
    ///
    /// Each track calls it on a thread that it keeps for this renderer, or on the executor that was given when the
    /// renderer was added: one call at a time, in order of capture. A renderer of several tracks is called by several
    /// threads at once. It may take its time and even block: meanwhile it alone misses frames, and gets the newest one
    /// next.
    ///
    /// - Throws: Whatever it likes; the track counts it and goes on with the next frame.
    func render(_ frame: VideoFrame) throws
}

/// Why a frame was dropped: a captured one before encoding, or a received one before decoding.
public enum FrameDropReason: Int, CaseIterable, Sendable {
    /// A newer frame took its place before it could be taken, or the track was stopped first; at a receiver, the
    /// decoder or the disk was too slow.
    case late
    /// The encoder was still busy with an earlier frame when the next one came.
    case encoderBusy
    /// Fewer frames a second are sent than the source delivers, the encoder left the frame out to hold its bitrate, or a
    /// keyframe was due so soon after the one before it that it had to wait.
    case rateControl
    /// The connection had no room for it; at a receiver, a frame that it refers to did not arrive.
    case network
    /// The device delivered damaged data, or the frame could not be encoded or decoded.
    case corrupt
    /// Nobody receives the track, it is not enabled, or its sink asked for fewer frames a second.
    case notWanted
    /// A received frame is encrypted, and this version has no keys.
    case encrypted

    /// The reason's name in reports and JSON.
    public var name: String { "\(self)" }
}

/// How many frames were dropped, by reason.
public struct FrameDropCounts: Sendable {
    // No SIMD vector here. Such a vector of eight words must lie at a multiple of 64 bytes, and when Swift 6.3.1
    // optimizes an async function that keeps it across an `await`, the function overruns its frame. Values with an
    // alignment of up to 16 bytes are safe.
    private var counts = InlineArray<7, Int>(repeating: 0)

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

extension FrameDropCounts {
    /// What was counted since `earlier`, reason by reason.
    package func since(_ earlier: FrameDropCounts) -> FrameDropCounts {
        var difference = self
        for reason in FrameDropReason.allCases { difference[reason] -= earlier[reason] }
        return difference
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
