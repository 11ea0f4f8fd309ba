import MediaCore

/// Places the frames of a recording in its file's time.
///
/// A file of compressed frames begins with a keyframe, which may have come long before the recording began: the
/// relay keeps the last one of a picture that stands still, and so does the track. The frames from then are needed
/// to decode the later ones. They take no time in the file, so that it is as long as the recording. Where the track is
/// subscribed to again meanwhile, such frames do not go back behind what is recorded.
struct RecordingTime: Sendable {
    /// A frame that came at most this long before the recording keeps its time.
    ///
    /// Recorders are often added a moment after a track's first frame.
    static let leeway = Duration.seconds(1)

    private let start: MonotonicInstant
    /// The time that was left out before the recording.
    private var leftOut = Duration.zero
    /// The latest capture time so far.
    private var newest: MonotonicInstant?
    /// Whether a frame of the recording itself has come.
    private var hasBegun = false

    /// The times of a recording that began at `start`.
    init(start: MonotonicInstant) {
        self.start = start
    }

    /// When the next frame counts as captured.
    mutating func moved(_ frame: ReceivedFrame) -> MonotonicInstant {
        let captured = frame.frame.info.timestamp
        let newest = newest ?? captured
        self.newest = max(newest, captured)
        let isEarlier = frame.isCatchUp || frame.received < start - Self.leeway
        guard isEarlier else {
            hasBegun = true
            return captured - leftOut
        }
        if hasBegun { return max(newest, captured) - leftOut }
        leftOut += max(.zero, captured.duration(since: newest))
        return captured - leftOut
    }
}
