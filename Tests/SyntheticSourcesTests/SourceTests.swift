import Glibc
import Capture
import MediaCore
import Synchronization
import SyntheticSources
import Testing
import Threading

/// Keeps what a source delivers.
final class CollectingSink: VideoSink {
    struct State {
        var frames: [VideoFrame] = []
        var requests: [VideoFormatRequest] = []
        var actions: [@Sendable () -> Void] = []
    }

    let state = Monitor(State())
    let sourceRequirements: VideoFormatRequest

    init(_ requirements: VideoFormatRequest = VideoFormatRequest()) {
        sourceRequirements = requirements
    }

    func onVideoFrame(_ frame: VideoFrame) {
        let actions = state.change { state in
            state.frames.append(frame)
            defer { state.actions = [] }
            return state.actions
        }
        for action in actions { action() }
    }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {
        state.change { $0.requests.append(request) }
    }

    var frames: [VideoFrame] { state.withLock { $0.frames } }

    /// Waits until there are `count` frames in all.
    func frames(atLeast count: Int) -> [VideoFrame] {
        state.wait { $0.frames.count >= count ? $0.frames : nil } ?? []
    }
}

/// The number in a pattern's barcode.
func number(of frame: VideoFrame) throws -> UInt32 {
    guard case .value(let barcode) = Barcode.read(from: frame.buffer) else {
        throw UnreadablePicture()
    }
    return barcode.number
}

struct UnreadablePicture: Error {}

