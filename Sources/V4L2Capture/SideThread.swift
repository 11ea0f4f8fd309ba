import MediaCore
import Threading

/// Does one piece of work on a thread of its own, and hands over its result.
final class SideThread<Value>: Sendable {
    private let outcome: Monitor<HandedOver<Value>?>
    private let thread: WorkerThread

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: At most 15 bytes.
    ///   - whenDone: Called on the thread once there is a result.
    ///   - work: The work; it must end by itself.
    /// - Throws: `ThreadShortage`; `work` is then never called.
    init(
        name: String,
        whenDone: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable () -> Value
    ) throws(ThreadShortage) {
        let outcome = Monitor<HandedOver<Value>?>(nil)
        self.outcome = outcome
        thread = try WorkerThread(name: name) {
            let result = HandedOver(work())
            outcome.change { $0 = result }
            whenDone()
        }
    }

    /// Whether there is a result.
    var isDone: Bool { outcome.withLock { $0 != nil } }

    /// Waits until there is a result, but not longer than `limit`; whether there is one.
    func isDone(within limit: Duration) -> Bool {
        outcome.wait(until: MonotonicClock.now + limit) { $0 == nil ? nil : true } ?? false
    }

    /// Waits for the thread's end; the result can be had once.
    func result() -> Value {
        thread.join()
        let result = outcome.withLock { outcome in
            defer { outcome = nil }
            return outcome
        }
        guard let value = result?.take() else { preconditionFailure("the result of a thread was taken twice") }
        return value
    }
}

/// Takes a value from one thread to another.
final class HandedOver<Content>: @unchecked Sendable {
    // `@unchecked Sendable`: the giver keeps no reference, and only the taker calls `take`.
    private var content: Content?

    /// Takes over `content`, of which the caller must keep no reference.
    init(_ content: consuming Content) {
        self.content = content
    }

    /// Gives the content away.
    func take() -> Content? { content.take() }
}
