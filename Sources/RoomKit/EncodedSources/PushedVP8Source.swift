public import Capture
public import MediaCore
import Threading

/// A source of VP8 frames that the application has already, from an encoder of its own or from another room.
///
/// A track sends them as they are, in one encoding: there is no simulcast and no adaptation of rate or size, and
/// `qualityLimitation` says `other`. On a network that is too slow, frames are dropped up to the next keyframe. Frames
/// must come in the order of display and refer only to earlier frames of the source; invisible frames are refused.
/// May be used from any thread, by one at a time.
public final class PushedVP8Source: EncodedVideoSource {
    /// The sinks of the source; only published tracks take its frames.
    public let sinks = VideoSinks()
    /// What the source shows.
    public let kind: VideoSourceKind
    /// Whether the frames show a screen.
    public var isScreencast: Bool { kind == .screen }

    private let entrance: EncodedEntrance
    private let onKeyframeRequest: (@Sendable () -> Void)?

    /// Creates a source that has no frame yet.
    ///
    /// - Parameters:
    ///   - kind: What the source shows.
    ///   - onKeyframeRequest: Called when a subscriber or a new track needs a keyframe: at most once a second for each
    ///     track, on a thread of the track, or of Swift's pool before the first keyframe; it must not hold either up.
    ///     `write` calls it, too, at most once a second, when it drops a frame because one before it was dropped or
    ///     refused. Without it, subscribers wait for the source's next keyframe.
    public init(kind: VideoSourceKind = .other, onKeyframeRequest: (@Sendable () -> Void)? = nil) {
        self.kind = kind
        self.onKeyframeRequest = onKeyframeRequest
        entrance = EncodedEntrance(to: sinks, requestKeyframe: onKeyframeRequest)
    }

    /// Calls the application's `onKeyframeRequest`.
    public func requestFrame() { onKeyframeRequest?() }

    /// Passes a frame on to the tracks; returns `false` if it was dropped, and never waits.
    ///
    /// A frame is dropped if no track takes it, if another thread's frame is being taken, or if it refers to a frame
    /// that was dropped or refused: then write frames on, up to a keyframe. A frame that was taken may still be given
    /// up later, because the network is too slow.
    ///
    /// - Parameters:
    ///   - frame: One whole VP8 frame, of at most 4 MiB; it is copied.
    ///   - timestamp: When the frame was captured; `nil` for now. One in the future counts as now. Timestamps that go
    ///     back, or that lie more than ten seconds back, are shifted, so that the frames keep their distances and times
    ///     never go back.
    ///   - rotation: The clockwise turn by which subscribers make the picture upright. After a quarter turn, the
    ///     track's size is that of the upright picture from the next keyframe on.
    ///   - isMirrored: Whether subscribers exchange left and right after the turn.
    ///   - metadata: Bytes of the application that reach each subscriber with this frame.
    /// - Returns: Whether a track has taken the frame.
    /// - Throws: A `VP8SourceError` if the frame cannot be passed on: it is not VP8, invisible or too large.
    @discardableResult
    public func write(
        _ frame: RawSpan,
        timestamp: MonotonicInstant? = nil,
        rotation: VideoRotation = .none,
        isMirrored: Bool = false,
        metadata: FrameMetadata? = nil
    ) throws(VP8SourceError) -> Bool {
        let tags = EncodedFrame.Tags(rotation: rotation, isMirrored: isMirrored, metadata: metadata)
        return try entrance.take(frame, at: timestamp ?? MonotonicClock.now, tags: tags, named: "The frame")
            == .delivered
    }

    /// The frames that were written, dropped ones among them, and the dropped ones by reason.
    public var writeStatistics: CaptureStatistics { captureStatistics }
}
