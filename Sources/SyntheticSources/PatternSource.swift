public import Capture
public import MediaCore

/// A test pattern that shows whether pictures arrive, in time and in order.
///
/// Colour bars (75 %, BT.601) with a square moving in front of them, a scrolling gradient, the frame's number in digits,
/// and at the top and bottom edge a barcode of the frame's number and capture time. Numbers go on after a restart.
///
/// A size that is asked for is painted exactly, from 1x1 up to what VP8 can code, from the next frame on; a rate above the
/// source's own is brought down to it. Releasing the last reference stops the source. May be used from any thread.
public final class PatternSource: CoreCapturer {
    /// What does the capturing.
    public let core: CaptureCore
    /// Always `.pattern`.
    public var kind: VideoSourceKind { .pattern }

    /// A pattern of `dimensions`, at `frameRate` (0.1 to 240 frames a second; others are brought to the nearest).
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
