import MediaCore
import Threading
import VideoProcessing

/// The newest picture of a track's source, for encodings that must show it again.
///
/// It also knows what the silence of the source means. One that brings pictures now and then brings none while its picture
/// does not change. One that brought them steadily has stalled if it lasts, and so has one that used to show its picture
/// again by itself: the picture is old, and must not look as if it were the present one.
final class NewestPicture: Sendable {
    /// So many pictures in a row, none later than this after the one before, are a steady feed.
    private static let steadyCount = 30
    private static let steadyInterval = Duration.milliseconds(500)
    /// How long the silence of a steady feed is taken for a picture that does not change.
    private static let patience = Duration.seconds(3)

    private struct Kept: Sendable {
        var picture: ShapedFrame
        var arrived: MonotonicInstant
        /// The time since the picture before; zero for the first one.
        var interval: Duration
        /// How many pictures came steadily up to this one.
        var steadyCount: Int
        /// Whether the source shows its picture again by itself while that does not change.
        var repeatsItself: Bool
        /// Whether the source has said that nothing comes for now.
        var isInterrupted = false

        /// Shows the picture in the shape that the track has now.
        mutating func take(_ shape: PictureShape) {
            if picture.shape != shape { picture = ShapedFrame(picture.source, in: shape) }
        }
    }

    /// How the track shows its pictures, from now on.
    private let presentShape: Monitor<PictureShape>
    private let kept = Monitor<Kept?>(nil)
    private let isStillByNature: Bool

    /// Keeps nothing yet.
    ///
    /// - Parameters:
    ///   - shape: How the track shows its pictures; it may change.
    ///   - isStillByNature: Whether the pictures stand still between changes, as those of a screen.
    init(shape: Monitor<PictureShape>, isStillByNature: Bool = false) {
        presentShape = shape
        self.isStillByNature = isStillByNature
    }

    /// How the track shows its pictures.
    var shape: PictureShape { presentShape.withLock { $0 } }

    /// The picture in the shape that the track has now; `nil` if there is none.
    var present: ShapedFrame? {
        let shape = shape
        return kept.withLock { kept in
            kept?.take(shape)
            return kept?.picture
        }
    }

    /// Keeps a picture in place of the one before; on the source's thread.
    func keep(_ picture: ShapedFrame, at now: MonotonicInstant) {
        // The former picture is released outside the lock.
        let former = kept.withLock { current -> Kept? in
            let former = current
            let interval = former.map { now.duration(since: $0.arrived) } ?? .zero
            let isSteady = former != nil && interval <= Self.steadyInterval
            current = Kept(
                picture: picture,
                arrived: now,
                interval: interval,
                steadyCount: isSteady ? (former?.steadyCount ?? 0) + 1 : 1,
                repeatsItself: picture.source.isRepeat || former?.repeatsItself == true
            )
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

    /// Notes since when nothing comes, as the source has said; `nil` if it goes on, even if its picture is the one of before.
    ///
    /// A picture that came later is one for the time of the interruption.
    func interrupt(since time: MonotonicInstant?) {
        kept.withLock { kept in
            guard let arrived = kept?.arrived else { return }
            kept?.isInterrupted = time.map { arrived <= $0 } ?? false
        }
    }

    /// Whether the picture will be the present one at `time`, if no other one comes.
    func standsStill(at time: MonotonicInstant) -> Bool {
        kept.withLock { kept in kept.map { !hasStalled($0, at: time) } ?? true }
    }

    /// Whether the picture is old by `time`: so much time has passed that the source must have stalled, or it said so.
    private func hasStalled(_ kept: Kept, at time: MonotonicInstant) -> Bool {
        let silence = time.duration(since: kept.arrived)
        if kept.isInterrupted { return true }
        if kept.repeatsItself { return silence > max(Self.patience, kept.interval * 3) }
        return !isStillByNature && kept.steadyCount >= Self.steadyCount && silence > Self.patience
    }

    /// The picture for an encoding of `track` to show again, counted in its tally; `nil` if there is none.
    func `repeat`(for track: EncodingLane.Track, at now: MonotonicInstant) -> FrameSlot.Picture? {
        guard let picture = again(at: now) else { return nil }
        let (frame, sizing) = (picture.frame, picture.sizing)
        let largest = track.chain.largestDimensions(of: frame, sizing: sizing)
        return FrameSlot.Picture(picture, ticket: track.tally.repeated(), largest: largest)
    }

    /// The picture as it is shown again at `now`; `nil` if there is none.
    ///
    /// As a repeat, its timestamp is later than the source's by the time that has passed since it arrived, and so earlier
    /// than that of the next picture if both take equally long to arrive. The picture of a feed that has stalled is no
    /// repeat: it keeps its time, so that receivers see how old it is, but for a microsecond, because times increase.
    func again(at now: MonotonicInstant) -> ShapedFrame? {
        let shape = shape
        return kept.withLock { kept in
            kept?.take(shape)
            guard let current = kept else { return nil }
            var shown = current.picture
            if hasStalled(current, at: now) {
                shown.source.timestamp += .microseconds(1)
                shown.frame.timestamp += .microseconds(1)
                shown.frame.isRepeat = false
                kept?.picture = shown
            } else {
                shown.frame.timestamp += now.duration(since: current.arrived)
                shown.frame.isRepeat = true
            }
            return shown
        }
    }
}
