public import MediaCore

/// The frames of a source as an asynchronous sequence: always the newest one.
///
///     for await frame in camera.frames { … }
///
/// Each loop is a user of the source: the source starts with the first user and stops after the last. Several loops,
/// and published tracks beside them, share each frame, which is converted once. A loop that is slower than the source
/// misses frames; none waits, and memory does not grow.
///
/// While a camera is gone there are no frames; its slates (`VideoFrame.isSubstitute`) are left out, unless
/// `includingSubstitutes()` is read. A screen that stands still repeats its last picture (`VideoFrame.isRepeat`).
///
/// The sequence ends with the source, or when the task is cancelled. It also ends if the source cannot start, as when a
/// camera is busy or absent, or fails later: after the loop, `VideoSource.failure` says why. `throwing()` gives a
/// sequence that throws this error. When a loop ends, its use of the source ends a moment later.
public struct FrameStream: AsyncSequence, Sendable {
    /// A frame, as it was captured.
    public typealias Element = VideoFrame
    /// Reading does not fail.
    public typealias Failure = Never

    fileprivate let source: any VideoSource
    fileprivate let frameRate: FrameRate?
    fileprivate var includesSubstitutes = false

    /// The same frames, and those that the source delivers in place of pictures that do not come.
    public func includingSubstitutes() -> FrameStream {
        var stream = self
        stream.includesSubstitutes = true
        return stream
    }

    /// The same frames, with an error at the end if the source could not start, or has failed.
    ///
    ///     for try await frame in camera.frames.throwing() { … }
    public func throwing() -> ThrowingFrameStream { ThrowingFrameStream(frames: self) }

    /// Begins to read: the source is started by the first call of `next`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: FrameReader(source, frameRate: frameRate, includesSubstitutes: includesSubstitutes))
    }

    /// Reads the frames for one loop; for one task at a time.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: FrameReader

        /// The frames so far that a newer one replaced before they were read.
        public var framesDropped: Int { reader.framesDropped }

        /// Waits for the next frame; `nil` at the end.
        public mutating func next() async -> VideoFrame? {
            await next(isolation: #isolation)
        }

        /// Waits for the next frame; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> VideoFrame? {
            do {
                try await reader.begin()
            } catch {
                return nil
            }
            return await reader.next()
        }
    }
}

/// The frames of a source as `FrameStream` gives them, with an error if the source cannot start, or fails.
///
/// The loop ends without an error with the source's last frame, and when the task is cancelled.
public struct ThrowingFrameStream: AsyncSequence, Sendable {
    /// A frame, as it was captured.
    public typealias Element = VideoFrame
    /// The error of the source, such as a `CameraError`.
    public typealias Failure = any Error

    fileprivate let frames: FrameStream

    /// Begins to read: the source is started by the first call of `next`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: frames.makeAsyncIterator().reader, source: frames.source)
    }

    /// Reads the frames for one loop; for one task at a time.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: FrameReader
        fileprivate let source: any VideoSource

        /// The frames so far that a newer one replaced before they were read.
        public var framesDropped: Int { reader.framesDropped }

        /// Waits for the next frame; `nil` at the end.
        ///
        /// - Throws: The error of the source's start, or the one that the source has failed with.
        public mutating func next() async throws -> VideoFrame? {
            try await next(isolation: #isolation)
        }

        /// Waits for the next frame; `nil` at the end.
        ///
        /// - Throws: The error of the source's start, or the one that the source has failed with.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> VideoFrame? {
            do {
                try await reader.begin()
            } catch is CancellationError where Task.isCancelled {
                return nil
            }
            if let frame = await reader.next() { return frame }
            if !Task.isCancelled, let failure = source.failure { throw failure }
            return nil
        }
    }
}

extension VideoSource {
    /// The frames of the source, each loop always getting the newest one; see `FrameStream`.
    ///
    /// A loop ends without a word if the source cannot start, as when a camera is busy, or fails: look at `failure`
    /// then, or read `frames.throwing()`.
    public var frames: FrameStream { FrameStream(source: self, frameRate: nil) }

    /// The frames of the source, at most `frameRate` of them a second; see `FrameStream`.
    public func frames(atMost frameRate: FrameRate) -> FrameStream { FrameStream(source: self, frameRate: frameRate) }
}
