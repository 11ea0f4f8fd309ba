public import MediaCore
import RoomProtocol

/// How old frames were when they were decoded, counted from their capture.
public struct FrameAgeSummary: Hashable, Sendable {
    /// The median: half of the frames were no older.
    public var p50: Duration
    /// The 95th percentile: 95 of 100 frames were no older.
    public var p95: Duration
    /// The age of the oldest frame.
    public var maximum: Duration
}

/// How old the frames of the last five seconds were when they were decoded, counted from their capture.
public struct RecentFrameAge: Hashable, Sendable {
    /// The age of the newest frame.
    public var last: Duration
    /// The median: half of the frames were no older.
    public var p50: Duration
    /// The 95th percentile: 95 of 100 frames were no older.
    public var p95: Duration
}

/// How a capture time was converted from the publisher's clock to this machine's clock.
public enum FrameAgeClock: String, Hashable, Sendable {
    /// Both ends read the same clock, because they run on one machine in one boot.
    case sameHost = "same-host"
    /// The offset is estimated from round trips to the server; see `RemoteVideoTrackStatistics.ageErrorBound`.
    case estimated

    init(_ basis: ClockEstimate.Basis) {
        switch basis {
        case .sameHost: self = .sameHost
        case .estimated: self = .estimated
        }
    }
}

/// Counts, rates and ages of the frames that were received of a remote track.
///
/// The names are those of W3C `webrtc-stats` (`RTCInboundRtpStreamStats`) where it has one with the same meaning.
/// Frames from the relay's cache are received and decoded, but not shown: they count in no rate, age or freeze.
public struct RemoteVideoTrackStatistics: Hashable, Sendable {
    /// Whole frames that arrived, including those from the relay's cache.
    public var framesReceived = 0
    /// Frames that were decoded.
    public var framesDecoded = 0
    /// Frames that were shown: decoded, in time, and handed to the slots of the renderers if there are any.
    ///
    /// A renderer that is slow may still miss some of them: see `RemoteVideoTrack.rendererStatistics(of:)`.
    /// The other decoded frames came from the relay's cache, or a newer picture was there already, or they were more
    /// than a second late.
    public var framesRendered = 0
    /// Frames that were received and not decoded, by reason.
    ///
    /// - `late`: the decoder was too slow, so that a temporal layer was left out, or everything up to a keyframe.
    /// - `network`: a frame that they refer to did not arrive, and no keyframe had come since.
    /// - `corrupt`: the frame was damaged, or it refers to one that was.
    /// - `notWanted`: the subscription had ended.
    /// - `encrypted`: the frame is encrypted, and this version has no keys.
    public var framesDroppedByReason = FrameDropCounts()
    /// Frames that were received and not decoded, for any reason.
    public var framesDropped: Int { framesDroppedByReason.total }
    /// Frames that decode without any other.
    public var keyframes = 0
    /// Compressed bytes, without headers.
    public var bytes = 0
    /// The rate of the compressed frames that arrived in the last second, without headers.
    public var bitrate = Bitrate(bitsPerSecond: 0)
    /// The frames that were decoded in the last second.
    public var framesPerSecond = 0
    /// The size of the last decoded picture, made upright; `nil` before the first.
    public var dimensions: Dimensions?
    /// How many times a decoded picture had another size than the one before.
    public var sizeChanges = 0
    /// The simulcast layer (a separate encoding of the track) of the last decoded frame; 0 is the smallest.
    public var simulcastLayer = 0
    /// The time that decoding all frames took.
    public var totalDecodeTime = Duration.zero
    /// The mean time that decoding a frame of the last five seconds took; `nil` if there is none.
    public var decodeTime: Duration?
    /// Decoded frames that show the same picture as the frame before, because the source stood still; part of
    /// `framesDecoded`.
    public var framesRepeated = 0
    /// The freezes that have ended.
    ///
    /// A freeze is a time between two shown pictures of at least three times the mean of the last 30 such times, and
    /// at least 150 ms longer than that mean. A paused track is not frozen, and neither is a source that stands still
    /// (`framesRepeated`).
    public var freezeCount = 0
    /// The time of all freezes that have ended, each from one shown picture to the next.
    public var totalFreezesDuration = Duration.zero
    /// The time since the last shown picture; `nil` before the first, and while the publisher has paused the track.
    public var timeSinceLastFrame: Duration?
    /// The time from requesting the track to its first shown picture.
    ///
    /// Cached frames do not count, except the present picture of a source that stands still.
    public var timeToFirstFrame: Duration?
    /// The time from capture to decoding, over all frames that were shown; `nil` before the first.
    public var frameAge: FrameAgeSummary?
    /// The time from capture to decoding, over the frames that were shown in the last five seconds; `nil` if there is
    /// none.
    public var recentFrameAge: RecentFrameAge?
    /// How capture times were converted to this machine's clock.
    public var clock = FrameAgeClock.estimated
    /// The largest error of the ages that this end's clock estimate can cause; the publisher's error adds to it.
    public var ageErrorBound: Duration = .zero

    /// Creates statistics without any frame.
    public init() {}
}
