import MediaCore
import RoomProtocol

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
    /// The latest time so far, before `leftOut` is subtracted.
    private var newest: MonotonicInstant?
    /// When the last frame of the recording itself was received.
    private var formerReceived: MonotonicInstant?
    /// Whether a frame of the recording itself has come.
    private var hasBegun = false

    /// A capture time that is ahead of the time in which the frame came by more than this is no capture time.
    private static let longestLeap = Duration.seconds(10)
    /// One that goes back by more than this is of a clock that was set.
    private static let longestReturn = Duration.seconds(1)

    /// The times of a recording that began at `start`.
    init(start: MonotonicInstant) {
        self.start = start
    }

    /// When the next frame counts as captured.
    ///
    /// The room's time counts: this machine's estimate of it changes, and a file would show each change. A capture time
    /// that cannot be true is replaced by the time in which the frame came, as all later frames would otherwise be
    /// written at once.
    mutating func moved(_ frame: ReceivedFrame) -> MonotonicInstant {
        let room = frame.clock.roomTime(at: frame.frame.info.timestamp)
        let captured = MonotonicInstant(microseconds: room.microseconds)
        let elapsed = formerReceived.map { max(.zero, frame.received.duration(since: $0)) } ?? .zero
        let before = newest ?? captured
        let isEarlier = frame.isCatchUp || frame.received < start - Self.leeway
        if !isEarlier { formerReceived = frame.received }
        if hasBegun {
            let advance = captured.duration(since: before)
            let isFalse = advance > elapsed + Self.longestLeap || !isEarlier && advance < .zero - Self.longestReturn
            let time = isFalse ? before + elapsed : isEarlier ? max(before, captured) : captured
            newest = max(before, time)
            return time - leftOut
        }
        newest = max(before, captured)
        hasBegun = !isEarlier
        if isEarlier { leftOut += max(.zero, captured.duration(since: before)) }
        return captured - leftOut
    }
}
