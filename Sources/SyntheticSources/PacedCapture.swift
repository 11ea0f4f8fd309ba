import MediaCore
import Threading

/// What the synthetic sources have in common: a thread that has a picture painted whenever one is due.
///
/// The thread holds this object, never the source that the user sees: a source whose last reference goes without a
/// stop ends its thread (`abandon`). The sink is held from start to stop; a sink that in turn holds the source keeps
/// both alive that long, as any started capturer of a track does.
///
/// Depth of the hand-over to the sink: none, it is a call. Drop rule: a slot that is missed by an interval or more is
/// skipped and counted as captured and as `late`.
final class PacedCapture: Sendable {
    private struct State {
        weak var idleSink: (any VideoSink)?
        /// The sink while a run goes on.
        var heldSink: (any VideoSink)?
        var request = VideoFormatRequest()
        /// The run that goes on.
        var run: CaptureRun?
        /// The last run, whose thread may still be about to end.
        var latest: CaptureRun?
        var statistics = CaptureStatistics()
        /// What is being delivered.
        var format: VideoFormat?
        var nextNumber: UInt32 = 0
    }

    /// What the thread needs to know for a frame, taken under the lock at once.
    private struct Turn {
        var number: UInt32
        var request: VideoFormatRequest
        var sink: (any VideoSink)?
    }

    private let state = Monitor(State())
    private let threadName: String
    private let makePainter: @Sendable (CaptureRun) throws -> any FramePainter
    private let whenFinished: @Sendable ((any Error)?) -> Void

    /// - Parameters:
    ///   - threadName: At most 15 bytes.
    ///   - makePainter: Called on the thread, at each start, with the run that tells when it is to end.
    ///   - whenFinished: Called on the thread when the pictures have come to their end or to an error, unless a stop was
    ///     requested before.
    init(
        threadName: String,
        makePainter: @escaping @Sendable (CaptureRun) throws -> any FramePainter,
        whenFinished: @escaping @Sendable ((any Error)?) -> Void = { _ in }
    ) {
        self.threadName = threadName
        self.makePainter = makePainter
        self.whenFinished = whenFinished
    }

    var sink: (any VideoSink)? {
        get { state.withLock { $0.heldSink ?? $0.idleSink } }
        set {
            // The former sink is given up outside of the lock: its end may come back here.
            let former = state.withLock { state in
                let former = state.heldSink
                state.idleSink = newValue
                state.heldSink = state.run == nil ? nil : newValue
                return former
            }
            _ = consume former
        }
    }

    var statistics: CaptureStatistics { state.withLock { $0.statistics } }

    var format: VideoFormat? { state.withLock { $0.format } }

    /// Notes the fields that are given, and passes the request on to the sink.
    func requestOutputFormat(_ request: VideoFormatRequest) {
        let sink = state.withLock { state in
            state.request.dimensions = request.dimensions ?? state.request.dimensions
            state.request.frameRate = request.frameRate ?? state.request.frameRate
            return state.heldSink ?? state.idleSink
        }
        sink?.onVideoFormatRequest(request)
    }

    func start() async throws {
        let run = CaptureRun()
        let (current, former) = state.withLock { state -> (CaptureRun, CaptureRun?) in
            if let current = state.run { return (current, nil) }
            defer { state.latest = run }
            state.run = run
            state.heldSink = state.idleSink
            state.statistics = CaptureStatistics()
            return (run, state.latest)
        }
        if current === run { launch(run, after: former) }
        try await current.untilOpened()
    }

    private func launch(_ run: CaptureRun, after former: CaptureRun?) {
        do throws(ThreadShortage) {
            try run.begin(name: threadName) { [self] run in
                // Two threads must never deliver to one sink at a time.
                former?.join()
                work(run)
            }
        } catch {
            retire(run)
            // The former one is still what the next run must wait for.
            state.withLock { if $0.latest === run { $0.latest = former } }
            run.finishOpening(SyntheticSourceError(error))
        }
    }

    func stop() async {
        let latest = endRun()
        await latest?.untilEnded()
    }

    /// Stops, and waits unless the caller is the source's own thread, inside of the sink.
    func abandon() {
        endRun()?.join()
    }

