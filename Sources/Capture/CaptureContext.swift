package import MediaCore
import Threading

/// Passed to a source's thread: tells it when to end, and takes its frames.
package struct CaptureContext: Sendable {
    private let core: CaptureCore
    private let run: CaptureRun

    init(core: CaptureCore, run: CaptureRun) {
        self.core = core
        self.run = run
    }

    /// Whether the thread must end.
    package var isStopRequested: Bool { run.isStopRequested }

    /// Waits until `deadline`; returns `false` at once when a stop is requested.
    package func wait(until deadline: MonotonicInstant) -> Bool { run.wait(until: deadline) }

    /// Waits until the next slot of `schedule` is due, at the rate that `rate` gives meanwhile.
    ///
    /// Another rate counts within 100 ms: one user of a source that wants few pictures must not make another one wait
    /// for the next of them.
    ///
    /// - Returns: `false`, at once, when a stop is requested.
    package func wait(for schedule: inout SlotSchedule, at rate: () -> FrameRate) -> Bool {
        var now = MonotonicClock.now
        repeat {
            schedule.change(to: rate(), at: now)
            guard wait(until: min(schedule.nextDeadline, now + .milliseconds(100))) else { return false }
            now = MonotonicClock.now
        } while now < schedule.nextDeadline
        return true
    }

    /// Calls `action`, on any thread, when a stop is requested; for a thread that is blocked on a device.
    package func whenStopRequested(_ action: @escaping @Sendable () -> Void) { run.whenStopRequested(action) }

    /// The format to capture: the request to the source, completed with its sinks' requirements.
    package var wanted: VideoFormatRequest { core.sinks.wanted }

    /// The format to capture if `request` takes the place of the present one; `nil` stands for the present one.
    package func wanted(for request: VideoFormatRequest?) -> VideoFormatRequest { core.sinks.wanted(for: request) }

    /// The sinks' requirements alone.
    package var required: VideoFormatRequest { core.sinks.wanted(for: VideoFormatRequest()) }

    /// The request to the source, without its sinks' requirements.
    package var request: VideoFormatRequest { core.sinks.request }

    /// The request that the source was made with or a device was selected with, whatever was requested since.
    package var openingRequest: VideoFormatRequest { core.sinks.openingRequest }

    /// Replaces the request to the source, for a caller that changes the device; a reset goes back further.
    ///
    /// `previous` is the replacement of a change before, of which nothing came: where no request was made since, taking
    /// this one back takes back both.
    package func replaceRequest(
        _ request: VideoFormatRequest,
        after previous: ReplacedRequest?
    ) -> ReplacedRequest {
        core.replaceRequest(request, after: previous)
    }

    /// Restores the request before a replacement, unless one was made since.
    package func takeBack(_ replaced: ReplacedRequest) { core.takeBack(replaced) }

    /// Limits the rate for sinks that no rate was requested for; `nil` lifts the limit.
    package func limitRate(to rate: FrameRate?) { core.sinks.limitRate(to: rate) }

    /// Limits the size and the rate for sinks where none is requested, for a source that delivers all of its `format`.
    ///
    /// The sinks are asked to scale. Call it before a frame.
    ///
    /// - Returns: The limits that are in force, once a sink gets less because of them; then not again until there
    ///   were none.
    package func limitOutput(of format: VideoFormat) -> VideoFormatRequest? {
        let former = core.sinks.limitOutput(to: DefaultOutput.limit(format, wanted: required))
        let limits = DefaultOutput.limit(format, wanted: wanted)
        return takeLimitNotice(of: limits, areNew: former == VideoFormatRequest()) ? limits : nil
    }

    /// Finds out whether it must be told that `limits` are in force, which a sink with a size and rate of its own does
    /// not notice.
    ///
    /// - Parameters:
    ///   - limits: The limits in force.
    ///   - areNew: Whether they have to be told although others were.
    /// - Returns: Whether to tell.
    package func takeLimitNotice(of limits: VideoFormatRequest, areNew: Bool) -> Bool {
        core.sinks.takeLimitNotice(of: limits, areNew: areNew)
    }

    /// The highest rate that any sink accepts; `nil` for any rate.
    package var highestRate: FrameRate? { core.sinks.highestRate }

    /// Whether no sink would get a frame.
    package var hasNoSink: Bool { core.sinks.isEmpty }

    /// Ends the start successfully: frames may follow from now on, in `format` if it is known.
    package func opened(_ format: VideoFormat?) {
        if let format { core.note(format) }
        run.finishOpening(.success(()))
    }

    /// Records the format that is being captured.
    package func note(_ format: VideoFormat) { core.note(format) }

    /// Counts captured frames of which none is delivered.
    package func count(_ captured: CaptureStatistics) { core.sinks.count(captured) }

    /// Counts captured frames, and says whether a sink gets the newest of them.
    ///
    /// - Parameters:
    ///   - captured: The frames captured since the last call.
    ///   - timestamp: When the newest frame was captured.
    ///   - pacedRate: The rate at which the source makes its frames on purpose; `nil` for a device.
    /// - Returns: Whether a sink gets the frame. If so, call `deliver` or `drop` next. If not, it counts as not wanted.
    package func admit(
        _ captured: CaptureStatistics,
        newestAt timestamp: MonotonicInstant,
        pacedRate: FrameRate? = nil
    ) -> Bool {
        core.sinks.admit(captured, newestAt: timestamp, pacedRate: pacedRate)
    }

    /// The sinks that get the frames.
    package var sinks: VideoSinks { core.sinks }

    /// Delivers the admitted frame.
    package func deliver(_ frame: VideoFrame) { core.sinks.handOver(frame) }

    /// Counts the admitted frame as dropped.
    package func drop(_ reason: FrameDropReason) { core.sinks.giveUp(reason) }

    /// Reports that no frames come for a while because of `error`, and that the source goes on by itself.
    ///
    /// The first report after the start, or after the end of an interruption, counts as a new one. Further reports
    /// during the same interruption state another cause.
    package func interrupted(by error: any Error) { core.interrupted(by: error) }

    /// Reports that frames come again.
    package func interruptionEnded() { core.interruptionEnded() }

    /// Reports that no frame has come since the start, because of `error`.
    package func noFramesCaptured(because error: any Error) { core.send(.noFramesCaptured(error)) }

    /// Reports something that the user should know; the source goes on.
    package func warn(_ error: any Error) { core.send(.warning(error)) }
}

