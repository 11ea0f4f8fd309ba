import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture

@Suite("The capturer core", .timeLimit(.minutes(1)))
struct CaptureCoreTests {
    // The second user took the first one's frames, and its end stopped the first one's capture.
    @Test("Capturing goes on until the last user stops")
    func countedByUse() async throws {
        let source = HandCapturer()
        let (first, second) = (StampSink(), StampSink())
        try await source.startCapture(for: first)
        try await source.startCapture(for: second)
        source.give(.frame(milliseconds: 0), .frame(milliseconds: 33))
        try await eventually { first.count == 2 && second.count == 2 }
        await source.stopCapture(for: second)
        #expect(source.isDeviceOpen)
        source.give(.frame(milliseconds: 66))
        try await eventually { first.count == 3 }
        #expect(second.count == 2)
        await source.stopCapture(for: first)
        #expect(!source.isDeviceOpen && source.openings == 1)
        #expect(source.sinks.statistics(of: first).framesCaptured == 3)
        #expect(source.sinks.statistics(of: second).framesCaptured == 2)
    }

    @Test("The application's own use counts as one, however often it starts and stops")
    func applicationUse() async throws {
        let source = HandCapturer()
        let sink = StampSink()
        try await source.startCapture()
        try await source.startCapture()
        try await source.startCapture(for: sink)
        await source.stopCapture(for: sink)
        #expect(source.isDeviceOpen, "a track's stop is its own")
        try await source.startCapture(for: sink)
        await source.stopCapture()
        await source.stopCapture()
        #expect(source.isDeviceOpen)
        await source.stopCapture(for: sink)
        #expect(!source.isDeviceOpen)
    }

    @Test("A start that fails is the starter's alone, and another one can follow")
    func failedStart() async throws {
        let source = HandCapturer()
        source.failsToOpen.withLock { $0 = true }
        let sink = StampSink()
        await #expect(throws: HandCapturer.Trouble(what: "open")) { try await source.startCapture(for: sink) }
        await #expect(throws: HandCapturer.Trouble(what: "open")) { try await source.startCapture() }
        #expect(source.failure as? HandCapturer.Trouble == HandCapturer.Trouble(what: "open"))
        source.failsToOpen.withLock { $0 = false }
        try await source.startCapture(for: sink)
        #expect(source.failure == nil)
        await source.stopCapture(for: sink)
        #expect(!source.isDeviceOpen)
    }

    @MainActor
    @Test("A start blocks nobody: the actor that waits for it goes on with other work")
    func startingActor() async throws {
        let source = HandCapturer()
        let (isOpening, isHelped) = (Monitor(false), Monitor(false))
        let wasHelped = Monitor(true)
        source.whileOpening.withLock { action in
            action = {
                isOpening.change { $0 = true }
                // The time limit alone ends the wait if the actor is blocked.
                let help = isHelped.wait(until: MonotonicClock.now + .seconds(5)) { $0 ? true : nil }
                wasHelped.withLock { $0 = $0 && help == true }
            }
        }
        let first = Task { try await source.startCapture() }
        try await eventually { isOpening.withLock { $0 } }
        let second = Task { try await source.startCapture() }
        for _ in 0..<20 { await Task.yield() }
        isHelped.change { $0 = true }
        try await first.value
        try await second.value
        #expect(wasHelped.withLock { $0 } && source.isDeviceOpen)
        await source.stopCapture()
    }

    @Test("Counts go on after a restart, and the time between does not count")
    func statisticsOutliveRestart() async throws {
        let source = HandCapturer()
        let sink = StampSink()
        for (round, start) in [Int64(0), 1_000_000].enumerated() {
            try await source.startCapture(for: sink)
            source.give(.frame(milliseconds: start), .frame(milliseconds: start + 100))
            try await eventually { sink.count == 2 * (round + 1) }
            await source.stopCapture(for: sink)
        }
        #expect(source.captureStatistics.framesCaptured == 4)
        #expect(source.captureStatistics.captureDuration == .milliseconds(200))
        #expect(source.sinks.statistics(of: sink).framesCaptured == 4)
    }

