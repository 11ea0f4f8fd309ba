import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture

@Suite("Frame extraction", .timeLimit(.minutes(3)))
struct FrameStreamTests {
    /// Keeps the frames that it is given.
    private final class FrameSink: VideoSink {
        let frames = Monitor<[VideoFrame]>([])
        var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
        func onVideoFrame(_ frame: VideoFrame) { frames.withLock { $0.append(frame) } }
        func onVideoFormatRequest(_ request: VideoFormatRequest) {}
    }

    @Test("A loop starts the source and gets its frames; its end stops the source")
    func oneLoop() async throws {
        let source = HandCapturer()
        source.give(.frame(milliseconds: 1), .end)
        var stamps: [Int64] = []
        for await frame in source.frames { stamps.append(frame.timestamp.microseconds) }
        #expect(stamps == [1000])
        #expect(source.openings == 1)
        try await eventually { source.sinks.isEmpty && !source.isCapturing }

        // A loop that is left early ends its use too, and a later one starts the source again.
        source.give(.frame(milliseconds: 2))
        for await _ in source.frames { break }
        try await eventually { source.sinks.isEmpty && !source.isCapturing }
        #expect(source.openings == 2)
    }

    @Test("Several readers and a sink beside them share each frame")
    func sharing() async throws {
        let source = HandCapturer()
        let sink = FrameSink()
        try await source.startCapture(for: sink)
        let readers = (0..<3).map { _ in FrameReader(source, frameRate: nil) }
        for reader in readers { try await reader.begin() }
        source.give(.frame(milliseconds: 5))
        for reader in readers {
            let frame = try #require(await reader.next())
            #expect(frame.buffer === sink.frames.withLock { $0.first?.buffer })
        }
        await source.stopCapture(for: sink)
        #expect(source.isCapturing)
        for reader in readers { await reader.end() }
        #expect(!source.isCapturing && source.openings == 1)
    }

    @Test("A slow reader gets the newest frame, and what it missed is counted")
    func newestWins() async throws {
        let source = HandCapturer()
        let (reader, sink) = (FrameReader(source, frameRate: nil), StampSink())
        try await reader.begin()
        try await source.startCapture(for: sink)
        source.give(.frame(milliseconds: 1), .frame(milliseconds: 2), .frame(milliseconds: 3))
        try await eventually { sink.count == 3 }
        #expect(await reader.next()?.timestamp.microseconds == 3000)
        #expect(reader.framesDropped == 2)
        await reader.end()
        #expect(await reader.next() == nil)
        await source.stopCapture(for: sink)
    }

    @Test("A reader may ask for fewer frames, without a change for others")
    func rate() async throws {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let reader = FrameReader(source, frameRate: FrameRate(10))
        try await reader.begin()
        let start = MonotonicClock.now - .seconds(5)
        for number in 0..<60 {
            let buffer = VideoBuffer(dimensions: Dimensions(width: 16, height: 16))
            source.write(VideoFrame(buffer: buffer, timestamp: start + .milliseconds(number * 1000 / 60)))
        }
        #expect(await reader.next() != nil)
        #expect(sink.count == 60 && (9...11).contains(reader.framesDropped + 1))
        await reader.end()
    }

    @Test("A source that cannot start ends the loop, and a cancelled task leaves it")
    func noFrames() async throws {
        let source = HandCapturer()
        source.failsToOpen.withLock { $0 = true }
        for await _ in source.frames { Issue.record("a frame of a source that cannot start") }
        #expect(source.sinks.isEmpty)
        source.failsToOpen.withLock { $0 = false }
        let task = Task { for await _ in source.frames {} }
        try await eventually { source.isCapturing }
        task.cancel()
        await task.value
        try await eventually { !source.isCapturing }
    }

