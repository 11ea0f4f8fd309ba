import MediaCore
import Threading

/// One stretch from start to stop: its thread, and what others wait for.
///
/// Waiting is done by suspending, so that no thread of Swift's pool is held up by a slow sink or a slow device.
final class CaptureRun: Sendable {
    private enum Launch {
        case pending
        case running(WorkerThread)
        /// There was no thread for it.
        case failed
    }

    private struct State {
        var isStopRequested = false
        var opening: Result<Void, any Error>?
        var hasEnded = false
        var isFinished = false
        var launch = Launch.pending
        var startWaiters: [CheckedContinuation<Void, any Error>] = []
        var endWaiters: [CheckedContinuation<Void, Never>] = []
        var stopActions: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// Starts the thread; `body` ends soon after a stop was requested.
    ///
    /// - Throws: `ThreadShortage`; then the run has no thread and is still to be ended.
    func launch(name: String, body: @escaping @Sendable () -> Void) throws(ThreadShortage) {
        do throws(ThreadShortage) {
            let thread = try WorkerThread(name: name, body: body)
            state.change { $0.launch = .running(thread) }
        } catch {
            state.change { $0.launch = .failed }
            throw error
        }
    }

    // MARK: Stopping

    /// Asks the thread to end, and wakes it if it waits; may be called any number of times, from any thread.
    func requestStop() {
        let actions = state.change { state in
            state.isStopRequested = true
            defer { state.stopActions = [] }
            return state.stopActions
        }
        for action in actions { action() }
    }

    /// Whether the thread is to end.
    var isStopRequested: Bool { state.withLock { $0.isStopRequested } }

    /// Whether the run was asked to end, or has ended by itself.
    var isEnding: Bool { state.withLock { $0.isStopRequested || $0.hasEnded } }

    /// Calls `action` when a stop is requested; at once if it was.
    func whenStopRequested(_ action: @escaping @Sendable () -> Void) {
        let isRequested = state.withLock { state in
            if !state.isStopRequested { state.stopActions.append(action) }
            return state.isStopRequested
        }
        if isRequested { action() }
    }

    /// Waits for `deadline`, on the run's own thread.
    ///
    /// - Returns: `false`, at once, when a stop is requested.
    func wait(until deadline: MonotonicInstant) -> Bool {
        state.wait(until: deadline) { $0.isStopRequested ? true : nil } == nil
    }

    // MARK: Opening

    /// Tells those who wait for the start how it went; only the first call counts.
    func finishOpening(_ result: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            guard state.opening == nil else { return [] as [CheckedContinuation<Void, any Error>] }
            state.opening = result
            defer { state.startWaiters = [] }
            return state.startWaiters
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    /// Whether `finishOpening` was called.
    var hasOpened: Bool { state.withLock { $0.opening != nil } }

    /// Waits until the source delivers; throws what kept it from opening.
    func untilOpened() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let opening = state.withLock { state in
                if state.opening == nil { state.startWaiters.append(continuation) }
                return state.opening
            }
            if let opening { continuation.resume(with: opening) }
        }
    }

    // MARK: End

    /// Notes that the body is over and the device closed: a new run may begin once this one is joined.
    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.stopActions = []
        }
    }

    /// Wakes those who wait for the end; the thread has nothing left to do but to return.
    func finish() {
        let waiters = state.withLock { state in
            defer { state.endWaiters = [] }
            state.isFinished = true
            return state.endWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until the thread is gone; not to be called on it.
    func untilEnded() async {
        await withCheckedContinuation { continuation in
            let isFinished = state.withLock { state in
                if !state.isFinished { state.endWaiters.append(continuation) }
                return state.isFinished
            }
            if isFinished { continuation.resume() }
        }
        join()
    }

    /// Waits for the thread's end without suspending; does nothing on the thread itself, which then ends by itself.
    func join() {
        // A run is known to others a moment before its thread is.
        let launch = state.wait { state -> Launch? in
            if case .pending = state.launch { nil } else { state.launch }
        }
        guard case .running(let thread) = launch, !thread.isCurrent else { return }
        thread.join()
    }
}
