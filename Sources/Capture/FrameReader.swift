import MediaCore
import Threading

/// Reads the frames of a source for one consumer, from the first request to its end.
///
/// Depth 1; the newest frame wins. The source never waits for the consumer, and memory does not grow with its slowness.
final class FrameReader: Sendable {
    private enum Use { case idle, starting, reading, ended }

    private struct State: Sendable {
        var use = Use.idle
        var watch: Task<Void, Never>?
    }

    private let source: any VideoSource
    private let frameRate: FrameRate?
    private let slot: NewestFrameSlot
    private let state = Monitor(State())

    /// Creates a reader of `source` that gets at most `frameRate`; `nil` for every frame.
    ///
    /// `includesSubstitutes` says whether it also gets those that stand for pictures that do not come.
    init(_ source: any VideoSource, frameRate: FrameRate?, includesSubstitutes: Bool = false) {
        slot = NewestFrameSlot(includesSubstitutes: includesSubstitutes)
        self.source = source
        self.frameRate = frameRate
    }

    deinit {
        guard close() else { return }
        let (source, slot) = (source, slot)
        Task { await Self.stop(slot, in: source) }
    }

    /// Frames that a newer one replaced before they were read.
    var framesDropped: Int { slot.framesDropped }

    /// Adds the reader to the source's users, and starts the source if it is the first one.
    ///
    /// - Throws: The error of the source's start; `CancellationError` if the task is cancelled, or the reader ended,
    ///   while the source starts.
    func begin() async throws {
        let isFirst = state.withLock { state in
            defer { if state.use == .idle { state.use = .starting } }
            return state.use == .idle
        }
        guard isFirst else { return }
        source.sinks.add(slot)
        if let frameRate { source.sinks.request(VideoFormatRequest(frameRate: frameRate), for: slot) }
        let capturer = source as? any VideoCapturer
        do {
            try await capturer?.startCapture(for: slot)
        } catch {
            slot.finish()
            source.sinks.remove(slot)
            state.withLock { $0.use = .ended }
            throw error
        }
        let (events, slot) = (source.captureEvents(), slot)
        let watch = Task {
            for await event in events {
                switch event {
                case .failed, .finished: slot.finish()
                case .interrupted, .interruptionEnded, .noFramesCaptured, .warning: break
                }
            }
        }
        // An end before the events were asked for is not among them.
        if let capturer, !capturer.isCapturing { slot.finish() }
        let isEnded = state.withLock { state in
            guard state.use == .starting else { return true }
            state.use = .reading
            state.watch = watch
            return false
        }
        guard isEnded else { return }
        // The reader was ended while the source started.
        watch.cancel()
        await Self.stop(slot, in: source)
    }

    /// Waits for the next frame; `nil` once the source or the reader has ended, or the task is cancelled.
    func next() async -> VideoFrame? {
        await slot.next()
    }

    /// Ends the use of the source, which stops after its last user; a second call does nothing.
    func end() async {
        guard close() else { return }
        await Self.stop(slot, in: source)
    }

    /// Ends the reading; returns whether the source must be stopped now, which also ends a start that still waits.
    private func close() -> Bool {
        let (use, watch) = state.withLock { state in
            defer { (state.use, state.watch) = (.ended, nil) }
            return (state.use, state.watch)
        }
        watch?.cancel()
        // The slot ends last, because a task that waits for a frame then ends the reader too. Before this point, that
        // task would stop the source instead of the caller, and the caller would not wait for the stop.
        slot.finish()
        return use == .starting || use == .reading
    }

    private static func stop(_ slot: NewestFrameSlot, in source: any VideoSource) async {
        await (source as? any VideoCapturer)?.stopCapture(for: slot)
        source.sinks.remove(slot)
    }
}
