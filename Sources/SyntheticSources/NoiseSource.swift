public import MediaCore

/// Coloured noise: the hardest picture there is for an encoder and a network.
///
/// Dropping the last reference stops it, too: within the drop, or, when the sink drops it while it takes a frame, right
/// after that frame. May be used from any thread.
public final class NoiseSource: VideoCapturer {
    private let capture: PacedCapture

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
        capture = PacedCapture(threadName: "noise") { _ in
            NoisePainter(dimensions: dimensions, frameRate: frameRate, seed: seed)
        }
    }

    deinit {
        capture.abandon()
    }

    /// Where frames go: held from start to stop, and not kept alive otherwise.
    ///
    /// May be changed at any time, from any thread.
    public var sink: (any VideoSink)? {
        get { capture.sink }
        set { capture.sink = newValue }
    }

    /// Always `false`.
    public var isScreencast: Bool { false }

    /// Asks for another size or rate, in force from the next frame on.
    ///
    /// A size is painted exactly as asked for, from 1 x 1 up to what VP8 can code; a rate beyond the one given to
    /// `init` is brought down to it. The pixel format is of no effect. The request goes on to the sink.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        capture.requestOutputFormat(request)
    }

    /// Starts painting on a thread of its own; starting twice does nothing.
    ///
    /// Frames are due at absolute instants, so that the rate does not drift. A size or rate that the sink requires is
    /// taken up where it is lower than the source's own and no other one was asked for.
    ///
    /// - Throws: `SyntheticSourceError` of code `outOfResources` where the system has no thread left.
    public func startCapture() async throws {
        try await capture.start()
    }

    /// Stops within a frame interval; no frame is delivered after it returns.
    ///
    /// Stopping twice does nothing.
    public func stopCapture() async {
        await capture.stop()
    }

    /// What is being delivered; `nil` before the first picture.
    public var captureFormat: VideoFormat? { capture.format }

    /// What has been captured since the start; a slot that was missed counts as captured and as dropped `late`.
    public var captureStatistics: CaptureStatistics { capture.statistics }
}
