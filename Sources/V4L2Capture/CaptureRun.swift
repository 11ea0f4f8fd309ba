import MediaCore
import Synchronization
import Threading

/// A value that comes once; many may wait for it.
final class Promise<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiting: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Monitor(State())

    /// Gives the value; a second one is ignored.
    func resolve(_ value: Value) {
        let waiting = state.withLock { state -> [CheckedContinuation<Value, Never>] in
            guard state.value == nil else { return [] }
            state.value = value
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    /// The value, once it is there.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state -> Value? in
                    if state.value == nil { state.waiting.append(continuation) }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}

/// One time of capturing, from start to stop or failure, on a thread of its own.
///
/// The thread holds the run and the state, and not the source: a source that is forgotten stops its run.
final class CaptureRun: Sendable {
    /// What a run needs to begin.
    struct Plan: Sendable {
        var path: String
        var system: any CameraSystem
        var patience: Duration
        var makeConverter: @Sendable () -> any CapturedFrameConverter
    }

    private let plan: Plan
    private let stop: StopSignal
    private let hasEnded = Atomic(false)
    private let started = Promise<Result<VideoFormat, CameraError>>()
    /// Whether there is a thread to be joined.
    private let finished = Promise<Bool>()
    private let thread = Monitor<WorkerThread?>(nil)

    /// A run that is yet to be launched.
    init(_ plan: Plan) throws(CameraError) {
        do {
            stop = try StopSignal()
        } catch {
            throw CameraError(error, device: plan.path, isOpen: false) { nil }
        }
        self.plan = plan
    }

    /// Whether the run was stopped, or has ended by itself.
    var isEnding: Bool { stop.isRequested || hasEnded.load(ordering: .acquiring) }

    /// Starts the thread; once only.
    ///
    /// Where there is none, the start fails and the run is over.
    func launch(_ state: CaptureState) {
        do throws(ThreadShortage) {
            let worker = try WorkerThread(name: "camera") { self.body(state) }
            thread.change { $0 = worker }
        } catch {
            hasEnded.store(true, ordering: .releasing)
            state.ended(failure: nil)
            let failure = CameraError(
                .outOfResources,
                device: plan.path,
                attempt: "open",
                status: error.status,
                explanation: "\(error)"
            )
            started.resolve(.failure(failure))
            finished.resolve(false)
        }
    }

    /// Asks the thread to end; may be called any number of times, from any thread.
    func requestStop() { stop.request() }

    /// Waits for the camera to stream.
    func waitForStart() async throws(CameraError) {
        _ = try await started.value.get()
    }

    /// Waits for the thread's end; not to be called on it.
    func waitForEnd() async {
        guard await finished.value else { return }
        // The thread has nothing left to do but to return.
        thread.wait { $0 }?.join()
    }

    private func body(_ state: CaptureState) {
        var startFailure: CameraError?
        var failure: CameraError?
        do {
            let request = state.request
            let session = try CaptureSession(
                path: plan.path,
                system: plan.system,
                request: request,
                converter: plan.makeConverter()
            )
            let format = session.negotiated.videoFormat
            state.began(format)
            started.resolve(.success(format))
            do {
                try capture(session, state, wished: request)
            } catch {
                failure = error
            }
        } catch {
            startFailure = error
        }
        // In this order: whoever hears of the end finds the device closed and may start again.
        hasEnded.store(true, ordering: .releasing)
        state.ended(failure: failure)
        if let startFailure { started.resolve(.failure(startFailure)) }
        finished.resolve(true)
    }

    private func capture(
        _ session: CaptureSession,
        _ state: CaptureState,
        wished: VideoFormatRequest
    ) throws(CameraError) {
        var statistics = CaptureStatistics()
        defer { state.publish(statistics) }
        var pace = FramePace(wishedRate: wished.frameRate)
        var deadline = MonotonicClock.now + plan.patience
        while !stop.isRequested {
            let events = session.wait(until: deadline, or: stop)
            if stop.isRequested { return }
            guard !events.isEmpty else { throw noFrames }
            let capturedBefore = statistics.framesCaptured
            let newest = try session.takeNewest(counting: &statistics)
            let now = MonotonicClock.now
            if statistics.framesCaptured > capturedBefore {
                deadline = now + plan.patience
            } else {
                if let reason = session.reasonForSilence(events) { throw reason }
                if now >= deadline { throw noFrames }
            }
            guard let newest else {
                state.publish(statistics)
                continue
            }
            // A driver may stamp a picture with the time at which it will be shown (vivid: up to a frame ahead).
            let timestamp = min(newest.timestamp ?? now, now)
            session.requestedDimensions = state.delivery.request.dimensions ?? wished.dimensions
            try deliver(newest, at: timestamp, of: session, to: state, &pace, &statistics)
        }
    }

    private func deliver(
        _ newest: FilledBuffer,
        at timestamp: MonotonicInstant,
        of session: CaptureSession,
        to state: CaptureState,
        _ pace: inout FramePace,
        _ statistics: inout CaptureStatistics
    ) throws(CameraError) {
        let (sink, request) = state.delivery
        guard let sink, pace.admits(timestamp, limit: request.frameRate) else {
            statistics.framesDropped[.notWanted] += 1
            state.publish(statistics)
            return try session.giveBack(newest)
        }
        let frame: VideoFrame
        do {
            frame = try session.frame(of: newest, at: timestamp)
        } catch {
            statistics.framesDropped[.corrupt] += 1
            state.publish(statistics)
            return try session.giveBack(newest)
        }
        // Whatever becomes of the buffer, the picture is there and is delivered.
        let failure = Result<Void, CameraError> { () throws(CameraError) in try session.giveBack(newest) }
        state.publish(statistics)
        sink.onVideoFrame(frame)
        try failure.get()
    }

    private var noFrames: CameraError {
        CameraError(
            .noFrames,
            device: plan.path,
            attempt: "read from",
            explanation: "the camera streams, but no picture came for \(plan.patience.seconds) s; "
                + "plug it in again, or try another port, cable or pixel format"
        )
    }
}
