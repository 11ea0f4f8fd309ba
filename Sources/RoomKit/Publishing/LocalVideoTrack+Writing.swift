public import Capture
public import MediaCore

/// Tracks whose frames the application writes.
extension LocalVideoTrack {
    /// Creates a track whose frames are given to `write(_:)`.
    ///
    /// Publishing it waits for the first frame, so write from another task. The name has 1 to 128 bytes of UTF-8.
    public convenience init(
        writtenAs name: String,
        kind: VideoSourceKind = .other,
        contentHint: VideoContentHint? = nil
    ) {
        self.init(source: PushedSource(kind: kind, contentHint: contentHint), name: name)
    }

    /// Passes a frame on, if the source is a `PushedSource`; returns `false` if the frame was dropped, and never waits.
    ///
    /// `false` means that the frame is lost, for the reasons that `PushedSource.write(_:)` gives; do not write it
    /// again. Any thread may call this.
    @discardableResult
    public func write(_ frame: VideoFrame) -> Bool {
        (source as? PushedSource)?.write(frame) ?? false
    }

    /// The frames that were written, dropped ones among them, and the dropped ones by reason.
    ///
    /// Zero if the source is no `PushedSource`.
    public var writeStatistics: CaptureStatistics {
        (source as? PushedSource)?.writeStatistics ?? CaptureStatistics()
    }
}
