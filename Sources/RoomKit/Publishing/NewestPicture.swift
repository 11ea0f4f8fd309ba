import MediaCore
import Threading
import VideoProcessing

/// The newest picture of a track's source, for encodings that must show it again.
///
/// It also knows what the silence of the source means. One that brings pictures now and then brings none while its picture
/// does not change. One that brought them steadily has stalled if it lasts: its picture is old, and must not look as if it
/// were the present one.
final class NewestPicture: Sendable {
    /// So many pictures in a row, none later than this after the one before, are a steady feed.
    private static let steadyCount = 30
    private static let steadyInterval = Duration.milliseconds(500)
    /// How long the silence of a steady feed is taken for a picture that does not change.
    private static let patience = Duration.seconds(3)

    private struct Kept: Sendable {
        var frame: VideoFrame
        var sizing: FrameTransform
        var arrived: MonotonicInstant
        /// How many pictures came steadily up to this one.
        var steadyCount: Int

        /// Whether nothing came for so long after a steady feed that it must have stalled.
        func hasStalled(at now: MonotonicInstant) -> Bool {
            steadyCount >= NewestPicture.steadyCount && now.duration(since: arrived) > NewestPicture.patience
        }
    }

    private let kept = Monitor<Kept?>(nil)
    private let isStillByNature: Bool

    /// Keeps nothing yet; `isStillByNature` says that the pictures stand still between changes, as those of a screen.
    init(isStillByNature: Bool = false) {
        self.isStillByNature = isStillByNature
    }

    /// Keeps a picture in place of the one before; on the source's thread.
    func keep(_ frame: VideoFrame, sizing: FrameTransform, at now: MonotonicInstant) {
        // The former picture is released outside the lock.
        let former = kept.withLock { current -> Kept? in
            let former = current
            let isSteady = former.map { now.duration(since: $0.arrived) <= Self.steadyInterval } ?? false
            let count = isSteady ? (former?.steadyCount ?? 0) + 1 : 1
            current = Kept(frame: frame, sizing: sizing, arrived: now, steadyCount: count)
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Releases the picture.
    func forget() {
        let former = kept.withLock { current -> Kept? in
            defer { current = nil }
            return current
        }
        withExtendedLifetime(former) {}
    }

    /// Whether the picture will be the present one at `time`, if no other one comes.
    func standsStill(at time: MonotonicInstant) -> Bool {
        isStillByNature || kept.withLock { $0?.hasStalled(at: time) != true }
    }

    /// The picture for an encoding of `track` to show again, counted in its tally; `nil` if there is none.
    func `repeat`(for track: EncodingLane.Track, at now: MonotonicInstant) -> FrameSlot.Picture? {
        guard let (frame, sizing) = again(at: now) else { return nil }
        return FrameSlot.Picture(
            frame: frame,
            ticket: track.tally.repeated(),
            sizing: sizing,
            largest: track.chain.largestDimensions(of: frame, sizing: sizing)
        )
    }

    /// The picture as it is shown again at `now`; `nil` if there is none.
    ///
    /// As a repeat, its timestamp is later than the source's by the time that has passed since it arrived, and so earlier
    /// than that of the next picture if both take equally long to arrive. The picture of a feed that has stalled is no
    /// repeat: it keeps its time, so that receivers see how old it is, but for a microsecond, because times increase.
    func again(at now: MonotonicInstant) -> (frame: VideoFrame, sizing: FrameTransform)? {
        kept.withLock { kept in
            guard var shown = kept else { return nil }
            if isStillByNature || !shown.hasStalled(at: now) {
                shown.frame.timestamp += now.duration(since: shown.arrived)
                shown.frame.isRepeat = true
            } else {
                shown.frame.timestamp += .microseconds(1)
                kept = shown
            }
            return (shown.frame, shown.sizing)
        }
    }
}