    @Test("Failures, interruptions and ends are told to every listener, and a stop is none of them")
    func events() async throws {
        let source = HandCapturer()
        let told = Monitor<[String]>([])
        for _ in 0..<2 {
            let events = source.captureEvents()
            Task {
                for await event in events {
                    let words =
                        switch event {
                        case .interrupted(let error): "interrupted \(error)"
                        case .interruptionEnded: "again"
                        case .noFramesCaptured(let error), .warning(let error): "warning \(error)"
                        case .failed(let error): "failed \(error)"
                        case .finished: "finished"
                        }
                    told.withLock { $0.append(words) }
                }
            }
        }
        try await source.startCapture()
        source.give(.interruption, .interruptionEnd, .failure)
        try await eventually { told.withLock { $0.count } == 6 }
        #expect(source.failure as? HandCapturer.Trouble == HandCapturer.Trouble(what: "read"))
        try await source.startCapture()
        #expect(source.failure == nil)
        source.give(.end)
        try await eventually { told.withLock { $0.count } == 8 }
        try await source.startCapture()
        await source.stopCapture()
        try await source.startCapture()
        source.give(.end)
        try await eventually { told.withLock { $0.count } == 10 }
        #expect(told.withLock { $0.count { $0.hasPrefix("failed") } } == 2)
        #expect(source.captureStatistics.interruptions == 1)
        #expect(told.withLock { $0.count { $0.hasPrefix("finished") } } == 4)
    }

    @Test("After a failure one user's new start brings the others their frames again")
    func restartAfterFailure() async throws {
        let source = HandCapturer()
        let (first, second) = (StampSink(), StampSink())
        try await source.startCapture(for: first)
        try await source.startCapture(for: second)
        source.give(.failure)
        try await eventually { source.failure != nil }
        try await source.startCapture(for: second)
        source.give(.frame(milliseconds: 0))
        try await eventually { first.count == 1 && second.count == 1 }
        await source.stopCapture(for: first)
        await source.stopCapture(for: second)
        #expect(!source.isDeviceOpen)
    }

    // Nobody could end its use any more, and the camera stayed open.
    @Test("A user that was released after a failure does not keep the next capture going")
    func lostUser() async throws {
        let source = HandCapturer()
        // Both exist at once, so that they are two objects by their addresses, too.
        let sink = StampSink()
        var lost: StampSink? = StampSink()
        weak let watched = lost
        if let lost { try await source.startCapture(for: lost) }
        source.give(.failure)
        try await eventually { source.failure != nil }
        lost = nil
        try await eventually("the source lets go of it") { watched == nil }
        try await source.startCapture(for: sink)
        await source.stopCapture(for: sink)
        #expect(!source.isCapturing && !source.isDeviceOpen)
    }

    @Test("A sink that is removed while capturing is a user no more", arguments: [false, true])
    func removedUser(isOnly: Bool) async throws {
        let source = HandCapturer()
        let (leaving, staying) = (StampSink(), StampSink())
        source.sink = leaving
        try await source.startCapture(for: leaving)
        if !isOnly { try await source.startCapture(for: staying) }
        if isOnly { source.sink = nil } else { source.sinks.remove(leaving) }
        if !isOnly {
            source.give(.frame(milliseconds: 0))
            try await eventually { staying.count == 1 }
            await source.stopCapture(for: staying)
        }
        try await eventually { !source.isCapturing && !source.isDeviceOpen }
        #expect(leaving.count == 0)
    }

