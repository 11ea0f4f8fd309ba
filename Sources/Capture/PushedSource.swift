public import MediaCore

/// A source whose frames the application writes, whenever it has one.
///
/// Nothing is queued: a frame is either taken at once or dropped. May be used from any thread.
///
/// Between two frames that come now and then, a published track shows the last one each second: it is the present one.
/// After 30 frames in a row, each at most half a second after the one before, it does so for three seconds only. The
/// source is a steady feed then, whose silence means that it has stalled, and viewers learn that it is frozen. If its
/// pictures do stand still at times, as those of a drawing, give it the content hint `.detail` or `.text`.
public final class PushedSource: VideoSource {
    /// The sinks of the source.
    public let sinks = VideoSinks()
    /// What the source shows.
    public let kind: VideoSourceKind
    /// The kind of content in the frames.
    public let contentHint: VideoContentHint
    /// Whether the frames show a screen.
    public var isScreencast: Bool { kind == .screen }

    private let entrance: FrameEntrance

    /// Creates a source that has no frame yet.
    ///
    /// - Parameters:
    ///   - kind: What the source shows.
    ///   - contentHint: The kind of content in the frames; by default `.detail` for a screen and `.none` for the rest.
    public init(kind: VideoSourceKind = .other, contentHint: VideoContentHint? = nil) {
        self.kind = kind
        self.contentHint = contentHint ?? kind.contentHint
        entrance = FrameEntrance(to: sinks, measuresDelay: false)
    }

    /// Passes a frame on to the sinks; returns `false` if it was dropped, and never waits.
    ///
    /// A frame is dropped if no sink wants it, if a sink is still taking another thread's frame, or if it is older than
    /// the one before. Do not write it again: the next frame is fresher. A frame that was taken may still be replaced
    /// by a newer one before it is encoded.
    ///
    /// The frame's timestamp says when it was captured. One in the future or more than ten seconds ago, as those of
    /// another clock or of a clip, counts as now, in `CaptureStatistics.timestampsReplaced` too.
    @discardableResult
    public func write(_ frame: VideoFrame) -> Bool { entrance.take(frame) }

    /// The frames that were written, dropped ones among them, and the dropped ones by reason.
    public var writeStatistics: CaptureStatistics { captureStatistics }
}
