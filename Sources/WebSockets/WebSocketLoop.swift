package import MediaCore
import CWebSockets
import Synchronization
import Threading

/// One libwebsockets context on one thread of its own, with all its connections.
///
/// It is also a `SerialExecutor`, so that an actor can run on the thread:
///
/// ```
///     actor Room {
///         nonisolated let loop: WebSocketLoop
///         nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
///     }
/// ```
///
/// A handler's methods may call `assumeIsolated` of such an actor. Nothing on the loop may block, because that would
/// delay every connection. A loop lives until `shutdown`.
@safe package final class WebSocketLoop: SerialExecutor, @unchecked Sendable {
    // `@unchecked Sendable`: the queue is behind a lock, and the service is confined to the thread.

    private enum Job: Sendable {
        case block(@Sendable () -> Void)
        case actor(UnownedJob)
    }

    private enum Phase { case running, stopping, ended }

    private struct Queue: Sendable {
        var phase = Phase.running
        var jobs: [Job] = []
        /// An empty array that keeps its memory.
        var spare: [Job] = []
        /// Whether jobs that were added after the loop's end are being run.
        var isRunningLate = false
        /// The event loop to wake; `nil` before the start and after the end.
        var events: EventLoop?
    }

    let service: Service
    private let queue = Monitor(Queue())
    /// Whether the queue has changed since the loop last looked; set with the queue's lock held.
    private let hasNews = Atomic(false)
    private let thread = Monitor<WorkerThread?>(nil)

    /// Starts a loop.
    ///
    /// libwebsockets has one log for each process: the `log` that was given last gets the errors and warnings of all
    /// loops, on their threads. They are dropped if there is none.
    ///
    /// - Parameters:
    ///   - name: The thread's name.
    ///   - log: Gets each line of libwebsockets' log.
    /// - Throws: `.systemFailure` if memory, descriptors or threads are short.
    package convenience init(name: String, log: (@Sendable (String) -> Void)? = nil) throws(WebSocketError) {
        try self.init(name: name, log: log, settings: LoopSettings())
    }

    init(
        name: String,
        log: (@Sendable (String) -> Void)? = nil,
        settings: LoopSettings
    ) throws(WebSocketError) {
        LibraryLog.install(log)
        service = Service(settings: settings)
        let start = Monitor<Result<Void, WebSocketError>?>(nil)
        service.loop = self
        let worker: WorkerThread
        do throws(ThreadShortage) {
            worker = try WorkerThread(name: name) { [self] in run(reportingStartTo: start) }
        } catch {
            throw .system("start a network loop", status: error.status, advice: "\(error).")
        }
        thread.withLock { $0 = worker }
        guard case .failure(let error) = start.wait(for: { $0 }) else { return }
        worker.join()
        throw error
    }

    /// Whether the caller runs on the loop's thread.
    package var isCurrent: Bool { service.isCurrent }

    /// Runs `body` on the loop's thread, after earlier jobs; may be called on any thread.
    ///
    /// After `shutdown` the body still runs, on some other thread but never beside another job, so that nobody waits
    /// for it for ever. It can no longer connect anything.
    package func execute(_ body: @escaping @Sendable () -> Void) {
        add(.block(body))
    }

    /// Runs `body` on the loop's thread at `time`; this replaces the earlier alarm.
    ///
    /// May be called on any thread. The body is never early, up to a millisecond late, and later when the thread is
    /// busy. After `shutdown` it does not run.
    package func setAlarm(at time: MonotonicInstant, _ body: @escaping @Sendable () -> Void) {
        if isCurrent { return service.setAlarm(at: time, body) }
        execute { [service] in service.setAlarm(at: time, body) }
    }

    /// Closes all connections (1001) and listeners and ends the thread; may be called on any thread except the loop's
    /// own.
    ///
    /// Every handler is told. It takes up to a second if peers do not answer, and longer if a name is being looked up.
    /// May be called repeatedly.
    package func shutdown() {
        precondition(!isCurrent, "a WebSocketLoop cannot wait for its own end")
        queue.withLock { queue in
            guard queue.phase == .running else { return }
            queue.phase = .stopping
            hasNews.store(true, ordering: .sequentiallyConsistent)
            queue.events?.wake()
        }
        let worker = thread.withLock { $0 }
        worker?.join()
    }

    private func run(reportingStartTo start: Monitor<Result<Void, WebSocketError>?>) {
        service.setCurrent(true)
        do throws(WebSocketError) {
            try service.open()
            let events = service.events
            queue.withLock { $0.events = events }
            start.change { $0 = .success(()) }
            while turn() {}
        } catch {
            start.change { $0 = .failure(error) }
        }
        end()
    }

    /// - Returns: Whether to go on.
    private func turn() -> Bool {
        if hasNews.exchange(false, ordering: .sequentiallyConsistent) {
            runJobs()
            if queue.withLock({ $0.phase }) == .stopping { service.beginStop() }
        }
        service.beginTurn()
        service.sendRequested()
        guard !service.isStopped else { return false }
        service.turn(isBusy: hasNews.load(ordering: .sequentiallyConsistent))
        return true
    }

    private func end() {
        // After this, nobody wakes the thread.
        queue.withLock { $0.events = nil }
        service.close()
        var isEnded = false
        while !isEnded {
            runJobs()
            isEnded = queue.withLock { queue in
                guard queue.jobs.isEmpty else { return false }
                // Do this before others may run late jobs.
                service.setCurrent(false)
                queue.phase = .ended
                return true
            }
        }
    }
}

