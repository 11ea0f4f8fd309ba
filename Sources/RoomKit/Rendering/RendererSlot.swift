import MediaCore
import Threading

/// Hands the newest picture of a track to one renderer, on a thread of the renderer's own or on an executor.
///
/// Depth 1; the newest picture wins, and the one that it replaces goes back to its pool at once. The thread that puts
/// never waits, and nothing waits for the renderer: a call that blocks for ever costs its thread and nothing else. The
/// thread, or the one task on the executor, begins with the first picture and ends with `close`.
final class RendererSlot: Sendable {
    private struct Work: Sendable {
        var renderer: any VideoRenderer
        var frame: VideoFrame
    }

    /// The suspended task on an executor; resumed exactly once, by the caller that takes it out of the state.
    @safe private struct Waiter: Sendable {
        // A checked continuation would allocate for each picture.
        private let continuation: UnsafeContinuation<Void, Never>

        init(_ continuation: UnsafeContinuation<Void, Never>) {
            unsafe self.continuation = continuation
        }

        func resume() {
            unsafe continuation.resume()
        }
    }

    private struct State: Sendable {
        /// Released by `close`, so that a removed renderer is free once its last call has returned.
        var renderer: (any VideoRenderer)?
        var frame: VideoFrame?
        /// Whether the thread or the task has begun.
        var isServed = false
        var thread: WorkerThread?
        /// The task on the executor, while it has nothing to do.
        var waiter: Waiter?
        var statistics = RendererStatistics()

        /// The next piece of work; `.some(nil)` once the slot is closed, `nil` if there is nothing to do.
        mutating func next() -> Work?? {
            guard let renderer else { return .some(nil) }
            guard let frame else { return nil }
            self.frame = nil
            return Work(renderer: renderer, frame: frame)
        }
    }

    /// The renderer that the slot belongs to; unique while the slot is open, because the slot keeps the renderer.
    let identity: ObjectIdentifier
    private let executor: (any TaskExecutor)?
    private let monitor: Monitor<State>

    /// Creates a slot for `renderer`, which is called on `executor`, or on a thread of its own.
    init(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)?) {
        identity = ObjectIdentifier(renderer)
        self.executor = executor
        monitor = Monitor(State(renderer: renderer))
    }

    var statistics: RendererStatistics { monitor.withLock { $0.statistics } }

    /// Puts a picture in, in place of the one that waits.
    func put(_ frame: VideoFrame) {
        var replaced: VideoFrame?
        var waiter: Waiter?
        var isFirst = false
        monitor.change { state in
            guard state.renderer != nil else { return }
            replaced = state.frame
            var frame = frame
            if let replaced {
                state.statistics.framesDropped += 1
                frame.takePlace(of: replaced)
            }
            state.frame = frame
            isFirst = !state.isServed
            state.isServed = true
            (waiter, state.waiter) = (state.waiter, nil)
        }
        // Released outside the lock: this may free its memory.
        withExtendedLifetime(replaced) {}
        waiter?.resume()
        if isFirst { begin() }
    }

    /// Takes no more pictures and releases the renderer; a call that has begun goes on, and nobody waits for it.
    ///
    /// - Returns: The counts; a call that still runs is not in them.
    @discardableResult
    func close() -> RendererStatistics {
        var released: (renderer: (any VideoRenderer)?, frame: VideoFrame?)
        var waiter: Waiter?
        let statistics = monitor.change { state in
            released = (state.renderer, state.frame)
            waiter = state.waiter
            if state.frame != nil { state.statistics.framesDropped += 1 }
            (state.renderer, state.frame, state.waiter) = (nil, nil, nil)
            return state.statistics
        }
        waiter?.resume()
        withExtendedLifetime(released) {}
        return statistics
    }

    // MARK: The thread or the task

    private func begin() {
        if let executor {
            Task(executorPreference: executor) { [self] in await serve() }
            return
        }
        do throws(ThreadShortage) {
            let thread = try WorkerThread(name: "renderer") { [self] in
                while let work = wait() { render(work) }
            }
            // Nobody joins it, because the renderer may never return. It ends by itself after `close`.
            monitor.withLock { $0.thread = thread }
        } catch {
            let failure = RoomError(.outOfResources, "A picture cannot be rendered: \(error).")
            monitor.withLock { state in
                // The next picture tries again.
                (state.isServed, state.frame) = (false, nil)
                state.statistics.framesFailed += 1
                state.statistics.lastError = failure
            }
        }
    }

    private func wait() -> Work? {
        monitor.wait { $0.next() } ?? nil
    }

    private func serve() async {
        while let work = await next() { render(work) }
    }

    /// Suspends the task until there is work; `nil` once the slot is closed.
    private func next() async -> Work? {
        while true {
            // Taken only now that the executor runs the task, so that it is the newest.
            if let work = monitor.withLock({ $0.next() }) { return work }
            await suspend()
        }
    }

    private func suspend() async {
        // A checked continuation would allocate for each picture.
        await unsafe withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let waiter = unsafe Waiter(continuation)
            let isIdle = monitor.withLock { state in
                guard state.renderer != nil, state.frame == nil else { return false }
                state.waiter = waiter
                return true
            }
            if !isIdle { waiter.resume() }
        }
    }

    private func render(_ work: Work) {
        do {
            try work.renderer.render(work.frame)
            monitor.withLock { $0.statistics.framesRendered += 1 }
        } catch {
            monitor.withLock { state in
                state.statistics.framesFailed += 1
                state.statistics.lastError = error
            }
        }
    }
}
