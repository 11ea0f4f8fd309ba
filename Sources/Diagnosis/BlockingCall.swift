import MediaCore
import Threading

/// Runs calls that may block, such as those of a driver, an X server or a name server.
enum BlockingCall {
    /// How often the result is looked for.
    private static let interval = Duration.milliseconds(5)
    /// How long a cancelled task may take to end.
    private static let grace = Duration.milliseconds(500)

    /// Runs `body` on a thread of its own and waits for its result.
    ///
    /// A call that does not return in time is left to itself: nothing can end it, and the program ends all the same.
    ///
    /// - Parameters:
    ///   - limit: How long to wait.
    ///   - body: The call.
    /// - Returns: The result; `nil` after the time limit, if the task is cancelled, or if the system has no thread
    ///   left.
    static func run<Result: Sendable>(
        within limit: Duration,
        _ body: @escaping @Sendable () -> Result
    ) async -> Result? {
        let result = Monitor<Result?>(nil)
        do throws(ThreadShortage) {
            _ = try WorkerThread(name: "doctor") {
                let value = body()
                result.withLock { $0 = value }
            }
        } catch {
            return nil
        }
        return await value(of: result, until: MonotonicClock.now + limit)
    }

    /// Runs `body` in a task of its own and waits for its result, as `run(within:_:)` does.
    ///
    /// The task is cancelled after the time limit, or with the caller's; it then has half a second to end.
    static func runTask<Result: Sendable>(
        within limit: Duration,
        _ body: @escaping @Sendable () async -> Result
    ) async -> Result? {
        let result = Monitor<Result?>(nil)
        let task = Task {
            let value = await body()
            result.withLock { $0 = value }
        }
        if let value = await value(of: result, until: MonotonicClock.now + limit) { return value }
        task.cancel()
        // The caller may be cancelled, and could not sleep itself.
        return await Task { await value(of: result, until: MonotonicClock.now + grace) }.value
    }

    private static func value<Result: Sendable>(
        of result: Monitor<Result?>,
        until deadline: MonotonicInstant
    ) async -> Result? {
        while !Task.isCancelled {
            if let value = result.withLock({ $0 }) { return value }
            guard MonotonicClock.now < deadline else { return nil }
            try? await Task.sleep(for: interval)
        }
        return result.withLock { $0 }
    }
}