    // A loop over a busy camera ended as if there were no more frames.
    @Test("A throwing loop has the error of the start, and the one of a later failure; its other ends are no errors")
    func throwingLoop() async throws {
        let source = HandCapturer()
        source.failsToOpen.withLock { $0 = true }
        await #expect(throws: HandCapturer.Trouble(what: "open")) {
            for try await _ in source.frames.throwing() { Issue.record("a frame of a source that cannot start") }
        }
        source.failsToOpen.withLock { $0 = false }
        source.give(.frame(milliseconds: 1), .failure)
        var stamps: [Int64] = []
        await #expect(throws: HandCapturer.Trouble(what: "read")) {
            for try await frame in source.frames.throwing() { stamps.append(frame.timestamp.microseconds) }
        }
        #expect(stamps == [1000])
        source.give(.frame(milliseconds: 2), .end)
        for try await frame in source.frames.throwing() { stamps.append(frame.timestamp.microseconds) }
        #expect(stamps == [1000, 2000])
        let task = Task { for try await _ in source.frames.throwing() {} }
        try await eventually { source.isCapturing }
        task.cancel()
        try await task.value
        try await eventually { !source.isCapturing && source.sinks.isEmpty }
    }

    // The loop above ended without an error now and then: it looked between the end and its reason.
    @Test("A source that has ended by itself can say why at once")
    func reasonOfTheEnd() async throws {
        let source = HandCapturer()
        for _ in 0..<300 {
            try await source.startCapture()
            source.give(.failure)
            while source.isCapturing {}
            try #require(source.failure != nil)
            await source.stopCapture()
        }
    }

    /// Numbers its pictures.
    private final class NumberPainter: FramePainter {
        let dimensions = Dimensions(width: 16, height: 16)
        let frameRate = FrameRate(100)
        var number = UInt8(0)
        var metadata: FrameMetadata? { try? FrameMetadata([number]) }

        func paint(_ assignment: FrameAssignment) -> VideoBuffer? {
            guard number < 5 else { return nil }
            number += 1
            let buffer = VideoBuffer(dimensions: dimensions)
            buffer.withMutablePlanes { luma, _, _ in luma.update(repeating: number) }
            return buffer
        }
    }

    @Test("A painter's metadata comes with the picture that it belongs to")
    func paintedMetadata() async {
        let source = PacedSource { NumberPainter() }
        var read = 0
        for await frame in source.frames {
            let pixel = frame.buffer.withPlanes { luma, _, _ in luma[0] }
            #expect(frame.metadata?.bytes == [pixel])
            read += 1
        }
        #expect(read > 0)
    }

    @Test("Memory stays the same at any speed of the reader", arguments: [0, 1, 2, 7, 50, .max])
    func flatMemory(framesBetweenReads: Int) async throws {
        let source = PushedSource()
        let pool = VideoBufferPool()
        let readers = (0..<3).map { _ in FrameReader(source, frameRate: nil) }
        for reader in readers { try await reader.begin() }
        var buffers: Set<ObjectIdentifier> = []
        var read = 0
        for number in 0..<2000 {
            let buffer = pool.take(Dimensions(width: 32, height: 32))
            buffers.insert(ObjectIdentifier(buffer))
            #expect(source.write(VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: Int64(number)))))
            guard framesBetweenReads == 0 || number % framesBetweenReads == 0 else { continue }
            for reader in readers where await reader.next() != nil { read += 1 }
        }
        // The one that is painted, the one that waits, and the one that a pool looks at next.
        #expect(buffers.count <= 3, "\(buffers.count) buffers")
        #expect(read + readers.reduce(0) { $0 + $1.framesDropped } >= 3 * 2000 - 3)
        for reader in readers { await reader.end() }
    }
}

@Suite("Frame extractor", .timeLimit(.minutes(5)))
struct FrameExtractorTests {
    /// Its methods run on the actor, as those of a main-actor class run on the main thread.
    private actor Collector: FrameExtractorDelegate {
        var stamps: [Int64] = []
        var ends: [String] = []

        func captured(_ frame: VideoFrame) {
            preconditionIsolated()
            stamps.append(frame.timestamp.microseconds)
        }

        func extractionEnded(with error: (any Error)?) { ends.append(error.map { "\($0)" } ?? "end") }
    }

