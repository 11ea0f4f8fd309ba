import CV4L2
import Glibc
import Capture
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

private let lost = CameraScript.Event.trouble([.failed, .gone], status: ENODEV)

@Suite("Capturing", .timeLimit(.minutes(3)))
struct CameraSourceTests {
    @Test("Frames are delivered in order, with the driver's stamps, and counted")
    func delivery() async throws {
        let sink = RecordingSink()
        let result = try await captureToTheEnd(CameraScript(events: CameraScript.steady(30) + [lost]), sink: sink)
        #expect(sink.count == 30)
        #expect(sink.timestamps == (1...30).map { MonotonicInstant(nanoseconds: $0 * 33_333_333 / 1000 * 1000) })
        #expect(result.statistics.framesCaptured == 30)
        #expect(result.statistics.framesDropped.total == 0 && result.statistics.framesMissed == 0)
        #expect(result.statistics.captureDuration == .microseconds(966_666))
        #expect(result.format?.description == "64x48 30 fps YUYV")
        #expect(result.failure?.code == .deviceLost)
        #expect(result.closed)
    }

    @Test("The newest of several ready frames wins, and the others are late")
    func newestWins() async throws {
        let sink = RecordingSink()
        let frames = (0..<3).map { CameraScript.Frame(sequence: UInt32($0), fill: UInt8(10 + $0)) }
        let result = try await captureToTheEnd(CameraScript(events: [.frames(frames), lost]), sink: sink)
        #expect(sink.lumas == [12])
        #expect(result.statistics.framesCaptured == 3 && result.statistics.framesDropped[.late] == 2)
    }

