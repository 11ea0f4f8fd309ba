public import Capture
public import MediaCore

/// A test pattern that shows whether pictures arrive, in time and in order.
///
/// It has colour bars (75 %, BT.601) with a square that moves in front of them, a scrolling gradient, and the frame's
/// number in digits. A barcode at the top and bottom edge holds the frame's number and capture time. Frame numbers
/// continue after a restart.
///
/// A requested size is painted exactly, from 1x1 up to the largest that VP8 can code, from the next frame on. A
/// requested rate above the source's own is limited to it. Releasing the last reference stops the source. May be used
/// from any thread.
public final class PatternSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// Always `.pattern`.
    public var kind: VideoSourceKind { .pattern }

    /// Creates a pattern of `dimensions` at `frameRate`: 0.1 to 240 frames a second; others are changed to the nearest.
    public init(
        dimensions: Dimensions = Dimensions(width: 640, height: 480),
        frameRate: FrameRate = FrameRate(30)
    ) {
        core = CaptureCore.painted(threadName: "pattern", explainShortage: { SyntheticSourceError($0) }) { _ in
            PatternPainter(dimensions: dimensions, frameRate: frameRate)
        }
    }

    deinit {
        core.abandon(waiting: true)
    }
}