    @Test("The delegate is called on its own executor, from start to stop, as often as is wanted")
    func startAndStop() async throws {
        let (source, collector) = (HandCapturer(), Collector())
        let extractor = FrameExtractor(source: source, delegate: collector)
        let rounds = 500
        for round in 1...rounds {
            try await extractor.start()
            try await extractor.start()
            #expect(extractor.isRunning && source.isCapturing)
            source.give(.frame(milliseconds: Int64(round)))
            try await eventually { await collector.stamps.count == round }
            await extractor.stop()
            await extractor.stop()
            #expect(!extractor.isRunning && !source.isCapturing)
        }
        #expect(await collector.stamps == (1...rounds).map { Int64($0) * 1000 })
        #expect(await collector.ends.isEmpty)
        #expect(source.openings == rounds)
    }

    /// Notes where its methods run.
    private final class Placed: FrameExtractorDelegate {
        let executor: OneThread
        let calls = Monitor<[Bool]>([])
        init(_ executor: OneThread) { self.executor = executor }
        var count: Int { calls.withLock { $0.count } }
        func captured(_ frame: VideoFrame) async { calls.withLock { $0.append(executor.isCurrent) } }
        func extractionEnded(with error: (any Error)?) async { calls.withLock { $0.append(executor.isCurrent) } }
    }

    /// An executor with one thread.
    private final class OneThread: TaskExecutor {
        private let jobs = BoundedQueue<UnownedJob>(depth: 1000)
        private let thread = Monitor<WorkerThread?>(nil)

        init() throws {
            let thread = try WorkerThread(name: "executor") { [jobs, unowned self] in
                while let job = jobs.take() { job.runSynchronously(on: asUnownedTaskExecutor()) }
            }
            self.thread.withLock { $0 = thread }
        }

        func enqueue(_ job: consuming ExecutorJob) { _ = jobs.put(UnownedJob(job)) }
        var isCurrent: Bool { thread.withLock { $0 }?.isCurrent ?? false }
        func stop() {
            jobs.close()
            thread.withLock { $0 }?.join()
        }
    }

    @Test("A delegate that is no actor is called on the executor that was chosen, and an actor on its own")
    func executor() async throws {
        let executor = try OneThread()
        let (source, delegate, collector) = (HandCapturer(), Placed(executor), Collector())
        let extractor = FrameExtractor(source: source, on: executor, delegate: delegate)
        try await extractor.start()
        let other = FrameExtractor(source: source, on: executor, delegate: collector)
        try await other.start()
        source.give(.frame(milliseconds: 1))
        try await eventually { delegate.count == 1 }
        try await eventually { await collector.stamps.count == 1 }
        source.give(.end)
        try await eventually { delegate.count == 2 }
        try await eventually { await collector.ends.count == 1 }
        #expect(delegate.calls.withLock { $0 } == [true, true])
        try await eventually { !extractor.isRunning && !other.isRunning }
        executor.stop()
    }

    @Test("The end of the source is reported, with the error if there is one")
    func sourceEnds() async throws {
        let (source, collector) = (HandCapturer(), Collector())
        let extractor = FrameExtractor(source: source, delegate: collector)
        try await extractor.start()
        source.give(.failure)
        try await eventually { await collector.ends.count == 1 }
        #expect(await collector.ends[0].contains("read"))
        #expect(!extractor.isRunning)
        try await extractor.start()
        source.give(.end)
        try await eventually { await collector.ends.count == 2 }
        #expect(await collector.ends[1] == "end")
        source.failsToOpen.withLock { $0 = true }
        await #expect(throws: HandCapturer.Trouble.self) { try await extractor.start() }
        #expect(!extractor.isRunning)
    }

    @Test("An extractor that is released stops its source")
    func release() async throws {
        let (source, collector) = (HandCapturer(), Collector())
        var extractor: FrameExtractor? = FrameExtractor(source: source, delegate: collector)
        try await extractor?.start()
        #expect(source.isCapturing)
        extractor = nil
        try await eventually { !source.isCapturing }
    }

    @Test("The delegate is not kept alive, and without it the source is not used")
    func releasedDelegate() async throws {
        let source = HandCapturer()
        var collector: Collector? = Collector()
        weak let kept = collector
        let extractor = FrameExtractor(source: source, delegate: try #require(collector))
        try await extractor.start()
        source.give(.frame(milliseconds: 1))
        try await eventually { await kept?.stamps.count == 1 }
        collector = nil
        try await eventually { kept == nil }
        source.give(.frame(milliseconds: 2))
        try await eventually { !source.isCapturing && !extractor.isRunning }
    }
}
