import MediaCore
import Threading

/// One stretch from start to stop: its thread, and what others wait for.
///
/// Waiting is done by suspending, so that no thread of Swift's pool is held up by a slow sink or a slow file.
final class CaptureRun: Sendable {
    private enum Opening {
        case pending
        case done
        case failed(any Error)
    }

    private enum Launch {
        case pending
        case running(WorkerThread)
        /// There was no thread for it.
        case failed
    }

    private struct State {
        var isStopRequested = false
        var opening = Opening.pending
        var isEnded = false
        var launch = Launch.pending
        var startWaiters: [CheckedContinuation<Void, any Error>] = []
        var endWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Monitor(State())

    /// Starts the thread; `body` ends soon after a stop was requested, and its end is the run's.
    ///
    /// - Throws: `ThreadShortage`; the run is then over, but for `finishOpening`.
    func begin(name: String, body: @escaping @Sendable (CaptureRun) -> Void) throws(ThreadShortage) {
        do throws(ThreadShortage) {
            let thread = try WorkerThread(name: name) {
                body(self)
                self.end()
            }
            state.change { $0.launch = .running(thread) }
        } catch {
            state.change { $0.launch = .failed }
            end()
            throw error
        }
    }

    /// Asks the thread to end, and wakes it if it waits for its next frame.
    func requestStop() {
        state.change { $0.isStopRequested = true }
    }

    /// Whether the thread is to end.
    var isStopRequested: Bool { state.withLock { $0.isStopRequested } }

    /// Waits for `deadline`, on the run's own thread.
    ///
    /// - Returns: `false`, at once, when a stop is requested.
    func wait(until deadline: MonotonicInstant) -> Bool {
        state.wait(until: deadline) { $0.isStopRequested ? true : nil } == nil
    }

    /// Tells those who wait for the start how it went; called once, on the run's own thread if it has one.
    func finishOpening(_ failure: (any Error)?) {
        let waiters = state.withLock { state in
            state.opening = failure.map(Opening.failed) ?? .done
            defer { state.startWaiters = [] }
            return state.startWaiters
        }
        for waiter in waiters {
            if let failure { waiter.resume(throwing: failure) } else { waiter.resume() }
        }
    }

    /// Waits until the source delivers; throws what kept it from opening.
    func untilOpened() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let opening = state.withLock { state -> Opening in
                if case .pending = state.opening { state.startWaiters.append(continuation) }
                return state.opening
            }
            switch opening {
            case .pending: break
            case .done: continuation.resume()
            case .failed(let error): continuation.resume(throwing: error)
            }
        }
    }

    /// Waits until the thread is gone.
    func untilEnded() async {
        await withCheckedContinuation { continuation in
            let isEnded = state.withLock { state in
                if !state.isEnded { state.endWaiters.append(continuation) }
                return state.isEnded
            }
            if isEnded { continuation.resume() }
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

    private func end() {
        let waiters = state.withLock { state in
            state.isEnded = true
            defer { state.endWaiters = [] }
            return state.endWaiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
