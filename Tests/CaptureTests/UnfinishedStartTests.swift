import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture

/// A start may wait for something that never comes, such as a pipe's writer.
@Suite("Starts that are given up", .timeLimit(.minutes(1)))
struct UnfinishedStartTests {
    /// A source that opens when the test says so, and closes when it is stopped.
    private final class SlowCapturer: CoreCapturer {
        let core: CaptureCore
        let state = Monitor((isReady: false, runs: 0))

        init() {
            let state = state
            core = CaptureCore(threadName: "slow", explainShortage: { CaptureError($0) }) { context in
                state.change { $0.runs += 1 }
                defer { state.change { $0.runs -= 1 } }
                context.whenStopRequested { state.change { _ in } }
                _ = state.wait { $0.isReady || context.isStopRequested ? true : nil }
                if context.isStopRequested { return }
                context.opened(nil)
                while context.wait(until: MonotonicClock.now + .seconds(60)) {}
            }
        }

        deinit { core.abandon(waiting: true) }

        /// Whether somebody still wants it.
        var isRunning: Bool { state.withLock { $0.runs > 0 } }
        func open() { state.change { $0.isReady = true } }
    }

    @Test("A start ends with its task, and closes the source")
    func cancelled() async throws {
        let (source, sink) = (SlowCapturer(), StampSink())
        let start = Task { try await source.startCapture(for: sink) }
        try await eventually { source.isRunning }
        start.cancel()
        await #expect(throws: CancellationError.self) { try await start.value }
        try await eventually { !source.isRunning }
        // The next one is none of its business.
        source.open()
        try await source.startCapture(for: sink)
        #expect(source.isCapturing)
        await source.stopCapture(for: sink)
        #expect(!source.isRunning)
    }

    @Test("The task that is cancelled is the only one whose start ends", arguments: [false, true])
    func cancelledBesideOthers(areSameUser: Bool) async throws {
        let (source, sink) = (SlowCapturer(), StampSink())
        let first = Task { try await source.startCapture() }
        let second = Task { try await areSameUser ? source.startCapture() : source.startCapture(for: sink) }
        try await eventually { source.core.startsUnderWay == 2 && source.isRunning }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(source.isRunning)
        source.open()
        try await second.value
        #expect(source.isCapturing)
        await areSameUser ? source.stopCapture() : source.stopCapture(for: sink)
        #expect(!source.isRunning)
    }

    @Test("A cancelled start takes nothing from a use of before")
    func cancelledAgain() async throws {
        let source = SlowCapturer()
        source.open()
        try await source.startCapture()
        let again = Task {
            withUnsafeCurrentTask { unsafe $0?.cancel() }
            try await source.startCapture()
        }
        _ = await again.result
        #expect(source.isCapturing)
        await source.stopCapture()
    }