    /// Asks the present run to end.
    ///
    /// - Returns: The latest run, which may still be about to end.
    private func endRun() -> CaptureRun? {
        let (latest, sink) = state.withLock { state in
            defer {
                state.run = nil
                state.heldSink = nil
            }
            return (state.latest, state.heldSink)
        }
        latest?.requestStop()
        _ = consume sink
        return latest
    }
}

extension PacedCapture {
    /// The thread's life.
    private func work(_ run: CaptureRun) {
        let painter: any FramePainter
        do {
            painter = try makePainter(run)
        } catch {
            // Before the starter learns of it: it may start again at once.
            retire(run)
            run.finishOpening(error)
            return
        }
        // Who became the sink since has not heard of what was asked for before.
        let (sink, request) = state.withLock { ($0.heldSink, $0.request) }
        if request != VideoFormatRequest() { sink?.onVideoFormatRequest(request) }
        run.finishOpening(nil)
        do {
            let isOver = try deliver(from: painter, in: run)
            if retire(run), isOver { whenFinished(nil) }
        } catch {
            if retire(run) { whenFinished(error) }
        }
    }

    /// Delivers frames until a stop is requested or there are no more.
    ///
    /// - Returns: Whether there are no more.
    private func deliver(from painter: any FramePainter, in run: CaptureRun) throws -> Bool {
        let requirements = sink?.sourceRequirements ?? VideoFormatRequest()
        let largest = requirements.dimensions.flatMap { $0.area < painter.dimensions.area ? $0 : nil }
        var schedule = SlotSchedule(rate: painter.frameRate, start: MonotonicClock.now)
        while run.wait(until: schedule.nextDeadline) {
            let now = MonotonicClock.now
            let missed = schedule.takeSlot(at: now)
            guard let turn = takeTurn(in: run, missed: missed) else { return false }
            schedule.change(to: slower(painter.frameRate, turn.request.frameRate ?? requirements.frameRate))
            guard let sink = turn.sink else {
                count(missed: missed, reason: .notWanted, at: now)
                continue
            }
            let assignment = FrameAssignment(
                number: turn.number,
                timestamp: now,
                dimensions: turn.request.dimensions ?? largest,
                frameRate: schedule.rate
            )
            guard let buffer = try painter.paint(assignment) else { return true }
            count(missed: missed, reason: nil, at: now)
            note(VideoFormat(dimensions: buffer.dimensions, frameRate: schedule.rate, pixelFormat: .i420))
            sink.onVideoFrame(VideoFrame(buffer: buffer, timestamp: now))
        }
        return false
    }

    /// The lower of two rates, compared so that no fraction overflows.
    private func slower(_ rate: FrameRate, _ wanted: FrameRate?) -> FrameRate {
        guard let wanted, wanted.framesPerSecond < rate.framesPerSecond else { return rate }
        return wanted
    }

    /// The number and the wishes for the next frame; `nil` if the run has been ended.
    private func takeTurn(in run: CaptureRun, missed: Int) -> Turn? {
        state.withLock { state in
            guard state.run === run else { return nil }
            let number = state.nextNumber &+ UInt32(truncatingIfNeeded: missed)
            state.nextNumber = number &+ 1
            return Turn(number: number, request: state.request, sink: state.heldSink)
        }
    }

    private func count(missed: Int, reason: FrameDropReason?, at now: MonotonicInstant) {
        state.withLock { state in
            state.statistics.framesCaptured += missed
            state.statistics.countCaptured(at: now)
            state.statistics.framesDropped[.late] += missed
            if let reason { state.statistics.framesDropped[reason] += 1 }
        }
    }

    private func note(_ format: VideoFormat) {
        state.withLock { $0.format = format }
    }

    /// Notes that a run has ended by itself.
    ///
    /// - Returns: `false` if it had been asked to end before.
    @discardableResult
    private func retire(_ run: CaptureRun) -> Bool {
        let (isCurrent, sink) = state.withLock { state -> (Bool, (any VideoSink)?) in
            guard state.run === run else { return (false, nil) }
            defer {
                state.run = nil
                state.heldSink = nil
            }
            return (true, state.heldSink)
        }
        _ = consume sink
        return isCurrent
    }
}
