import MediaCore
import Threading

/// One run of capturing from start to stop: its thread and those who wait for it.
///
/// Callers wait by suspending, so that a slow sink or device does not block a thread of Swift's pool.
final class CaptureRun: Sendable {
    private enum Launch {
        case pending
        case running(WorkerThread)
        /// The system had no thread for it.
        case failed
    }

    private struct State {
        var isStopRequested = false
        var opening: Result<Void, any Error>?
        var hasEnded = false
        var isFinished = false
        var launch = Launch.pending
        /// By the number of their start.
        var startWaiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var endWaiters: [CheckedContinuation<Void, Never>] = []
        var stopActions: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// Starts the thread; `body` must end soon after a stop was requested.
    ///
    /// - Throws: `ThreadShortage`. The run then has no thread and must still be ended.
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

    /// Asks the thread to end and wakes it if it waits; may be called repeatedly, from any thread.
    func requestStop() {
        let actions = state.change { state in
            state.isStopRequested = true
            defer { state.stopActions = [] }
            return state.stopActions
        }
        for action in actions { action() }
    }

    /// Whether the thread must end.
    var isStopRequested: Bool { state.withLock { $0.isStopRequested } }

    /// Whether the run was asked to end, or has ended by itself.
    var isEnding: Bool { state.withLock { $0.isStopRequested || $0.hasEnded } }

    /// Whether the source delivers: it has opened, and neither a stop nor its end has come.
    var isCapturing: Bool {
        state.withLock { state in
            guard case .success? = state.opening else { return false }
            return !state.isStopRequested && !state.hasEnded
        }
    }

    /// Calls `action` when a stop is requested, or at once if that has already happened.
    func whenStopRequested(_ action: @escaping @Sendable () -> Void) {
        let isRequested = state.withLock { state in
            if !state.isStopRequested { state.stopActions.append(action) }
            return state.isStopRequested
        }
        if isRequested { action() }
    }

    /// Waits until `deadline`; call it on the run's own thread.
    ///
    /// - Returns: `false`, at once, when a stop is requested.
    func wait(until deadline: MonotonicInstant) -> Bool {
        state.wait(until: deadline) { $0.isStopRequested ? true : nil } == nil
    }

    // MARK: Opening

    /// Gives the result of the start to those who wait for it; only the first call counts.
    func finishOpening(_ result: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            guard state.opening == nil else { return [] as [CheckedContinuation<Void, any Error>] }
            state.opening = result
            defer { state.startWaiters = [:] }
            return Array(state.startWaiters.values)
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    /// Whether `finishOpening` was called.
    var hasOpened: Bool { state.withLock { $0.opening != nil } }

    /// Whether the start has succeeded.
    var isOpen: Bool { state.withLock { if case .success? = $0.opening { true } else { false } } }

    /// Waits until the source delivers or the start `number` is given up.
    ///
    /// `isGivenUp` is asked once `giveUp` would find the waiting start.
    ///
    /// - Throws: The error that prevented the start; `CancellationError` if it was given up.
    func untilOpened(_ number: Int, isGivenUp: () -> Bool) async throws {
        try await withCheckedThrowingContinuation { continuation in
            let opening = state.withLock { state in
                if state.opening == nil { state.startWaiters[number] = continuation }
                return state.opening
            }
            if let opening { continuation.resume(with: opening) } else if isGivenUp() { giveUp([number]) }
        }
    }

    /// Lets these starts fail now, whatever becomes of the run.
    func giveUp(_ numbers: [Int]) {
        let waiters = state.withLock { state in numbers.compactMap { state.startWaiters.removeValue(forKey: $0) } }
        for waiter in waiters { waiter.resume(throwing: CancellationError()) }
    }

    // MARK: End

    /// Marks the body as ended and the device as closed: a new run may begin once this one is joined.
    func end() { state.withLock { $0.hasEnded = true } }

    /// Releases what a stop would have called, which may be the last to hold objects of others; after `end`, without a
    /// lock.
    func releaseStopActions() {
        let actions = state.withLock { state in
            defer { state.stopActions = [] }
            return state.stopActions
        }
        withExtendedLifetime(actions) {}
    }

    /// Wakes those who wait for the end; the thread only has to return after this.
    func finish() {
        let waiters = state.withLock { state in
            defer { state.endWaiters = [] }
            state.isFinished = true
            return state.endWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until the thread has ended; must not be called on that thread.
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
        // The run becomes visible to others a moment before its thread does.
        let launch = state.wait { state -> Launch? in
            if case .pending = state.launch { nil } else { state.launch }
        }
        guard case .running(let thread) = launch, !thread.isCurrent else { return }
        thread.join()
    }
}