/// How many threads of this process bear the name.
///
/// With the C library's calls, as Foundation leaks when a thread ends while its file is read.
func threads(named name: String) -> Int {
    guard let directory = opendir("/proc/self/task") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
        let task = withUnsafePointer(to: &entry.pointee.d_name) { name in
            name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        let file = open("/proc/self/task/\(task)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { continue }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 32)
        let length = read(file, &text, text.count)
        if length > 0, text.prefix(length).elementsEqual("\(name)\n".utf8) { count += 1 }
    }
    return count
}

@Suite("Sources", .serialized, .timeLimit(.minutes(3)))
struct SourceTests {
    private let small = Dimensions(width: 160, height: 120)

    @Test("Frames come in order, never before they are due, and all slots are accounted for")
    func pacing() async throws {
        let sink = CollectingSink()
        let source = PatternSource(dimensions: small, frameRate: FrameRate(100))
        source.sink = sink
        try await source.startCapture()
        _ = sink.frames(atLeast: 30)
        await source.stopCapture()
        let frames = sink.frames
        let numbers = try frames.map(number)
        let first = try #require(frames.first)
        for (frame, number) in zip(frames, numbers) {
            guard case .value(let barcode) = Barcode.read(from: frame.buffer) else { throw UnreadablePicture() }
            #expect(barcode.timestamp.microseconds == frame.timestamp.microseconds)
            // The first frame may be late by almost an interval, the others not early.
            let due = FrameRate(100).interval * (Int(number) - Int(numbers[0]) - 1)
            #expect(frame.timestamp.duration(since: first.timestamp) > due)
        }
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        let statistics = source.captureStatistics
        #expect(statistics.framesCaptured == frames.count + statistics.framesDropped.total)
        #expect(statistics.framesCaptured == Int(try #require(numbers.last)) + 1)
        #expect(statistics.framesDropped.total == statistics.framesDropped[.late])
    }

    @Test("A sink that takes too long costs the slots in between, counted as late")
    func slowSink() async throws {
        let sink = CollectingSink()
        sink.state.withLock { $0.actions = [{ usleep(100_000) }] }
        let source = PatternSource(dimensions: small, frameRate: FrameRate(200))
        source.sink = sink
        try await source.startCapture()
        _ = sink.frames(atLeast: 3)
        await source.stopCapture()
        let numbers = try sink.frames.prefix(2).map(number)
        #expect(numbers[1] - numbers[0] >= 19)
        #expect(source.captureStatistics.framesDropped[.late] >= 18)
        #expect(
            source.captureStatistics.framesCaptured - source.captureStatistics.framesDropped.total == sink.frames.count
        )
    }

    @Test("Stopped means stopped, and numbers go on after a restart")
    func stopAndRestart() async throws {
        let sink = CollectingSink()
        let source = PatternSource(dimensions: small, frameRate: FrameRate(200))
        source.sink = sink
        try await source.startCapture()
        try await source.startCapture()
        _ = sink.frames(atLeast: 3)
        async let firstStop: Void = source.stopCapture()
        async let secondStop: Void = source.stopCapture()
        _ = await (firstStop, secondStop)
        let delivered = sink.frames.count
        #expect(threads(named: "pattern") <= 1)
        try await Task.sleep(for: .milliseconds(50))
        #expect(sink.frames.count == delivered)
        try await source.startCapture()
        _ = sink.frames(atLeast: delivered + 3)
        await source.stopCapture()
        await source.stopCapture()
        let numbers = try sink.frames.map(number)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        let statistics = source.captureStatistics
        #expect(statistics.framesCaptured - statistics.framesDropped.total == sink.frames.count)
    }

    @Test("Many starts and stops at once leave the source stopped and in order")
    func concurrentStartStop() async throws {
        let sink = CollectingSink()
        let source = PatternSource(dimensions: small, frameRate: FrameRate(240))
        source.sink = sink
        try await withThrowingTaskGroup { group in
            for index in 0..<40 {
                group.addTask {
                    guard index.isMultiple(of: 2) else { return await source.stopCapture() }
                    // A stop that comes while it starts ends the start.
                    do { try await source.startCapture() } catch is CancellationError {}
                }
            }
            try await group.waitForAll()
        }
        await source.stopCapture()
        let numbers = try sink.frames.map(number)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test("A stop does not wait for the next frame of a slow source")
    func promptStop() async throws {
        let sink = CollectingSink()
        let source = PatternSource(dimensions: small, frameRate: FrameRate(numerator: 1, denominator: 10))
        source.sink = sink
        try await source.startCapture()
        _ = sink.frames(atLeast: 1)
        let began = ContinuousClock.now
        await source.stopCapture()
        // The next frame is due after 10 s; a stop that waits for it may also discard it.
        #expect(began.duration(to: .now) < .seconds(8))
        #expect(sink.frames.count == 1)
    }

    @Test("Size and rate that are asked for come into force, and the sink hears of them")
    func formatRequest() async throws {
        let sink = CollectingSink()
        let source = NoiseSource(dimensions: small, frameRate: FrameRate(240))
        source.sink = sink
        try await source.startCapture()
        _ = sink.frames(atLeast: 2)
        let wanted = Dimensions(width: 101, height: 67)
        let request = VideoFormatRequest(dimensions: wanted, frameRate: FrameRate(50))
        source.requestOutputFormat(request)
        let before = sink.frames.count
        let frames = sink.frames(atLeast: before + 6).dropFirst(before + 1)
        await source.stopCapture()
        #expect(sink.state.withLock { $0.requests } == [request])
        #expect(frames.allSatisfy { $0.dimensions == wanted })
        let first = try #require(frames.first)
        for (index, frame) in frames.enumerated() {
            #expect(frame.timestamp.duration(since: first.timestamp) > .milliseconds(20) * (index - 1))
        }
    }

    @Test("The source follows a sink's requirements if they are less than its own format")
    func requirements() async throws {
        for (required, delivered) in [
            (Dimensions(width: 32, height: 16), 32), (Dimensions(width: 1920, height: 1080), 160),
        ] {
            let sink = CollectingSink(VideoFormatRequest(dimensions: required))
            let source = NoiseSource(dimensions: small, frameRate: FrameRate(240))
            source.sink = sink
            try await source.startCapture()
            #expect(sink.frames(atLeast: 1)[0].dimensions.width == delivered)
            await source.stopCapture()
        }
    }

    @Test("A source without a sink captures for nobody, and says so")
    func noSink() async throws {
        let source = PatternSource(dimensions: small, frameRate: FrameRate(240))
        try await source.startCapture()
        while source.captureStatistics.framesCaptured < 3 { await Task.yield() }
        await source.stopCapture()
        #expect(source.captureStatistics.framesCaptured == source.captureStatistics.framesDropped.total)
        #expect(source.captureStatistics.framesDropped[.notWanted] > 0)
    }

    @Test("The sink is held from start to stop alone")
    func sinkLifetime() async throws {
        let source = PatternSource(dimensions: small, frameRate: FrameRate(240))
        var sink: CollectingSink? = CollectingSink()
        weak let weakSink = sink
        source.sink = sink
        try await source.startCapture()
        _ = sink?.frames(atLeast: 1)
        sink = nil
        #expect(weakSink != nil)
        await source.stopCapture()
        #expect(weakSink == nil && source.sink == nil)
    }

    @Test("A source that is dropped without a stop leaves no thread and no sink behind")
    func forgottenStop() async throws {
        var source: PatternSource? = PatternSource(dimensions: small, frameRate: FrameRate(240))
        var sink: CollectingSink? = CollectingSink()
        weak let weakSink = sink
        source?.sink = sink
        try await source?.startCapture()
        _ = sink?.frames(atLeast: 1)
        sink = nil
        source = nil
        #expect(weakSink == nil)
        while threads(named: "pattern") > 0 { await Task.yield() }
    }

    @Test("A source whose last reference is dropped by its sink, on its own thread, ends by itself")
    func droppedOnOwnThread() async throws {
        let holder = Monitor<NoiseSource?>(NoiseSource(dimensions: small, frameRate: FrameRate(240)))
        let hasStarted = Monitor(false)
        let sink = CollectingSink()
        sink.state.withLock {
            $0.actions = [
                {
                    // Until its start has returned, the source is held by that too.
                    _ = hasStarted.wait { $0 ? true : nil }
                    let source = holder.withLock { held in
                        defer { held = nil }
                        return held
                    }
                    _ = consume source
                }
            ]
        }
        try await start(holder, with: sink)
        hasStarted.change { $0 = true }
        while threads(named: "noise") > 0 { await Task.yield() }
        #expect(sink.frames.count == 1)
    }

    private func start(_ holder: Monitor<NoiseSource?>, with sink: CollectingSink) async throws {
        let source = holder.withLock { $0 }
        source?.sink = sink
        let task = Task { [weak source] in try await source?.startCapture() }
        _ = consume source
        try await task.value
    }
}
