import MediaCore
import Threading

/// A value that comes later, once; any number of tasks may wait for it.
final class Promise<Value: Sendable>: Sendable {
    /// How far somebody who waits has come.
    private enum Waiter: Sendable {
        /// About to wait.
        case arriving
        case waiting(CheckedContinuation<Value?, Never>)
        /// Given up before the waiting began: the time can be over, or the task cancelled, by then.
        case abandoned
    }

    private struct State: Sendable {
        var value: Value?
        var waiters: [Int: Waiter] = [:]
        var nextTicket = 0
    }

    private let state = Monitor(State())

    /// The value, if it has come.
    var current: Value? { state.withLock { $0.value } }

    /// Gives the value; later ones are passed over.
    func fulfill(_ value: Value) {
        let waiters = state.withLock { state -> [Waiter] in
            guard state.value == nil else { return [] }
            state.value = value
            return Array(state.waiters.values)
        }
        for case .waiting(let continuation) in waiters { continuation.resume(returning: value) }
    }

    /// The value, waited for as long as it takes, also by a cancelled task.
    func value() async -> Value? {
        let ticket = arrive()
        defer { leave(ticket) }
        return await wait(ticket)
    }

    /// The value, waited for at most `timeout`; `nil` if it did not come, or the waiting task is cancelled.
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

    /// Lets one who waits go without the value.
    private func abandon(_ ticket: Int) {
        let waiter = state.withLock { state -> Waiter? in
            guard state.value == nil, let waiter = state.waiters[ticket] else { return nil }
            state.waiters[ticket] = .abandoned
            return waiter
        }
        if case .waiting(let continuation)? = waiter { continuation.resume(returning: nil) }
    }
}
