public import Capture
public import MediaCore

/// A source of coloured noise: the hardest picture for an encoder and a network.
///
/// A requested size is painted exactly, from 1x1 up to the largest that VP8 can code, from the next frame on. A
/// requested rate above the source's own is limited to it. Releasing the last reference stops the source. May be used
/// from any thread.
public final class NoiseSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// Always `.noise`.
    public var kind: VideoSourceKind { .noise }

    /// Creates a source of noise.
    ///
    /// - Parameters:
    ///   - dimensions: The size of the pictures.
    ///   - frameRate: 0.1 to 240 pictures per second; other values are changed to the nearest of these.
    ///   - seed: The same seed makes the same pictures.
    public init(
        dimensions: Dimensions = Dimensions(width: 640, height: 480),
        frameRate: FrameRate = FrameRate(30),
        seed: UInt64 = 0
    ) {
        core = CaptureCore.painted(threadName: "noise", explainShortage: { SyntheticSourceError($0) }) { _ in
            NoisePainter(dimensions: dimensions, frameRate: frameRate, seed: seed)
        }
    }

    deinit {
        core.abandon(waiting: true)
    }
}
