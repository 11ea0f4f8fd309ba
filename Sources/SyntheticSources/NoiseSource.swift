public import Capture
public import MediaCore

/// Coloured noise: the hardest picture there is for an encoder and a network.
///
/// A size that is asked for is painted exactly, from 1x1 up to what VP8 can code, from the next frame on; a rate above the
/// source's own is brought down to it. Releasing the last reference stops the source. May be used from any thread.
public final class NoiseSource: CoreCapturer {
    /// What does the capturing.
    public let core: CaptureCore
    /// Always `.noise`.
    public var kind: VideoSourceKind { .noise }

    /// Noise of `dimensions`, at `frameRate` (0.1 to 240 frames a second; others are brought to the nearest).
    ///
    /// - Parameters:
    ///   - dimensions: The size of the pictures.
    ///   - frameRate: Pictures per second.
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
