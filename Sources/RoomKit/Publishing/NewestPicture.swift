import MediaCore
import Threading
import VideoProcessing

/// The newest picture of a track's source, for encodings that must show it again.
final class NewestPicture: Sendable {
    private struct Kept: Sendable {
        var frame: VideoFrame
        var sizing: FrameTransform
        var arrived: MonotonicInstant
    }

    private let kept = Monitor<Kept?>(nil)

    /// Keeps a picture in place of the one before; on the source's thread.
    func keep(_ frame: VideoFrame, sizing: FrameTransform, at now: MonotonicInstant) {
        let kept = Kept(frame: frame, sizing: sizing, arrived: now)
        // The former picture is released outside the lock.
        let former = self.kept.withLock { current -> Kept? in
            defer { current = kept }
            return current
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

    /// The picture as a repeat for an encoding of `track`, counted in its tally; `nil` if there is none.
    ///
    /// Its timestamp is later than the source's by the time that has passed since it arrived, and so earlier than that
    /// of the next picture if both take equally long to arrive.
    func `repeat`(for track: EncodingLane.Track, at now: MonotonicInstant) -> FrameSlot.Picture? {
        guard var kept = kept.withLock({ $0 }) else { return nil }
        kept.frame.timestamp = kept.frame.timestamp + now.duration(since: kept.arrived)
        kept.frame.isRepeat = true
        return FrameSlot.Picture(
            frame: kept.frame,
            ticket: track.tally.repeated(),
            sizing: kept.sizing,
            largest: track.chain.largestDimensions(of: kept.frame, sizing: kept.sizing)
        )
    }
}
