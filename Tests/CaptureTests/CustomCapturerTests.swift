import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture

/// Notes the calls that it gets; the test gives frames to its consumer.
private final class ScriptedCapturer: CustomCapturer {
    struct Trouble: Error, Equatable { var what: String }

    struct State: Sendable {
        var calls: [String] = []
        var consumer: VideoCaptureConsumer?
        var failing: String?
    }

    let state = Monitor(State())
    var contentHint: VideoContentHint? { .motion }
    var captureSettings: VideoFormat? {
        VideoFormat(dimensions: Dimensions(width: 16, height: 16), frameRate: FrameRate(5), pixelFormat: .nv12)
    }

    var calls: [String] { state.withLock { $0.calls } }
    var consumer: VideoCaptureConsumer? { state.withLock { $0.consumer } }

    private func note(_ call: String) throws {
        let failing = state.withLock { state in
            state.calls.append(call)
            return state.failing
        }
        if failing == call { throw Trouble(what: call) }
    }

    func initCapture() throws { try note("init") }
    func startCapture(_ consumer: VideoCaptureConsumer) throws {
        state.withLock { $0.consumer = consumer }
        try note("start")
    }
    func stopCapture() { try? note("stop") }
    func releaseCapture() { try? note("release") }
}

@Suite("Custom capturers", .timeLimit(.minutes(1)))
struct CustomCapturerTests {
    // The loop was empty, and nothing said why.
    @Test("Frames that never come because the source cannot start leave its error behind")
    func framesOfBrokenSource() async {
        let capturer = ScriptedCapturer()
        capturer.state.withLock { $0.failing = "init" }
        let source = CapturerSource(capturer)
        for await _ in source.frames { Issue.record("a frame") }
        #expect(source.failure as? ScriptedCapturer.Trouble == ScriptedCapturer.Trouble(what: "init"))
    }

    @Test("Slates are left out of a source's frames, unless they are wanted", arguments: [false, true])
    func slates(areWanted: Bool) async throws {
        let capturer = ScriptedCapturer()
        let source = CapturerSource(capturer)
        let stream = areWanted ? source.frames.includingSubstitutes() : source.frames
        var reader = stream.makeAsyncIterator()
        let delivering = Task {
            while capturer.consumer == nil { await Task.yield() }
            var slate = frameNow()
            slate.isSubstitute = true
            capturer.consumer?.consume(slate)
            capturer.consumer?.finish()
        }
        let frame = await reader.next()
        await delivering.value
        #expect(frame?.isSubstitute == (areWanted ? true : nil))
    }

    private func frameNow() -> VideoFrame {
        VideoFrame(buffer: VideoBuffer(dimensions: Dimensions(width: 16, height: 16)), timestamp: MonotonicClock.now)
    }

    @Test("A start and a stop make the four calls in order, and each start makes them anew")
    func order() async throws {
        let capturer = ScriptedCapturer()
        let source = CapturerSource(capturer, kind: .camera)
        #expect(!source.isCapturing && source.contentHint == .motion && capturer.calls.isEmpty)
        for round in 1...2 {
            let sink = StampSink()
            try await source.startCapture(for: sink)
            #expect(source.isCapturing && source.captureFormat == capturer.captureSettings)
            let consumer = try #require(capturer.consumer)
            #expect(consumer.consume(frameNow()))
            await source.stopCapture(for: sink)
            #expect(!source.isCapturing && sink.count == 1)
            #expect(!consumer.consume(frameNow()), "a frame after the stop")
            #expect(sink.count == 1)
            #expect(capturer.calls.count == 4 * round)
        }
        #expect(capturer.calls == ["init", "start", "stop", "release", "init", "start", "stop", "release"])
        #expect(source.captureStatistics.framesCaptured == 2)
    }

    @Test("A start that fails closes what was opened, and no more", arguments: ["init", "start"])
    func failedStart(failing: String) async throws {
        let capturer = ScriptedCapturer()
        capturer.state.withLock { $0.failing = failing }
        let source = CapturerSource(capturer)
        await #expect(throws: ScriptedCapturer.Trouble(what: failing)) { try await source.startCapture() }
        #expect(capturer.calls == (failing == "init" ? ["init"] : ["init", "start", "release"]))
        #expect(!source.isCapturing && source.failure is ScriptedCapturer.Trouble)
        capturer.state.withLock { $0.failing = nil }
        try await source.startCapture()
        #expect(source.failure == nil)
        await source.stopCapture()
    }

    // What a custom capturer reported was told and not counted.
    @Test("Interruptions are counted, each once, whatever is reported while they last")
    func interruptions() async throws {
        let capturer = ScriptedCapturer()
        let source = CapturerSource(capturer)
        for _ in 0..<2 {
            try await source.startCapture()
            let consumer = try #require(capturer.consumer)
            consumer.interrupted(by: ScriptedCapturer.Trouble(what: "gone"))
            consumer.interrupted(by: ScriptedCapturer.Trouble(what: "locked"))
            consumer.interruptionEnded()
            consumer.interrupted(by: ScriptedCapturer.Trouble(what: "gone"))
            await source.stopCapture()
        }
        #expect(source.captureStatistics.interruptions == 4)
    }

