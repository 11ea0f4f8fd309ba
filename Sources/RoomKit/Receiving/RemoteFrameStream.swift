import Capture
public import MediaCore
import Synchronization

/// The pictures of a remote track as an asynchronous sequence: always the newest one.
///
///     for await frame in track.frames { … }
///
/// Each loop acts as one more renderer of the track, without a thread of its own: it gets every decoded picture that is
/// in time, upright, and begins with the picture that stands still, if there is one. A loop that is slower than the
/// track misses pictures; none waits, and memory does not grow.
///
/// The sequence ends when the track is withdrawn, when the session is over, and when the task is cancelled. While the
/// track is not subscribed to, or not enabled, no picture comes.
public struct RemoteFrameStream: AsyncSequence, Sendable {
    /// A picture, as it was decoded.
    public typealias Element = VideoFrame
    /// Reading does not fail.
    public typealias Failure = Never

    fileprivate let renderers: TrackRenderers

    /// Begins to read with the first call of `next`.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: Reader(renderers)) }

    /// Reads the pictures for one loop; for one task at a time.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader

        /// The pictures so far that a newer one replaced before they were read.
        public var framesDropped: Int { reader.slot.framesDropped }

        /// Waits for the next picture; `nil` at the end.
        public mutating func next() async -> VideoFrame? {
            await next(isolation: #isolation)
        }

        /// Waits for the next picture; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> VideoFrame? {
            reader.begin()
            return await reader.slot.next()
        }
    }

    /// The place of one loop among a track's renderers, from its first picture to its end.
    fileprivate final class Reader: Sendable {
        /// It takes slates too, because a received picture is no slate of this machine's.
        let slot = NewestFrameSlot(includesSubstitutes: true)
        private let renderers: TrackRenderers
        private let hasBegun = Atomic(false)

        init(_ renderers: TrackRenderers) {
            self.renderers = renderers
        }

        deinit {
            renderers.remove(slot)
        }

        /// Takes pictures from now on; further calls do nothing.
        func begin() {
            if !hasBegun.exchange(true, ordering: .relaxed) { renderers.add(slot) }
        }
    }
}

extension RemoteVideoTrack {
    /// The pictures of the track, each loop always getting the newest one; see `RemoteFrameStream`.
    public var frames: RemoteFrameStream { RemoteFrameStream(renderers: renderers) }
}
