package import MediaCore
package import Threading

/// Starts, shares and stops the capturing of one source and delivers its frames; every capturer uses it.
///
/// A source supplies the body that its thread runs; see `CaptureContext`. The thread holds this object and not the
/// source. A source that is released while it captures therefore stops by itself (`abandon`).
package final class CaptureCore: Sendable {
    /// A user of the source.
    private enum User: Hashable {
        case application
        /// A sink that was added; the source keeps it alive while it is a user.
        case sink(ObjectIdentifier)
    }

    private struct State {
        var users: Set<User> = []
        /// The current run, or an ended one that has not been joined yet.
        var run: CaptureRun?
        var format: VideoFormat?
        var failure: (any Error)?
        /// Whether the run has reported an interruption and not its end.
        var isInterrupted = false
        var listeners: [Int: AsyncStream<CaptureEvent>.Continuation] = [:]
        var nextListener = 0
    }

    /// What the caller of a start must do.
    private enum Claim {
        /// Launch this new run.
        case launch(CaptureRun)
        /// Share this run, which captures already or is about to.
        case share(CaptureRun)
        /// Wait for this run's end, then claim again.
        case outlast(CaptureRun)
    }

    let sinks = VideoSinks()
    private let state = Monitor(State())
    private let threadName: String
    private let makesSizes: Bool
    private let body: @Sendable (CaptureContext) throws -> Void
    private let explainShortage: @Sendable (ThreadShortage) -> any Error

    /// - Parameters:
    ///   - threadName: At most 15 bytes.
    ///   - makesSizes: Whether the source itself produces the requested size, so that its sinks need not scale.
    ///   - explainShortage: Makes the error of a start when the system has no thread for it.
    ///   - body: The work of the thread from start to stop, called once for each start on a thread of its own. It must
    ///     return soon after a stop was requested, with the device closed. An error thrown before
    ///     `CaptureContext.opened(_:)` fails the start; an error thrown later fails the source. Returning without a
    ///     stop means that the source has ended.
    package init(
        threadName: String,
        makesSizes: Bool = false,
        explainShortage: @escaping @Sendable (ThreadShortage) -> any Error,
        body: @escaping @Sendable (CaptureContext) throws -> Void
    ) {
        self.threadName = threadName
        self.makesSizes = makesSizes
        self.explainShortage = explainShortage
        self.body = body
    }

    var format: VideoFormat? { state.withLock { $0.format } }
    var failure: (any Error)? { state.withLock { $0.failure } }
    var isCapturing: Bool { state.withLock { $0.run }?.isCapturing ?? false }

    package func requestOutputFormat(_ request: VideoFormatRequest) {
        sinks.request(request, forwarding: forwarded(request))
    }

    /// Sets the request that the source is made with, which a reset goes back to.
    package func setInitialRequest(_ request: VideoFormatRequest) {
        sinks.setInitialRequest(request, forwarding: forwarded(request))
    }

    /// Replaces all requests to the source since it was made; `previous` was the last replacement, if that may be taken
    /// back too.
    @discardableResult
    package func replaceRequest(
        _ request: VideoFormatRequest,
        after previous: ReplacedRequest? = nil
    ) -> ReplacedRequest {
        sinks.replaceRequest(request, forwarding: forwarded(request), after: previous)
    }

    /// Restores what `replaced` replaced, unless a request was made since.
    func takeBack(_ replaced: ReplacedRequest) { sinks.takeBack(replaced, forwarding: forwarded) }

    package func resetOutputFormat() { sinks.resetRequest(forwarding: forwarded) }

    private func forwarded(_ request: VideoFormatRequest) -> VideoFormatRequest {
        var forwarded = request
        // Sinks may also crop or turn the frames. They must not scale such frames a second time.
        if makesSizes { forwarded.dimensions = nil }
        return forwarded
    }

    // MARK: Use

    func start(for sink: (any VideoSink)? = nil) async throws {
        if let sink { sinks.add(sink) }
        let user = sink.map { User.sink(ObjectIdentifier($0)) } ?? .application
        while true {
            switch claim(CaptureRun(), for: user) {
            case .launch(let run):
                launch(run)
                return try await untilOpened(run, user)
            case .share(let run):
                return try await untilOpened(run, user)
            case .outlast(let run):
                await run.untilEnded()
                forget(run)
            }
        }
    }

    func stop(for sink: (any VideoSink)? = nil) async {
        let user = sink.map { User.sink(ObjectIdentifier($0)) } ?? .application
        let run = state.withLock { state -> CaptureRun? in
            state.users.remove(user)
            guard state.users.isEmpty else { return nil }
            // Request the stop under the lock. Otherwise a start in between would share a run that is about to end.
            state.run?.requestStop()
            return state.run
        }
        if let sink { await sinks.pause(sink) }
        guard let run else { return }
        await run.untilEnded()
        forget(run)
    }

    /// Stops without suspending, for a source that is being released.
    ///
    /// - Parameter waiting: Whether to wait for the thread. A call on that thread itself, from inside a sink, never
    ///   waits.
    package func abandon(waiting: Bool) {
        let (run, listeners) = state.withLock { state in
            state.users = []
            defer { state.listeners = [:] }
            return (state.run, Array(state.listeners.values))
        }
        for listener in listeners { listener.finish() }
        run?.requestStop()
        sinks.release()
        if waiting { run?.join() }
    }

    private func claim(_ new: CaptureRun, for user: User) -> Claim {
        state.withLock { state in
            if let run = state.run, run.isEnding { return .outlast(run) }
            state.users.insert(user)
            if let run = state.run { return .share(run) }
            state.run = new
            state.format = nil
            state.failure = nil
            state.isInterrupted = false
            return .launch(new)
        }
    }

    private func untilOpened(_ run: CaptureRun, _ user: User) async throws {
        do {
            try await run.untilOpened()
        } catch {
            state.withLock { _ = $0.users.remove(user) }
            throw error
        }
    }

    /// Forgets a run that has ended and was joined.
    private func forget(_ run: CaptureRun) {
        state.withLock { if $0.run === run { $0.run = nil } }
    }

    // MARK: The thread

    private func launch(_ run: CaptureRun) {
        sinks.hold()
        do throws(ThreadShortage) {
            try run.launch(name: threadName) { [self] in work(run) }
        } catch {
            end(run, with: explainShortage(error))
        }
    }

    private func work(_ run: CaptureRun) {
        do {
            try body(CaptureContext(core: self, run: run))
            end(run, with: nil)
        } catch {
            end(run, with: error)
        }
    }

    /// Ends a run whose body has returned.
    ///
    /// The order matters: anyone who gets the event of the end must find the device closed and the counts final, and
    /// may start again.
    private func end(_ run: CaptureRun, with error: (any Error)?) {
        let hasOpened = run.hasOpened
        let isStopped = run.isStopRequested
        run.end()
        sinks.release()
        // A reader of `frames` hears of a start that failed by this alone.
        if let error, !isStopped { state.withLock { $0.failure = error } }
        if hasOpened, !isStopped {
            send(error.map { .failed($0) } ?? .finished)
        }
        run.finishOpening(error.map { .failure($0) } ?? .success(()))
        run.finish()
    }

    func note(_ format: VideoFormat) {
        state.withLock { $0.format = format }
    }

    // MARK: Events

    func events() -> AsyncStream<CaptureEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CaptureEvent.self,
            bufferingPolicy: .bufferingNewest(16)
        )
        let number = state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = continuation
            return state.nextListener
        }
        continuation.onTermination = { [weak self] _ in self?.removeListener(number) }
        return stream
    }

    private func removeListener(_ number: Int) {
        let listener = state.withLock { $0.listeners.removeValue(forKey: number) }
        withExtendedLifetime(listener) {}
    }

    /// Counts an interruption, unless one is under way, and reports it to the listeners.
    func interrupted(by error: any Error) {
        let wasInterrupted = state.withLock { state in
            defer { state.isInterrupted = true }
            return state.isInterrupted
        }
        if !wasInterrupted {
            var counts = CaptureStatistics()
            counts.interruptions = 1
            sinks.count(counts)
        }
        send(.interrupted(error))
    }

    func interruptionEnded() {
        state.withLock { $0.isInterrupted = false }
        send(.interruptionEnded)
    }

    func send(_ event: CaptureEvent) {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield(event) }
    }
}
