public import MediaCore

/// A renderer that is a closure.
public final class ClosureRenderer: VideoRenderer {
    private let body: @Sendable (VideoFrame) throws -> Void

    /// Creates a renderer that calls `body` with each picture, as `VideoRenderer.render(_:)` is called.
    public init(_ body: @escaping @Sendable (VideoFrame) throws -> Void) {
        self.body = body
    }

    /// Calls the closure.
    ///
    /// - Throws: What the closure throws; the track counts it and goes on with the next picture.
    public func render(_ frame: VideoFrame) throws { try body(frame) }
}

/// A renderer that was added as a closure; it is removed when this object is released, or by `remove()`.
///
/// It does not keep the track alive.
public final class RendererRegistration: Sendable {
    private let readStatistics: @Sendable () -> RendererStatistics?
    private let takeOff: @Sendable () -> RendererStatistics?

    fileprivate init(
        statistics: @escaping @Sendable () -> RendererStatistics?,
        remove: @escaping @Sendable () -> RendererStatistics?
    ) {
        (readStatistics, takeOff) = (statistics, remove)
    }

    deinit {
        _ = takeOff()
    }

    /// Counts of the pictures for the closure; `nil` once it is removed, or the track is gone.
    public var statistics: RendererStatistics? { readStatistics() }

    /// Stops passing pictures to the closure; a call that has already begun may still finish, and is not waited for.
    ///
    /// - Returns: The counts, without a call that still runs; `nil` if it was removed before, or the track is gone.
    @discardableResult
    public func remove() -> RendererStatistics? { takeOff() }
}

extension RemoteVideoTrack {
    /// Passes every decoded picture that is in time to `body`, until the result is released.
    ///
    ///     let registration = track.addRenderer { frame in … }
    ///
    /// It is called as a renderer is that was added by `addRenderer(_:on:)`: on `executor`, or else on a thread of its
    /// own, with the newest picture each time.
    ///
    /// - Returns: Keeps the closure added.
    public func addRenderer(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @Sendable (VideoFrame) throws -> Void
    ) -> RendererRegistration {
        let renderer = ClosureRenderer(body)
        addRenderer(renderer, on: executor)
        return RendererRegistration { [weak self] in
            self?.rendererStatistics(of: renderer)
        } remove: { [weak self] in
            self?.removeRenderer(renderer)
        }
    }
}

extension LocalVideoTrack {
    /// Passes every picture that the source delivers to `body` as a preview, until the result is released.
    ///
    ///     let registration = track.addRenderer { frame in … }
    ///
    /// It is called as a renderer is that was added by `addRenderer(_:on:)`: on `executor`, or else on a thread of its
    /// own, with the newest picture each time. As an asynchronous sequence, these pictures are `source.frames`.
    ///
    /// - Returns: Keeps the closure added.
    public func addRenderer(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @Sendable (VideoFrame) throws -> Void
    ) -> RendererRegistration {
        let renderer = ClosureRenderer(body)
        addRenderer(renderer, on: executor)
        return RendererRegistration { [weak self] in
            self?.rendererStatistics(of: renderer)
        } remove: { [weak self] in
            self?.removeRenderer(renderer)
        }
    }
}
