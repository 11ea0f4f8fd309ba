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

    /// The use of a source by a user.
    private struct Use {
        /// The user's sink; `nil` for the application.
        weak var sink: (any VideoSink)?
        /// The run that the user's last start shares.
        var run: CaptureRun
    }

    private struct State {
        var users: [User: Use] = [:]
        /// Whom the starts that have neither succeeded nor failed are for, by their numbers.
        var starts: [Int: User] = [:]
        var nextStart = 0
        /// The current run, or an ended one that has not been joined yet.
        var run: CaptureRun?
        var format: VideoFormat?
        var failure: (any Error)?
        /// Since when the source has delivered nothing, as it says; `nil` if it delivers.
        var interruptedSince: MonotonicInstant?
        var listeners: [Int: AsyncStream<CaptureEvent>.Continuation] = [:]
        var nextListener = 0

        /// Forgets the users whose sinks were released while nothing was captured: nobody can end such a use.
        ///
        /// - Returns: The sinks of the other users. Release them outside the lock, because the last reference may be
        ///   among them.
        mutating func forgetLostUsers() -> [any VideoSink] {
            let sinks = users.compactMapValues(\.sink)
            users = users.filter { user, _ in user == .application || sinks[user] != nil }
            return Array(sinks.values)
        }
    }

    /// What the caller of a start must do.
    private enum Claim {
        /// Launch this new run, which these sinks use.
        case launch(CaptureRun, usedBy: [any VideoSink])
        /// Share this run, which captures already or is about to.
        case share(CaptureRun)
        /// Wait for this run's end, then claim again.
        case outlast(CaptureRun)
        /// The start was given up meanwhile.
        case end
    }

    let sinks: VideoSinks
    private let state: Monitor<State>
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
        let state = Monitor(State())
        self.state = state
        sinks = VideoSinks { removed in _ = Self.endUse(by: .sink(removed), in: state) }
        self.threadName = threadName
        self.makesSizes = makesSizes
        self.explainShortage = explainShortage
        self.body = body
    }

    var format: VideoFormat? { state.withLock { $0.format } }
    var failure: (any Error)? { state.withLock { $0.failure } }
    var isCapturing: Bool { state.withLock { $0.run }?.isCapturing ?? false }
    /// How many starts have neither succeeded nor failed.
    var startsUnderWay: Int { state.withLock { $0.starts.count } }

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

    /// Starts capturing for a user, and waits until the source delivers.
    ///
    /// A source may open for as long as it likes: a pipe may never get a writer. So nobody who no longer waits for it is
    /// kept, whoever else still does.
    ///
    /// - Throws: The error that prevented the start; `CancellationError` if the task was cancelled, or the user stopped.
    func start(for sink: (any VideoSink)? = nil) async throws {
        let user = Self.user(sink)
        let number = state.withLock { state in
            state.nextStart += 1
            state.starts[state.nextStart] = user
            return state.nextStart
        }
        // Only now: whoever sees no start for a sink may pause it, unless it is added afterwards.
        if let sink { sinks.add(sink) }
        do {
            try await withTaskCancellationHandler {
                try await open(number, for: sink)
            } onCancel: {
                giveUp(number)
            }
            // The source may have opened, or ended without an error, in the moment in which the start was given up.
            let isWanted = state.withLock { state in
                state.starts.removeValue(forKey: number) != nil || state.users[user] != nil
            }
            guard isWanted else { throw CancellationError() }
        } catch {
            let addition = sink.flatMap { sinks.lastAddition(of: $0) }
            let isLeft = state.withLock { state in
                guard state.starts.removeValue(forKey: number) == nil else { return false }
                return state.users[user] == nil && !state.starts.values.contains(user)
            }
            // The source may go on for others; the sink may have a use of before, or another start.
            if let sink, let addition, isLeft { await sinks.pause(sink, addedBy: addition) }
            throw error
        }
    }

    private func open(_ number: Int, for sink: (any VideoSink)?) async throws {
        while true {
            let run: CaptureRun
            switch claim(CaptureRun(), for: sink, number) {
            case .launch(let new, let users):
                // The launch begins to keep them alive.
                withExtendedLifetime(users) { launch(new) }
                run = new
            case .share(let present):
                run = present
            case .outlast(let former):
                await former.untilEnded()
                forget(former)
                continue
            case .end:
                throw CancellationError()
            }
            do {
                return try await run.untilOpened(number) { state.withLock { $0.starts[number] == nil } }
            } catch {
                // A further start of the user may wait with this one, or have succeeded meanwhile with a run of its own.
                let user = Self.user(sink)
                state.withLock { state in
                    let isLast = !state.starts.contains { $0.key != number && $0.value == user }
                    if isLast, !run.isOpen, state.users[user]?.run === run { state.users[user] = nil }
                }
                throw error
            }
        }
    }

    /// Lets a start fail whose task was cancelled.
    private func giveUp(_ number: Int) {
        let run = state.withLock { state -> CaptureRun? in
            guard let user = state.starts.removeValue(forKey: number), let run = state.run else { return nil }
            // The user may also wait in another task. Once the source is open, the start has succeeded.
            if !run.isOpen, !state.starts.values.contains(user) { state.users[user] = nil }
            if state.users.isEmpty { run.requestStop() }
            return run
        }
        run?.giveUp([number])
    }

    func stop(for sink: (any VideoSink)? = nil) async {
        let addition = sink.flatMap { sinks.lastAddition(of: $0) }
        let (run, isEnding) = Self.endUse(by: Self.user(sink), in: state)
        // A start that came after this has added the sink again.
        if let sink, let addition { await sinks.pause(sink, addedBy: addition) }
        guard let run, isEnding else { return }
        await run.untilEnded()
        forget(run)
    }

    /// Ends a use, and the starts for it; requests the stop of the run after the last use.
    ///
    /// - Returns: The present run, and whether it ends because nobody uses it.
    private static func endUse(by user: User, in state: Monitor<State>) -> (run: CaptureRun?, isEnding: Bool) {
        let (run, isEnding, starts) = state.withLock { state in
            let starts = state.starts.filter { $0.value == user }.map(\.key)
            for number in starts { state.starts[number] = nil }
            state.users[user] = nil
            // Request the stop under the lock. Otherwise a start in between would share a run that is about to end.
            if state.users.isEmpty { state.run?.requestStop() }
            return (state.run, state.users.isEmpty, starts)
        }
        run?.giveUp(starts)
        return (run, isEnding)
    }

    private static func user(_ sink: (any VideoSink)?) -> User {
        sink.map { .sink(ObjectIdentifier($0)) } ?? .application
    }

    /// Stops without suspending, for a source that is being released.
    ///
    /// - Parameter waiting: Whether to wait for the thread. A call on that thread itself, from inside a sink, never
    ///   waits.
    package func abandon(waiting: Bool) {
        let (run, listeners) = state.withLock { state in
            state.users = [:]
            defer { state.listeners = [:] }
            return (state.run, Array(state.listeners.values))
        }
        for listener in listeners { listener.finish() }
        run?.requestStop()
        sinks.release()
        if waiting { run?.join() }
    }

    private func claim(_ new: CaptureRun, for sink: (any VideoSink)?, _ number: Int) -> Claim {
        state.withLock { state in
            guard state.starts[number] != nil else { return .end }
            if let run = state.run, run.isEnding { return .outlast(run) }
            state.users[Self.user(sink)] = Use(sink: sink, run: state.run ?? new)
            if let run = state.run { return .share(run) }
            state.run = new
            state.format = nil
            state.failure = nil
            state.interruptedSince = nil
            return .launch(new, usedBy: state.forgetLostUsers())
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
        // Whoever sees that the source no longer captures asks why, as a reader of `frames` does; and whoever sees why
        // may start again, and must not share this run.
        state.withLock { state in
            if let error, !isStopped { state.failure = error }
            run.end()
        }
        run.releaseStopActions()
        sinks.release()
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

    /// Since when the source has delivered no pictures of what it shows, as it says; `nil` if it does.
    package var interruptedSince: MonotonicInstant? { state.withLock { $0.interruptedSince } }

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
        let now = MonotonicClock.now
        let isFirst = state.withLock { state in
            guard state.interruptedSince == nil else { return false }
            state.interruptedSince = now
            return true
        }
        if isFirst {
            var counts = CaptureStatistics()
            counts.interruptions = 1
            sinks.count(counts)
        }
        send(.interrupted(error))
    }

    func interruptionEnded() {
        state.withLock { $0.interruptedSince = nil }
        send(.interruptionEnded)
    }

    func send(_ event: CaptureEvent) {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield(event) }
    }
}