    @Test("A sink gets no frame after its stop has returned, though others do")
    func stoppedMeansStopped() async throws {
        let source = HandCapturer()
        let (leaving, staying) = (StampSink(), StampSink())
        try await source.startCapture(for: leaving)
        try await source.startCapture(for: staying)
        let gate = Monitor(false)
        let isInside = Monitor(false)
        leaving.atNextFrame {
            isInside.change { $0 = true }
            _ = gate.wait { $0 ? true : nil }
        }
        source.give(.frame(milliseconds: 0))
        try await eventually { isInside.withLock { $0 } }
        let hasStopped = Monitor(false)
        let stop = Task {
            await source.stopCapture(for: leaving)
            hasStopped.withLock { $0 = true }
        }
        for _ in 0..<20 { await Task.yield() }
        #expect(!hasStopped.withLock { $0 }, "it waits for the frame that is being taken")
        gate.change { $0 = true }
        await stop.value
        source.give(.frame(milliseconds: 33))
        try await eventually { staying.count == 2 }
        #expect(leaving.count == 1)
        await source.stopCapture(for: staying)
    }

    @Test("A start while the source stops waits for its end, and captures again")
    func startWhileStopping() async throws {
        let source = HandCapturer()
        let (leaving, coming) = (StampSink(), StampSink())
        try await source.startCapture(for: leaving)
        let (gate, isInside) = (Monitor(false), Monitor(false))
        leaving.atNextFrame {
            isInside.change { $0 = true }
            _ = gate.wait(until: MonotonicClock.now + patience) { $0 ? true : nil }
        }
        source.give(.frame(milliseconds: 0))
        try await eventually { isInside.withLock { $0 } }
        let stop = Task { await source.stopCapture(for: leaving) }
        try await eventually("the stop is under way") { !source.core.isCapturing }
        let start = Task { try await source.startCapture(for: coming) }
        for _ in 0..<20 { await Task.yield() }
        gate.change { $0 = true }
        await stop.value
        try await start.value
        source.give(.frame(milliseconds: 33))
        try await eventually("a frame comes after the new start") { coming.count > 0 }
        await source.stopCapture(for: coming)
        #expect(!source.isDeviceOpen && source.openings == 2)
    }

    @Test("Many users that come and go at once leave the source stopped, and each start succeeds")
    func concurrentUsers() async throws {
        let source = HandCapturer()
        try await withThrowingTaskGroup { group in
            for _ in 0..<40 {
                group.addTask {
                    let sink = StampSink()
                    try await source.startCapture(for: sink)
                    #expect(source.isDeviceOpen)
                    await source.stopCapture(for: sink)
                }
            }
            try await group.waitForAll()
        }
        #expect(!source.isDeviceOpen)
    }

    // Its first picture came with the next one for the other: up to ten seconds later.
    @Test("A user that wants few pictures keeps no other one waiting")
    func slowUser() async throws {
        let source = PacedSource(dimensions: Dimensions(width: 32, height: 16), frameRate: FrameRate(20)) { _, _ in true
        }
        let (slow, fast) = (StampSink(), StampSink())
        source.sinks.add(slow)
        source.sinks.request(VideoFormatRequest(frameRate: FrameRate(numerator: 1, denominator: 10)), for: slow)
        try await source.startCapture(for: slow)
        try await eventually { slow.count == 1 }
        try await Task.sleep(for: .seconds(3))
        try await source.startCapture(for: fast)
        try await eventually("its pictures", within: .seconds(5)) { fast.count >= 3 }
        #expect(source.captureStatistics.framesDropped[.late] < 40, "no slot was missed")
        await source.stopCapture(for: slow)
        await source.stopCapture(for: fast)
    }

    @Test("A custom painted source delivers at its rate and ends when it says so")
    func pacedSource() async throws {
        let source = PacedSource(dimensions: Dimensions(width: 32, height: 16), frameRate: FrameRate(200)) {
            buffer,
            picture in
            buffer.withMutablePlanes { luma, _, _ in luma.update(repeating: UInt8(picture.number)) }
            return picture.number < 5
        }
        let sink = StampSink()
        var events = source.captureEvents().makeAsyncIterator()
        try await source.startCapture(for: sink)
        guard case .finished? = await events.next() else { throw TestFailure("no end") }
        let statistics = source.captureStatistics
        #expect(sink.count > 0 && statistics.framesCaptured == sink.count + statistics.framesDropped.total)
        await source.stopCapture(for: sink)
    }
}
