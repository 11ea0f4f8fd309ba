import MediaCore
import Threading

/// A value that is set once, later; any number of tasks may wait for it.
final class Promise<Value: Sendable>: Sendable {
    /// The state of one waiting task.
    private enum Waiter: Sendable {
        /// The task is about to wait.
        case arriving
        case waiting(CheckedContinuation<Value?, Never>)
        /// The task gave up before it began to wait, because its time was over or it was cancelled.
        case abandoned
    }

    private struct State: Sendable {
        var value: Value?
        var waiters: [Int: Waiter] = [:]
        var nextTicket = 0
    }

    private let state = Monitor(State())

    /// The value, if it is set.
    var current: Value? { state.withLock { $0.value } }

    /// Sets the value and resumes the waiting tasks; later values are ignored.
    func fulfill(_ value: Value) {
        let waiters = state.withLock { state -> [Waiter] in
            guard state.value == nil else { return [] }
            state.value = value
            return Array(state.waiters.values)
        }
        for case .waiting(let continuation) in waiters { continuation.resume(returning: value) }
    }

    /// Waits for the value without a time limit; a cancelled task waits as well.
    func value() async -> Value? {
        let ticket = arrive()
        defer { leave(ticket) }
        return await wait(ticket)
    }

    /// Waits for the value for at most `timeout`; `nil` if it was not set in time, or the waiting task is cancelled.
    func value(within timeout: Duration) async -> Value? {
        let ticket = arrive()
        let timer = Task {
            try await Task.sleep(for: timeout)
            abandon(ticket)
        }
        defer {
            timer.cancel()
            leave(ticket)
        }
        return await withTaskCancellationHandler {
            await wait(ticket)
        } onCancel: {
            abandon(ticket)
        }
    }

    private func arrive() -> Int {
        state.withLock { state in
            state.nextTicket += 1
            state.waiters[state.nextTicket] = .arriving
            return state.nextTicket
        }
    }

    private func leave(_ ticket: Int) {
        state.withLock { $0.waiters[ticket] = nil }
    }

    private func wait(_ ticket: Int) async -> Value? {
        await withCheckedContinuation { continuation in
            let (value, isOver) = state.withLock { state -> (Value?, Bool) in
                if let value = state.value { return (value, true) }
                if case .abandoned? = state.waiters[ticket] { return (nil, true) }
                state.waiters[ticket] = .waiting(continuation)
                return (nil, false)
            }
            if isOver { continuation.resume(returning: value) }
        }
    }

    /// Resumes one waiting task without the value.
    private func abandon(_ ticket: Int) {
        let waiter = state.withLock { state -> Waiter? in
            guard state.value == nil, let waiter = state.waiters[ticket] else { return nil }
            state.waiters[ticket] = .abandoned
            return waiter
        }
        if case .waiting(let continuation)? = waiter { continuation.resume(returning: nil) }
    }
}