    @Test("A capturer that has no frame yet can say so, and its source goes on")
    func noFrames() async throws {
        let capturer = ScriptedCapturer()
        let source = CapturerSource(capturer)
        var events = source.captureEvents().makeAsyncIterator()
        try await source.startCapture()
        try #require(capturer.consumer).noFramesCaptured(because: ScriptedCapturer.Trouble(what: "covered"))
        guard case .noFramesCaptured(let error)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(error as? ScriptedCapturer.Trouble == ScriptedCapturer.Trouble(what: "covered"))
        #expect(source.isCapturing && source.failure == nil)
        await source.stopCapture()
    }

    @Test("A capturer that fails or ends by itself is stopped and released, and its source says why")
    func ownEnd() async throws {
        for isFailure in [true, false] {
            let capturer = ScriptedCapturer()
            let source = CapturerSource(capturer)
            var events = source.captureEvents().makeAsyncIterator()
            try await source.startCapture()
            let consumer = try #require(capturer.consumer)
            if isFailure { consumer.fail(ScriptedCapturer.Trouble(what: "read")) } else { consumer.finish() }
            let event = await events.next()
            switch event {
            case .failed(let error)?: #expect(isFailure && error is ScriptedCapturer.Trouble)
            case .finished?: #expect(!isFailure)
            default: Issue.record("\(String(describing: event))")
            }
            #expect((source.failure != nil) == isFailure)
            #expect(capturer.calls == ["init", "start", "stop", "release"])
        }
    }

    @Test("The time from a frame's stamp to its hand-over is measured")
    func delay() async throws {
        let capturer = ScriptedCapturer()
        let source = CapturerSource(capturer)
        let sink = StampSink()
        try await source.startCapture(for: sink)
        var frame = frameNow()
        frame.timestamp = frame.timestamp - .milliseconds(40)
        #expect(capturer.consumer?.consume(frame) == true)
        await source.stopCapture(for: sink)
        let delay = try #require(source.captureStatistics.captureDelay)
        #expect(delay >= .milliseconds(40))
        #expect(source.captureStatistics.longestCaptureDelay == delay)
        #expect(source.captureStatistics.meanCaptureDelay == delay)
    }

    @Test("A source that is released while it captures stops its capturer, even from inside a frame")
    func release() async throws {
        let capturer = ScriptedCapturer()
        let sink = StampSink()
        let holder = Monitor<CapturerSource?>(CapturerSource(capturer))
        try await holder.withLock { $0 }?.startCapture(for: sink)
        sink.atNextFrame { holder.withLock { $0 = nil } }
        _ = capturer.consumer?.consume(frameNow())
        try await eventually { capturer.calls == ["init", "start", "stop", "release"] }
    }
}

@Suite("Capture statistics")
struct CaptureStatisticsTests {
    // core, body, capturer, consumer, context and core held each other.
    @Test("A capturer that keeps its consumer is released with its source")
    func keptConsumer() async throws {
        weak var kept: ScriptedCapturer?
        do {
            let capturer = ScriptedCapturer()
            kept = capturer
            let source = CapturerSource(capturer, kind: .camera)
            let sink = StampSink()
            try await source.startCapture(for: sink)
            await source.stopCapture(for: sink)
            #expect(capturer.consumer?.wantedFormat == VideoFormatRequest())
        }
        try await eventually("it is released") { kept == nil }
    }

    @Test("The frame rate is estimated from the stamps of a second, and anew after a restart")
    func frameRate() throws {
        var statistics = CaptureStatistics()
        for number in 0..<25 {
            statistics.countCaptured(at: MonotonicInstant(nanoseconds: Int64(number) * 40_000_000))
            #expect(statistics.framesPerSecond == nil)
        }
        statistics.countCaptured(at: MonotonicInstant(nanoseconds: 1_000_000_000))
        #expect(statistics.framesPerSecond == 25)
        var later = CaptureStatistics()
        later.framesCaptured = 49
        later.countCaptured(at: MonotonicInstant(nanoseconds: 2_000_000_000))
        statistics.add(later)
        #expect(statistics.framesPerSecond == 50)
        statistics.beginStretch()
        #expect(statistics.framesPerSecond == nil)
    }

    @Test("Delays are merged: the last, the longest and the mean")
    func delays() {
        var statistics = CaptureStatistics()
        let start = MonotonicInstant(nanoseconds: 0)
        statistics.countCaptured(at: start, takenAt: start + .milliseconds(30))
        statistics.countCaptured(at: start)
        var later = CaptureStatistics()
        later.countCaptured(at: start, takenAt: start + .milliseconds(10))
        statistics.add(later)
        #expect(statistics.captureDelay == .milliseconds(10))
        #expect(statistics.longestCaptureDelay == .milliseconds(30))
        #expect(statistics.meanCaptureDelay == .milliseconds(20))
    }
}