extension WebSocketLoop {
    private enum Reaction { case none, wake(EventLoop), runLate }

    private func add(_ job: Job) {
        // On its own thread, the loop looks at the queue anyway before it waits.
        let isSeen = isCurrent
        let reaction = queue.withLock { queue -> Reaction in
            queue.jobs.append(job)
            if queue.phase == .ended {
                defer { queue.isRunningLate = true }
                return queue.isRunningLate ? .none : .runLate
            }
            let isKnown = hasNews.exchange(true, ordering: .sequentiallyConsistent)
            return isSeen || isKnown ? .none : queue.events.map { .wake($0) } ?? .none
        }
        // Do this without the lock. Otherwise the loop would wake and wait for it.
        switch reaction {
        case .none: break
        case .wake(let events): events.wake()
        case .runLate: Task.detached { [self] in runLateJobs() }
        }
    }

    /// Runs the jobs in the queue; jobs that they add run in the next turn.
    private func runJobs() {
        var jobs = queue.withLock { queue in
            let jobs = queue.jobs
            queue.jobs = queue.spare
            queue.spare = []
            return jobs
        }
        guard !jobs.isEmpty else { return giveBack(jobs) }
        for job in jobs {
            switch job {
            case .block(let body): body()
            case .actor(let job): unsafe job.runSynchronously(on: asUnownedSerialExecutor())
            }
        }
        jobs.removeAll(keepingCapacity: true)
        giveBack(jobs)
    }

    private func giveBack(_ spare: [Job]) {
        queue.withLock { $0.spare = spare }
    }

    /// Runs jobs that were added after the end, one at a time.
    private func runLateJobs() {
        service.setCurrent(true)
        var isDone = false
        while !isDone {
            runJobs()
            isDone = queue.withLock { queue in
                guard queue.jobs.isEmpty else { return false }
                service.setCurrent(false)
                queue.isRunningLate = false
                return true
            }
        }
    }
}

extension WebSocketLoop {
    /// For the runtime: runs an actor's job on the loop's thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        add(.actor(UnownedJob(job)))
    }

    /// For the runtime: traps if called off the loop's thread.
    package func checkIsolated() {
        precondition(isCurrent, "this must run on the loop's thread")
    }

    /// For the runtime: whether the caller runs on the loop's thread.
    package func isIsolatingCurrentContext() -> Bool? { isCurrent }
}

extension WebSocketLoop {
    /// Has the process's allocator give the memory that it does not use back to the system; any thread.
    ///
    /// It takes some milliseconds, and keeps other threads from allocating meanwhile.
    package static func trimMemory() {
        cwebsockets_trim_memory()
    }

    /// Accepts WebSocket connections, each with a handler of its own.
    ///
    /// May be called on any thread; it waits until the loop has taken the listener over. The listener lasts until
    /// `shutdown`. All listeners of a loop must have the same subprotocols.
    ///
    /// - Parameters:
    ///   - options: Where to listen, and the limits.
    ///   - makeHandler: Called on the loop's thread for each connection. The connection owns the handler until
    ///     `closed`.
    /// - Returns: The address; the system chooses its port if `options.port` is 0.
    /// - Throws: `.addressInUse`, `.permissionDenied`, `.badAddress`, `.shutDown` or `.systemFailure`.
    package func listen(
        _ options: ListenerOptions,
        makeHandler: @escaping @Sendable () -> any WebSocketHandler
    ) throws(WebSocketError) -> ListeningAddress {
        let socket = try ListeningSocket(options)
        let address = socket.address
        let descriptor = socket.release()
        let outcome = Monitor<Result<Void, WebSocketError>?>(nil)
        let take: @Sendable () -> Void = { [service] in
            do throws(WebSocketError) {
                try service.listen(options, descriptor: descriptor, makeHandler: makeHandler)
                outcome.change { $0 = .success(()) }
            } catch {
                outcome.change { $0 = .failure(error) }
            }
        }
        if isCurrent { take() } else { execute(take) }
        if case .failure(let error) = outcome.wait(for: { $0 }) { throw error }
        return address
    }

    /// Connects to a server; may be called on any thread.
    ///
    /// The result goes to `handler`: `opened`, or `closed` with `.failed`. The loop keeps the handler alive until
    /// `closed`.
    package func connect(_ options: ClientOptions, handler: any WebSocketHandler & Sendable) {
        connect(options) { handler }
    }

    /// Connects to a server, with a handler that is confined to the loop's thread; may be called on any thread.
    ///
    /// - Parameters:
    ///   - options: The server, and the limits.
    ///   - makeHandler: Called once, on the loop's thread. The connection owns the handler until `closed`.
    package func connect(_ options: ClientOptions, makeHandler: @escaping @Sendable () -> any WebSocketHandler) {
        execute { [service] in service.connect(options, handler: makeHandler()) }
    }
}