/// A source that captures through a `CaptureCore`: cameras, screens and all painted sources.
///
/// To applications each is a `VideoCapturer`. The extension's members are public because they meet its requirements.
package protocol CoreCapturer: VideoCapturer {
    /// The core that captures for this source.
    var core: CaptureCore { get }
}

extension CoreCapturer {
    /// The sinks of the source.
    public var sinks: VideoSinks { core.sinks }

    /// Asks for another output format; see `VideoSource`.
    public func requestOutputFormat(_ request: VideoFormatRequest) { core.requestOutputFormat(request) }

    /// Removes the requests for an output format; see `VideoSource`.
    public func resetOutputFormat() { core.resetOutputFormat() }

    /// Starts capturing for the application; see `VideoCapturer`.
    public func startCapture() async throws { try await core.start() }

    /// Ends the application's use; see `VideoCapturer`.
    public func stopCapture() async { await core.stop() }

    /// Starts capturing for a sink; see `VideoCapturer`.
    public func startCapture(for sink: any VideoSink) async throws { try await core.start(for: sink) }

    /// Ends a sink's use; see `VideoCapturer`.
    public func stopCapture(for sink: any VideoSink) async { await core.stop(for: sink) }

    /// Whether frames can arrive; see `VideoCapturer`.
    public var isCapturing: Bool { core.isCapturing }

    /// The format that is being captured; it keeps its value after the end, until the next start.
    public var captureFormat: VideoFormat? { core.format }

    /// Why capturing ended by itself; see `VideoSource`.
    public var failure: (any Error)? { core.failure }

    /// A stream of the source's events from now on; see `VideoSource`.
    public func captureEvents() -> AsyncStream<CaptureEvent> { core.events() }
}
