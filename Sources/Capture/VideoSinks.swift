public import MediaCore
import Threading

/// The sinks of one source, each with its own format request and its own counts.
///
/// All members may be used from any thread. Only one thread at a time delivers frames: the source's. The lock is held
/// for bookkeeping only, never while a sink takes a frame.
public final class VideoSinks: Sendable {
    struct Entry {
        let number: Int
        weak var sink: (any VideoSink)?
        /// A strong reference to the sink while the source captures.
        var held: (any VideoSink)?
        let requirements: VideoFormatRequest
        var request = VideoFormatRequest()
        /// The number of the call that added the sink last.
        var lastAddition = 0
        /// Whether the sink gets no frames for now.
        var isPaused = false
        var pace = FramePace()
        /// Whether the last admitted frame must still be delivered to the sink.
        var isDue = false
        /// Whether the sink did not get a change, so that the next frame, even if it is a repeat, is new to it.
        var hasMissedChange = true
        var statistics = CaptureStatistics()
    }

    struct State {
        var entries: [Entry] = []
        var nextNumber = 0
        /// How often a sink was added, also one that was there already.
        var additions = 0
        var primary: Int?
        /// Whether the source keeps its sinks alive.
        var isHolding = false
        /// The request made to the source for all its sinks.
        var request = VideoFormatRequest()
        /// How often the request was changed.
        var requestCount = 0
        /// The request that the source was made with, which a reset goes back to.
        var initialRequest = VideoFormatRequest()
        /// The request that the source was made with or a device was selected with.
        ///
        /// The device is opened by it where the present request says nothing.
        var openingRequest = VideoFormatRequest() { didSet { openingCount += 1 } }
        /// How often the request that the device is opened by was set.
        var openingCount = 0
        var forwarded = VideoFormatRequest()
        /// The size and the highest rate where none is requested.
        var limits = VideoFormatRequest()
        /// Whether somebody was told that the limits apply.
        var areLimitsTold = false
        var statistics = CaptureStatistics()
        /// The sink that is taking a frame.
        var delivering: Int?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    let state = Monitor(State())
    /// Told of each sink that is removed, outside the lock.
    private let whenRemoved: @Sendable (ObjectIdentifier) -> Void

    /// Creates an empty set of sinks.
    public init() { whenRemoved = { _ in } }

    init(whenRemoved: @escaping @Sendable (ObjectIdentifier) -> Void) {
        self.whenRemoved = whenRemoved
    }

    // MARK: Sinks

    /// Adds `sink`, which gets all frames from the next one on; adding it twice does nothing.
    ///
    /// Reads the sink's `sourceRequirements` and passes earlier requests to the source on to it.
    public func add(_ sink: any VideoSink) {
        let requirements = sink.sourceRequirements
        let passed = state.withLock { state -> VideoFormatRequest? in
            state.entries.removeAll { $0.sink == nil }
            state.additions += 1
            if let index = state.entries.firstIndex(where: { $0.sink === sink }) {
                state.entries[index].lastAddition = state.additions
                // A pause counts neither for the rate nor for the duration.
                if state.entries[index].isPaused { state.entries[index].statistics.beginStretch() }
                state.entries[index].isPaused = false
                if state.isHolding { state.entries[index].held = sink }
                return nil
            }
            state.nextNumber += 1
            let entry = Entry(
                number: state.nextNumber,
                sink: sink,
                held: state.isHolding ? sink : nil,
                requirements: requirements,
                lastAddition: state.additions
            )
            state.entries.append(entry)
            return state.passed(to: entry)
        }
        if let passed, passed != VideoFormatRequest() { sink.onVideoFormatRequest(passed) }
    }

    /// Removes `sink`; a frame that it is taking right now is its last.
    ///
    /// This also ends its use of the source (`VideoCapturer.startCapture(for:)`), which stops after its last user.
    ///
    /// - Returns: The sink's final counts.
    @discardableResult
    public func remove(_ sink: any VideoSink) -> CaptureStatistics {
        let removed = state.withLock { state -> Entry? in
            guard let index = state.entries.firstIndex(where: { $0.sink === sink }) else { return nil }
            return state.entries.remove(at: index)
        }
        guard var removed else { return CaptureStatistics() }
        whenRemoved(ObjectIdentifier(sink))
        if removed.isDue { removed.statistics.framesDropped[.late] += 1 }
        return removed.statistics
    }

    /// Whether no sink would get a frame.
    public var isEmpty: Bool { state.withLock { !$0.entries.contains { !$0.isPaused && $0.sink != nil } } }

