import MediaCore
import Threading

/// A value that comes later, once; any number of tasks may wait for it.
final class Promise<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var value: Value?
        var isGivenUp = false
        var waiting: [Int: CheckedContinuation<Value?, Never>] = [:]
        var nextTicket = 0
    }

    private let state = Monitor(State())

    /// Gives the value; later ones are passed over.
    func fulfill(_ value: Value) {
        let waiting = state.withLock { state -> [CheckedContinuation<Value?, Never>] in
            guard state.value == nil else { return [] }
            state.value = value
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    /// Ends all waiting: without a value, none will come.
    func giveUp() {
        let waiting = state.withLock { state -> [CheckedContinuation<Value?, Never>] in
            state.isGivenUp = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// The value, waited for at most `timeout`; `nil` if it did not come.
    func value(within timeout: Duration) async -> Value? {
        let ticket = state.withLock { state -> Int in
            state.nextTicket += 1
            return state.nextTicket
        }
        let timer = Task {
            try await Task.sleep(for: timeout)
            give(nil, to: ticket)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            let (value, isOver) = state.withLock { state -> (Value?, Bool) in
                let isOver = state.value != nil || state.isGivenUp
                if !isOver { state.waiting[ticket] = continuation }
                return (state.value, isOver)
            }
            if isOver { continuation.resume(returning: value) }
        }
    }

    private func give(_ value: Value?, to ticket: Int) {
        let continuation = state.withLock { $0.waiting.removeValue(forKey: ticket) }
        continuation?.resume(returning: value)
    }
}
