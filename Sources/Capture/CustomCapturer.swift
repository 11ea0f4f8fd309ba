public import MediaCore
import Threading

/// A capturer with a device, a thread or a timer of its own; `CapturerSource` makes a source of it.
///
/// The source makes all calls on one thread, in this order: `initCapture`, `startCapture`, `stopCapture`,
/// `releaseCapture`. Each start of the source begins anew. For pictures that are computed, `PacedSource` takes less
/// code; frames that come from elsewhere are simply written to a `PushedSource`.
public protocol CustomCapturer: AnyObject, Sendable {
    /// The kind of content in the frames; `nil`, the default, is `.detail` for a screen and `.none` for the rest.
    var contentHint: VideoContentHint? { get }

    /// The format that is captured, read after `startCapture`; `nil`, the default, if it is not known.
    var captureSettings: VideoFormat? { get }

    /// Opens the device.
    ///
    /// - Throws: An error, which the start of the source throws.
    func initCapture() throws

    /// Begins to pass frames to `consumer`, from any thread.
    ///
    /// - Throws: An error, which the start of the source throws after `releaseCapture`.
    func startCapture(_ consumer: VideoCaptureConsumer) throws

    /// Ends capturing; later frames are ignored.
    func stopCapture()

    /// Closes the device; called after `initCapture` has succeeded, whatever followed.
    func releaseCapture()
}

extension CustomCapturer {
    /// What the source's kind says.
    public var contentHint: VideoContentHint? { nil }

    /// An unknown format.
    public var captureSettings: VideoFormat? { nil }
}

/// Takes the frames of a custom capturer, from its start to its stop.
public final class VideoCaptureConsumer: Sendable {
    private let entrance: FrameEntrance
    /// `nil` after the run, so that a capturer that keeps its consumer does not keep the source's core.
    private let context: Monitor<CaptureContext?>
    private let end = Monitor<Result<Void, any Error>?>(nil)

    fileprivate init(_ context: CaptureContext) {
        self.context = Monitor(context)
        entrance = FrameEntrance(to: context.sinks, measuresDelay: true)
    }

    /// Passes a frame on to the sinks; returns `false` if it was dropped, and never waits.
    ///
    /// A frame is dropped if no sink wants it, if a sink is still taking another thread's frame, if it is older than
    /// the one before, or once the capturer is stopped. The time from its timestamp until now counts as its capture
    /// delay; a timestamp in the future or more than ten seconds ago counts as now.
    @discardableResult
    public func consume(_ frame: VideoFrame) -> Bool { entrance.take(frame) }

    /// The format that the sinks ask for; fields that are `nil` mean "don't care".
    public var wantedFormat: VideoFormatRequest { running?.wanted ?? VideoFormatRequest() }

    /// Reports that no frames come for a while because of `error`, and that the capturer goes on by itself.
    ///
    /// The first call since the last `interruptionEnded()` counts in `CaptureStatistics.interruptions`.
    public func interrupted(by error: any Error) { running?.interrupted(by: error) }

    /// Reports that frames come again.
    public func interruptionEnded() { running?.interruptionEnded() }

    /// Reports that no frame has come since the start, because of `error`, and that the capturer goes on.
    public func noFramesCaptured(because error: any Error) { running?.noFramesCaptured(because: error) }

    /// Ends the source because of `error`, which becomes `VideoSource.failure`; only the first end counts.
    public func fail(_ error: any Error) { finish(.failure(error)) }

    /// Ends the source after its last frame; only the first end counts.
    public func finish() { finish(.success(())) }

    private func finish(_ result: Result<Void, any Error>) {
        end.change { $0 = $0 ?? result }
    }

    private var running: CaptureContext? { context.withLock { $0 } }

    fileprivate func close() {
        entrance.close()
        context.withLock { $0 = nil }
    }

    /// Waits for a stop of the source, or for the end that the capturer reports.
    fileprivate func untilEnded() throws {
        running?.whenStopRequested { [self] in finish() }
        try end.wait { $0 }?.get()
    }
}

/// A source of the frames of a `CustomCapturer`: started for its first user and stopped after its last.
///
/// Releasing the last reference stops it; the capturer's calls may then come a moment later. May be used from any
/// thread.
public final class CapturerSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// What the source shows.
    public let kind: VideoSourceKind
    /// The kind of content in the frames, as the capturer says.
    public let contentHint: VideoContentHint
    /// Whether the frames show a screen.
    public var isScreencast: Bool { kind == .screen }

    /// Creates a source of the frames of `capturer`, which it keeps.
    public init(_ capturer: any CustomCapturer, kind: VideoSourceKind = .other) {
        self.kind = kind
        contentHint = capturer.contentHint ?? kind.contentHint
        core = CaptureCore(threadName: "capturer", explainShortage: { CaptureError($0) }) { context in
            try capturer.initCapture()
            defer { capturer.releaseCapture() }
            let consumer = VideoCaptureConsumer(context)
            // Whatever comes from here on, no frame is taken after the stop.
            defer { consumer.close() }
            try capturer.startCapture(consumer)
            defer { capturer.stopCapture() }
            context.opened(capturer.captureSettings)
            try consumer.untilEnded()
        }
    }

    deinit {
        // The capturer's thread may be the one that releases the source, in a sink. Waiting for it would never end.
        core.abandon(waiting: false)
    }
}