    /// The frames that `sink` got, and those it did not get by reason, since it was added; zero for an unknown sink.
    public func statistics(of sink: any VideoSink) -> CaptureStatistics {
        aged(
            state.withLock { state in
                state.entries.first { $0.sink === sink }?.statistics ?? CaptureStatistics()
            }
        )
    }

    /// The frames captured since the source was made; a frame that at least one sink got counts as delivered.
    public var statistics: CaptureStatistics { aged(state.withLock { $0.statistics }) }

    private func aged(_ statistics: CaptureStatistics) -> CaptureStatistics {
        var statistics = statistics
        statistics.age(to: MonotonicClock.now)
        return statistics
    }

    // MARK: For sources

    /// Delivers a frame to each sink whose rate admits it, and counts it.
    ///
    /// A timestamp in the future, or more than ten seconds ago, counts as now. Call it on one thread at a time, in order
    /// of capture.
    public func deliver(_ frame: VideoFrame) {
        var frame = frame
        var captured = CaptureStatistics()
        frame.timestamp.becomeCaptureTime(at: MonotonicClock.now, counting: &captured)
        captured.countCaptured(at: frame.timestamp)
        guard admit(captured, newestAt: frame.timestamp) else { return noteMissed(frame) }
        handOver(frame)
    }

    var first: (any VideoSink)? {
        state.withLock { state in
            let primary = state.primary.flatMap { number in state.entries.first { $0.number == number }?.sink }
            return primary ?? state.entries.lazy.compactMap(\.sink).first
        }
    }

    func setPrimary(_ sink: (any VideoSink)?) {
        let former = state.withLock { state -> Entry? in
            defer { state.primary = nil }
            guard let index = state.entries.firstIndex(where: { $0.number == state.primary }),
                state.entries[index].sink !== sink || sink == nil
            else { return nil }
            return state.entries.remove(at: index)
        }
        if let sink = former?.sink { whenRemoved(ObjectIdentifier(sink)) }
        // Release it outside the lock: this may be the last reference, and the sink's `deinit` may call back here.
        _ = consume former
        guard let sink else { return }
        add(sink)
        state.withLock { state in
            state.primary = state.entries.first { $0.sink === sink }?.number
        }
    }
}

// MARK: - Delivering a frame

extension VideoSinks {
    /// Counts captured frames of which none is delivered.
    package func count(_ captured: CaptureStatistics) {
        state.withLock { $0.count(captured) }
    }

    /// Counts captured frames and decides which sinks get the newest of them.
    ///
    /// Call `handOver` or `giveUp` next.
    ///
    /// - Parameters:
    ///   - captured: The frames captured since the last call.
    ///   - timestamp: When the newest frame was captured.
    ///   - pacedRate: The rate at which the source makes its frames on purpose. Sinks that accept this rate get every
    ///     frame.
    /// - Returns: Whether at least one sink gets the frame. It counts as `notWanted` for the others.
    func admit(
        _ captured: CaptureStatistics,
        newestAt timestamp: MonotonicInstant,
        pacedRate: FrameRate? = nil
    ) -> Bool {
        state.withLock { state in
            state.count(captured)
            var isWanted = false
            for index in state.entries.indices where !state.entries[index].isPaused {
                var limit = state.limit(of: state.entries[index])
                if let pacedRate, let rate = limit, rate.framesPerSecond >= pacedRate.framesPerSecond { limit = nil }
                let isDue =
                    state.entries[index].sink != nil && state.entries[index].pace.admits(timestamp, limit: limit)
                state.entries[index].isDue = isDue
                if isDue { isWanted = true } else { state.entries[index].statistics.framesDropped[.notWanted] += 1 }
            }
            if !isWanted { state.statistics.framesDropped[.notWanted] += 1 }
            return isWanted
        }
    }

    /// Delivers the admitted frame.
    func handOver(_ frame: VideoFrame) {
        noteMissed(frame)
        var number = 0
        while let (next, sink, isNew) = nextDue(after: number) {
            number = next
            var frame = frame
            if isNew { frame.isRepeat = false }
            sink.onVideoFrame(frame)
        }
    }

    /// Notes for the sinks that do not get the frame whether they miss a change.
    private func noteMissed(_ frame: VideoFrame) {
        guard !frame.isRepeat else { return }
        state.withLock { state in
            for index in state.entries.indices where !state.entries[index].isDue {
                state.entries[index].hasMissedChange = true
            }
        }
    }