    // The start that was cancelled paused the sink that the other one was for.
    @Test("A sink has its frames although one of two starts for it was cancelled")
    func cancelledTwin() async throws {
        let (source, sink) = (SlowCapturer(), StampSink())
        let first = Task { try await source.startCapture(for: sink) }
        try await eventually { source.core.startsUnderWay == 1 && source.isRunning }
        let second = Task { try await source.startCapture(for: sink) }
        try await eventually { source.core.startsUnderWay == 2 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        source.open()
        try await second.value
        source.sinks.deliver(frame(atMilliseconds: 0))
        #expect(sink.count == 1)
        await source.stopCapture(for: sink)
        source.sinks.deliver(frame(atMilliseconds: 33))
        #expect(sink.count == 1 && !source.isRunning)
    }

    @Test("A sink that captures keeps its frames when a further start for it comes in a task that is cancelled")
    func cancelledWhileCapturing() async throws {
        let (source, sink) = (SlowCapturer(), StampSink())
        source.open()
        try await source.startCapture(for: sink)
        let again = Task {
            withUnsafeCurrentTask { unsafe $0?.cancel() }
            try await source.startCapture(for: sink)
        }
        _ = await again.result
        source.sinks.deliver(frame(atMilliseconds: 0))
        #expect(sink.count == 1)
        await source.stopCapture(for: sink)
    }

    // The cancelled start paused the sink after the other one had added it.
    @Test("A start at the same moment as a cancelled one brings the sink its frames")
    func startedBesideCancelled() async throws {
        let source = SlowCapturer()
        source.open()
        try await source.startCapture()
        for round in 0..<300 {
            let sink = StampSink()
            let cancelled = Task {
                withUnsafeCurrentTask { unsafe $0?.cancel() }
                try await source.startCapture(for: sink)
            }
            let wanted = Task { try await source.startCapture(for: sink) }
            _ = await cancelled.result
            try await wanted.value
            source.sinks.deliver(frame(atMilliseconds: 0))
            #expect(sink.count == 1, "round \(round)")
            await source.stopCapture(for: sink)
            source.sinks.remove(sink)
        }
        await source.stopCapture()
    }

    // It waited until the source had opened for the other one.
    @Test("A user that stops is not kept by another one's start")
    func stoppedBesideOthers() async throws {
        let source = SlowCapturer()
        let (staying, going) = (StampSink(), StampSink())
        let stayingStart = Task { try await source.startCapture(for: staying) }
        let goingStart = Task { try await source.startCapture(for: going) }
        try await eventually { source.core.startsUnderWay == 2 }
        await source.stopCapture(for: going)
        await #expect(throws: CancellationError.self) { try await goingStart.value }
        source.open()
        try await stayingStart.value
        await source.stopCapture(for: staying)
        #expect(!source.isRunning)
    }

    @Test("A start that waits for the end of the run before is given up, too")
    func stoppedBeforeItsTurn() async throws {
        let source = HandCapturer()
        let (isOpening, mayOpen) = (Monitor(false), Monitor(false))
        source.whileOpening.withLock { action in
            action = {
                isOpening.change { $0 = true }
                _ = mayOpen.wait { $0 ? true : nil }
            }
        }
        let first = Task { try await source.startCapture() }
        try await eventually { isOpening.withLock { $0 } }
        let stop = Task { await source.stopCapture() }
        await #expect(throws: CancellationError.self) { try await first.value }
        let sink = StampSink()
        let second = Task { try await source.startCapture(for: sink) }
        try await eventually { source.core.startsUnderWay == 1 }
        second.cancel()
        mayOpen.change { $0 = true }
        await #expect(throws: CancellationError.self) { try await second.value }
        await stop.value
        #expect(!source.isCapturing)
    }

    @Test("A loop over the frames ends with its task while the source starts", arguments: [false, true])
    func cancelledLoop(isThrowing: Bool) async throws {
        let source = SlowCapturer()
        let loop = Task {
            if isThrowing {
                for try await _ in source.frames.throwing() {}
            } else {
                for await _ in source.frames {}
            }
        }
        try await eventually { source.isRunning }
        loop.cancel()
        try await loop.value
        try await eventually { !source.isRunning && source.sinks.isEmpty }
    }

    // Cancelled between the failure and its report, the start left a user behind that nobody could stop.
    @Test("A start that fails and is cancelled in the same moment leaves no user behind")
    func cancelledFailure() async throws {
        let (source, sink) = (HandCapturer(), StampSink())
        source.failsToOpen.withLock { $0 = true }
        for round in 0..<300 {
            let start = Task { try await source.startCapture() }
            for _ in 0..<round % 30 { await Task.yield() }
            start.cancel()
            await #expect(throws: (any Error).self) { try await start.value }
        }
        source.failsToOpen.withLock { $0 = false }
        try await source.startCapture(for: sink)
        await source.stopCapture(for: sink)
        #expect(!source.isCapturing)
    }

    // The failed start ended the use that the next one had begun: the end of any other use then stopped the source.
    @Test("A start after a failed one keeps its use")
    func startedAfterFailure() async throws {
        let source = HandCapturer()
        for round in 0..<100 {
            source.failsToOpen.withLock { $0 = true }
            let failing = Task { try await source.startCapture() }
            while source.failure == nil { await Task.yield() }
            source.failsToOpen.withLock { $0 = false }
            try await source.startCapture()
            _ = await failing.result
            let other = StampSink()
            source.sinks.add(other)
            source.sinks.remove(other)
            #expect(source.isCapturing, "round \(round)")
            await source.stopCapture()
            #expect(!source.isCapturing)
        }
    }

    private final class Delegate: FrameExtractorDelegate {
        func captured(_ frame: VideoFrame) async {}
    }

    @Test("An extractor stops while the source starts")
    func stoppedExtractor() async throws {
        let source = SlowCapturer()
        let delegate = Delegate()
        let extractor = FrameExtractor(source: source, delegate: delegate)
        let start = Task { try await extractor.start() }
        try await eventually { source.isRunning }
        await extractor.stop()
        await #expect(throws: CancellationError.self) { try await start.value }
        #expect(!source.isRunning && !extractor.isRunning && source.sinks.isEmpty)
    }
}
