/// Counts of the pictures that a track handed to one of its renderers.
///
/// Pictures handed over = rendered + dropped + failed, plus the one that waits and the one that is being rendered.
public struct RendererStatistics: Sendable {
    /// Calls of `render` that returned.
    public var framesRendered = 0
    /// Pictures that a newer one replaced while the renderer was busy, and the one that waited when it was removed.
    public var framesDropped = 0
    /// Calls of `render` that threw, and pictures for which the system had no thread.
    public var framesFailed = 0
    /// The error of the newest failure; `nil` if nothing has failed.
    public var lastError: (any Error)?

    /// Creates counts of zero.
    public init() {}
}