    @Test("Three loops over a camera's frames share one conversion of each frame")
    func sharedConversion() async throws {
        let conversions = Monitor(0)
        let script = CameraScript(events: CameraScript.steady(10_000), intervalMilliseconds: 2)
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: ScriptedSystem(script),
            outageLimit: .zero
        ) {
            LumaConverter { _ in conversions.withLock { $0 += 1 } }
        }
        // A loop that ended before another began would stop the camera, which then counts from the start.
        let begun = Monitor(0)
        let loops = (0..<3).map { _ in
            Task {
                var buffers: [MonotonicInstant: ObjectIdentifier] = [:]
                for await frame in source.frames {
                    if buffers.isEmpty { begun.withLock { $0 += 1 } }
                    buffers[frame.timestamp] = ObjectIdentifier(frame.buffer)
                    if buffers.count >= 50, begun.withLock({ $0 }) == 3 { break }
                }
                return buffers
            }
        }
        var shared: [MonotonicInstant: ObjectIdentifier] = [:]
        for loop in loops {
            let buffers = await loop.value
            #expect(buffers.count >= 50)
            #expect(buffers.allSatisfy { shared[$0.key] == nil || shared[$0.key] == $0.value })
            shared.merge(buffers) { first, _ in first }
        }
        let converted = conversions.withLock { $0 }
        #expect(converted >= shared.count && converted <= source.captureStatistics.framesCaptured)
    }

    @Test("Frames that are marked damaged, empty, too long or short are corrupt, and an older whole one is used")
    func corrupt() async throws {
        let error = UInt32(V4L2_BUF_FLAG_ERROR)
        let sink = RecordingSink()
        let script = CameraScript(events: [
            .frames([.init(sequence: 0, fill: 7), .init(sequence: 1, flags: error)]),
            .frames([.init(sequence: 2, bytesUsed: 0)]),
            .frames([.init(sequence: 3, bytesUsed: 1 << 20)]),
            .frames([.init(sequence: 4, bytesUsed: 64 * 48)]),
            .frames([.init(sequence: 5, nanoseconds: 1_200_000_000, fill: 9)]),
            lost,
        ])
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(sink.lumas == [7, 9])
        #expect(result.statistics.framesCaptured == 6)
        #expect(result.statistics.framesDropped[.corrupt] == 4 && result.statistics.framesDropped.total == 4)
        #expect(result.statistics.captureDuration == .milliseconds(200))
    }

    @Test(
        "Gaps in the driver's numbers are missed frames; a counter that stands still or starts anew is none",
        arguments: [
            ([0, 1, 2], 0), ([5, 6, 9], 2), ([0, 0, 0], 0), ([4_294_967_294, 1], 2), ([7_000_000, 0, 1], 0),
        ] as [([UInt32], Int)]
    )
    func sequenceGaps(numbers: [UInt32], missed: Int) async throws {
        let events = numbers.map { CameraScript.Event.frames([.init(sequence: $0)]) }
        let result = try await captureToTheEnd(CameraScript(events: events + [lost]))
        #expect(result.statistics.framesMissed == missed)
    }

    @Test("A frame that the driver hands over behind a newer one is late, and not missed", arguments: [true, false])
    func overtaken(isStamped: Bool) async throws {
        let sink = RecordingSink()
        let flags = isStamped ? UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC) : 0
        let numbers: [UInt8] = [0, 1, 3, 2, 4, 8, 6, 9]
        let events = numbers.map { number in
            let time = (Int64(number) + 1) * 33_333_333
            let frame = CameraScript.Frame(sequence: UInt32(number), flags: flags, nanoseconds: time, fill: 10 + number)
            return CameraScript.Event.frames([frame])
        }
        let result = try await captureToTheEnd(CameraScript(events: events + [lost]), sink: sink)
        #expect(sink.lumas == [10, 11, 13, 14, 18, 19])
        #expect(result.statistics.framesCaptured == 8)
        #expect(result.statistics.framesDropped[.late] == 2 && result.statistics.framesDropped.total == 2)
        // 5 and 7 never came.
        #expect(result.statistics.framesMissed == 2)
        #expect(result.statistics.timestampsReplaced == (isStamped ? 0 : 6))
    }

    @Test("A stamp of another clock, none, or one in the future becomes the present")
    func timestamps() async throws {
        let sink = RecordingSink()
        let before = MonotonicClock.now
        let future = before.nanoseconds + 3_600_000_000_000
        let script = CameraScript(events: [
            // Another clock may show about the same time.
            .frames([.init(sequence: 0, flags: 0, nanoseconds: before.nanoseconds)]),
            .frames([.init(sequence: 1, nanoseconds: 0)]),
            .frames([.init(sequence: 2, nanoseconds: future)]),
            .frames([.init(sequence: 3, nanoseconds: .max)]),
            lost,
        ])
        let result = try await captureToTheEnd(script, sink: sink, usesRealClock: true)
        #expect(sink.count == 4 && result.statistics.timestampsReplaced == 4)
        for timestamp in sink.timestamps { #expect(timestamp >= before && timestamp <= MonotonicClock.now) }
    }

    @Test("A buffer that the driver refuses to take back is offered again")
    func refusedBuffer() async throws {
        let script = CameraScript(
            periodicFailures: [cv4l2_QBUF: (every: 5, status: EINVAL)],
            events: CameraScript.steady(40) + [lost]
        )
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(sink.count == 40 && result.failure?.code == .deviceLost)
    }

    @Test("A camera that streams nothing is a failure of its own")
    func silence() async throws {
        let result = try await captureToTheEnd(CameraScript(events: CameraScript.steady(2) + [.silence]))
        #expect(result.failure?.code == .noFrames)
        #expect(result.statistics.framesCaptured == 2 && result.closed)
    }

    @Test("A node that is always readable and never has a frame counts as silent")
    func emptyReadiness() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(1), isAlwaysReadable: true))
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: system,
            patience: .milliseconds(20),
            outageLimit: .zero
        ) { LumaConverter() }
        var failures = source.failures().makeAsyncIterator()
        try await source.startCapture()
        #expect(await failures.next()?.code == .noFrames)
        #expect(source.captureStatistics.framesCaptured == 1 && system.isAllClosed)
    }

    @Test("One converter serves a whole run of the camera, however many frames it gives")
    func converters() async throws {
        let made = Monitor(0)
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(400) + [lost]))
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: system,
            outageLimit: .zero
        ) {
            made.withLock { $0 += 1 }
            return LumaConverter()
        }
        let sink = RecordingSink()
        source.sink = sink
        for run in 1...2 {
            var failures = source.failures().makeAsyncIterator()
            try await source.startCapture()
            #expect(await failures.next() != nil)
            #expect(sink.count == 400 * run && made.withLock { $0 } == run)
        }
    }

    @Test("A lower rate that is asked for leaves frames out, unconverted")
    func decimation() async throws {
        let sink = RecordingSink()
        let result = try await captureToTheEnd(
            CameraScript(events: CameraScript.steady(60) + [lost]),
            request: VideoFormatRequest(frameRate: FrameRate(10)),
            sink: sink
        )
        #expect((19...21).contains(sink.count))
        #expect(result.statistics.framesDropped[.notWanted] == 60 - sink.count)
    }

    @Test("The requirements of a sink count where nothing else is requested")
    func sinkRequirements() async throws {
        let script = CameraScript(
            formats: [.init(pixelFormat: .yuyv, sizes: .discrete([(64, 48), (32, 24)]), rates: .discrete([30]))],
            events: CameraScript.steady(30) + [lost]
        )
        let sink = RecordingSink(
            VideoFormatRequest(dimensions: Dimensions(width: 32, height: 24), frameRate: FrameRate(15))
        )
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(result.format?.dimensions == Dimensions(width: 32, height: 24))
        #expect((14...16).contains(sink.count))
    }

    @Test("Without a sink frames are counted as not wanted")
    func withoutSink() async throws {
        let result = try await captureToTheEnd(CameraScript(events: CameraScript.steady(5) + [lost]), sink: nil)
        #expect(result.statistics.framesDropped[.notWanted] == 5)
    }

    @Test("A request is passed on to the sink and its rate taken up while capturing")
    func requestWhileCapturing() async throws {
        var script = CameraScript(events: CameraScript.steady(20_000))
        script.intervalMilliseconds = 1
        let source = makeSource(ScriptedSystem(script))
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(1)
        source.requestOutputFormat(VideoFormatRequest(frameRate: FrameRate(5)))
        #expect(sink.received.withLock { $0.requests } == [VideoFormatRequest(frameRate: FrameRate(5))])
        let count = sink.count
        sink.waitForFrames(count + 8)
        let timestamps = sink.timestamps.suffix(6)
        let intervals = zip(timestamps, timestamps.dropFirst()).map { $1.duration(since: $0) }
        #expect(intervals.allSatisfy { $0 > .milliseconds(150) && $0 < .milliseconds(250) }, "\(intervals)")
        await source.stopCapture()
    }

    @Test("Stopping ends the thread, closes the device and lets the sink go; starting again captures anew")
    func restart() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(10)))
        let source = makeSource(system)
        for round in 1...5 {
            let sink = RecordingSink()
            source.sink = sink
            try await source.startCapture()
            try await source.startCapture()
            sink.waitForFrames(10)
            await source.stopCapture()
            await source.stopCapture()
            #expect(system.isAllClosed)
            #expect(source.captureStatistics.framesCaptured == 10 * round && source.failure == nil)
        }
        #expect(source.sink == nil)
    }

    @Test("The sink is kept alive from start to stop, and not while idle")
    func sinkLifetime() async throws {
        let source = makeSource(ScriptedSystem(CameraScript()))
        source.sink = RecordingSink()
        #expect(source.sink == nil)
        let kept = RecordingSink()
        source.sink = kept
        try await source.startCapture()
        source.sink = RecordingSink()
        #expect(source.sink != nil)
        await source.stopCapture()
        #expect(source.sink == nil)
        withExtendedLifetime(kept) {}
    }

    @Test("A source that is forgotten while it captures stops by itself")
    func forgotten() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(3)))
        var source: CameraSource? = makeSource(system)
        let sink = RecordingSink()
        source?.sink = sink
        let failures = source?.failures()
        try await source?.startCapture()
        sink.waitForFrames(3)
        source = nil
        if let failures { for await _ in failures { Issue.record("forgetting is no failure") } }
        _ = system.record.waitPatiently { $0.openNodes == 0 && $0.mappedBuffers == 0 ? true : nil }
        #expect(system.isAllClosed)
    }

    @Test("Starting and stopping from several tasks at once leaves nothing open")
    func concurrentStartStop() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(3)))
        let source = makeSource(system)
        await withTaskGroup { group in
            for number in 0..<40 {
                group.addTask {
                    if number % 2 == 0 { try? await source.startCapture() } else { await source.stopCapture() }
                }
            }
        }
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("After a failure capture can be started again, and the failure is forgotten")
    func restartAfterFailure() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(2) + [lost]))
        let source = makeSource(system)
        let sink = RecordingSink()
        source.sink = sink
        var failures = source.failures().makeAsyncIterator()
        for round in 1...3 {
            try await source.startCapture()
            #expect(await failures.next()?.code == .deviceLost)
            #expect(source.cameraFailure?.code == .deviceLost)
            #expect(sink.count == 2 * round)
        }
        await source.stopCapture()
    }
}