    /// Delivers a compressed frame to each sink that takes such frames, and counts it.
    ///
    /// No request for a rate leaves it out, because later frames refer to it. Call it on one thread at a time, in order
    /// of the frames.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - captured: The frames captured since the last call.
    /// - Returns: Whether a sink got it.
    package func deliver(_ frame: EncodedFrame, counting captured: CaptureStatistics) -> Bool {
        let isWanted = state.withLock { state in
            state.count(captured)
            var isWanted = false
            for index in state.entries.indices where !state.entries[index].isPaused {
                let isDue = state.entries[index].sink is any EncodedVideoSink
                state.entries[index].isDue = isDue
                if isDue { isWanted = true } else { state.entries[index].statistics.framesDropped[.notWanted] += 1 }
            }
            if !isWanted { state.statistics.framesDropped[.notWanted] += 1 }
            return isWanted
        }
        var number = 0
        while let (next, sink, _) = nextDue(after: number) {
            number = next
            (sink as? any EncodedVideoSink)?.onEncodedFrame(frame)
        }
        return isWanted
    }

    /// Counts the admitted frame as dropped.
    func giveUp(_ reason: FrameDropReason) {
        state.withLock { state in
            state.statistics.framesDropped[reason] += 1
            for index in state.entries.indices where state.entries[index].isDue {
                state.entries[index].isDue = false
                state.entries[index].statistics.framesDropped[reason] += 1
            }
        }
    }

    private func nextDue(after number: Int) -> (number: Int, sink: any VideoSink, hasMissedChange: Bool)? {
        let (next, waiters) = state.withLock { state in
            var next: (number: Int, sink: any VideoSink, hasMissedChange: Bool)?
            for index in state.entries.indices where state.entries[index].isDue && state.entries[index].number > number
            {
                state.entries[index].isDue = false
                if let sink = state.entries[index].sink {
                    next = (state.entries[index].number, sink, state.entries[index].hasMissedChange)
                    state.entries[index].hasMissedChange = false
                    break
                }
            }
            state.delivering = next?.number
            let waiters = state.waiters
            if !waiters.isEmpty { state.waiters = [] }
            return (next, waiters)
        }
        for waiter in waiters { waiter.resume() }
        return next
    }
}

// MARK: - Lifetime

extension VideoSinks {
    /// Keeps all sinks alive from now on; called when capturing begins.
    func hold() {
        state.withLock { state in
            state.isHolding = true
            state.statistics.beginStretch()
            for index in state.entries.indices {
                state.entries[index].held = state.entries[index].sink
                state.entries[index].statistics.beginStretch()
            }
        }
    }

    /// Stops keeping sinks alive; called when capturing has ended.
    func release() {
        let held = state.withLock { state in
            state.isHolding = false
            let held = state.entries.compactMap(\.held)
            for index in state.entries.indices { state.entries[index].held = nil }
            return held
        }
        // Outside the lock, as in `setPrimary`.
        withExtendedLifetime(held) {}
    }

    /// The number of the call that added `sink` last; `nil` if it is not there.
    func lastAddition(of sink: any VideoSink) -> Int? {
        state.withLock { state in state.entries.first { $0.sink === sink }?.lastAddition }
    }

    /// Gives `sink` no more frames until it is added again, and waits for a frame that it is taking now.
    ///
    /// Does nothing if it was added again since `addition`.
    func pause(_ sink: any VideoSink, addedBy addition: Int) async {
        let (number, held) = state.withLock { state -> (Int?, (any VideoSink)?) in
            guard let index = state.entries.firstIndex(where: { $0.sink === sink }),
                state.entries[index].lastAddition == addition
            else { return (nil, nil) }
            state.entries[index].isPaused = true
            if state.entries[index].isDue {
                state.entries[index].isDue = false
                state.entries[index].statistics.framesDropped[.late] += 1
            }
            let held = state.entries[index].held
            state.entries[index].held = nil
            return (state.entries[index].number, held)
        }
        withExtendedLifetime(held) {}
        guard let number else { return }
        await untilNotTaking(number)
    }

    private func untilNotTaking(_ number: Int) async {
        await withCheckedContinuation { continuation in
            let isTaking = state.withLock { state in
                guard state.delivering == number else { return false }
                state.waiters.append(continuation)
                return true
            }
            if !isTaking { continuation.resume() }
        }
    }
}

extension VideoSinks.State {
    fileprivate mutating func count(_ captured: CaptureStatistics) {
        statistics.add(captured)
        for index in entries.indices where !entries[index].isPaused { entries[index].statistics.add(captured) }
    }
}
