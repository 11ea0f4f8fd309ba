public import Adaptation
public import MediaCore

/// Counts of a local track's frames, and the present state of its connection and its encoders.
///
/// Once the track is no longer published, captured = encoded + dropped, and the state is the last one.
public struct LocalVideoTrackStatistics: Hashable, Sendable {
    /// Frames that the source captured.
    public var framesCaptured = 0
    /// Repeats of the last picture: of an unchanged screen, of a hidden window, or for a subscriber that waits for one.
    ///
    /// They are part of `framesCaptured`.
    public var framesRepeated = 0
    /// Frames that the device skipped, according to its sequence numbers; they are not part of `framesCaptured`.
    public var framesMissed = 0
    /// Frames whose timestamp could not be true and was replaced by the time at which the source delivered the frame.
    public var timestampsReplaced = 0
    /// Slates that the source delivered in place of pictures that did not come; they are part of `framesCaptured`.
    public var framesSubstituted = 0
    /// How often the source gave no pictures for a while.
    public var interruptions = 0
    /// The time from the first to the last captured frame, by the device's stamps; zero if the source does not know it.
    ///
    /// The device's own rate is `framesCaptured + framesMissed - 1` frames in this time.
    public var captureDuration = Duration.zero
    /// The mean time from a frame's capture until the source took it from the device; `nil` if the source cannot know
    /// it.
    public var captureDelay: Duration?
    /// The frames captured in a second, estimated by the timestamps of about the last second; `nil` before that.
    public var capturedFramesPerSecond: Double?
    /// Frames that were encoded, in one simulcast layer or more, or passed on because they were compressed already.
    public var framesEncoded = 0
    /// Encoded frames that were completely handed to the network, of all simulcast layers.
    public var framesSent = 0
    /// Encoded frames that were discarded because the network did not take them in time, of all simulcast layers.
    public var framesExpired = 0
    /// Encoded frames that decode without any other, of all simulcast layers.
    public var keyframes = 0
    /// Bytes handed to the network, including the headers of media packets.
    public var bytesSent = 0
    /// Captured frames that were not encoded, by reason.
    public var framesDropped = FrameDropCounts()
    /// The separate encodings of the track, the smallest first; one if there is no simulcast.
    public var layers: [LocalVideoLayerStatistics] = []
    /// The state of the connection; `nil` before the track is published.
    public var connection: UplinkStatistics?

    /// Creates counts that are all zero.
    public init() {}
}

/// The statistics of one simulcast layer of a local track.
public struct LocalVideoLayerStatistics: Hashable, Sendable {
    /// The layer's number: 0 is the smallest.
    public var simulcastLayer = 0
    /// Frames that were encoded.
    public var framesEncoded = 0
    /// Encoded frames that were completely handed to the network.
    public var framesSent = 0
    /// Encoded frames that were discarded because the network did not take them in time.
    public var framesExpired = 0
    /// Encoded frames that decode without any other.
    public var keyframes = 0
    /// Bytes handed to the network, including the headers of media packets.
    public var bytesSent = 0
    /// The bit rate that the encoder aims at; `nil` before the first frame, and without an encoder.
    public var targetBitrate: Bitrate?
    /// The size of the last frame; `nil` before the first.
    public var dimensions: Dimensions?
    /// The number of temporal layers of the last frame; `nil` before the first.
    public var temporalLayerCount: Int?
    /// Frames encoded a second, measured over about the last second.
    public var framesPerSecond = 0.0
    /// The last frame's quantizer: for VP8, from 0 for the finest picture to 127; `nil` before the first frame, and
    /// without an encoder.
    public var quantizer: UInt8?
    /// The total time spent on scaling and encoding, for all frames.
    public var encodeDuration = Duration.zero
    /// What limits the size or the frame rate at present.
    public var qualityLimitation = QualityLimitation.Reason.none
    /// How long each reason has limited them.
    public var qualityLimitationDurations: [QualityLimitation.Reason: Duration] = [:]

    /// Creates counts that are all zero.
    public init() {}
}

/// The state of the connection to the server, estimated from the server's acknowledgements.
public struct UplinkStatistics: Hashable, Sendable {
    /// The highest rate at which all tracks together are sent.
    public var sendBitrate: Bitrate
    /// The rate at which the connection has lately carried what was sent.
    ///
    /// While the connection is the limit, this is an estimate of what it carries. While it is not, it shows only what the
    /// tracks needed, which for a still picture is little; rates far above that are not tried.
    public var estimatedBitrate: Bitrate
    /// How long the last acknowledged byte waited on its way; `nil` while unknown.
    public var queueDelay: Duration?
    /// The shortest time from sending to the acknowledgement; `nil` while unknown.
    public var roundTripTime: Duration?
    /// Whether the server acknowledges what it receives; without acknowledgements, a fixed rate policy applies.
    public var isAcknowledged: Bool
    /// Whether the connection seems interrupted: for a while nothing was acknowledged of what was sent.
    public var isInterrupted: Bool
    /// The bytes that the server has acknowledged since the connection opened.
    package var acknowledgedBytes: Int
}
