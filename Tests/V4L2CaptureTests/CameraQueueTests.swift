import CV4L2
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture
@testable import V4L2Capture

private let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")
private let third = CaptureDevice(path: "/dev/video2", name: "Third", busInfo: "test-3", driver: "scripted")

/// What becomes of changes, and of the present camera, while something else takes long.
@Suite("Changes of cameras that overlap", .timeLimit(.minutes(3)))
struct CameraQueueTests {
    /// The result of a change; `nil` until it is known.
    private typealias Answer = Monitor<Result<Duration, any Error>?>

    private let sink = RecordingSink()
    /// The source, for scripts that are written before there is one; the test releases it.
    private let holder = Monitor<CameraSource?>(nil)
    /// Its system, likewise.
    private let systemHolder = Monitor<ScriptedSystem?>(nil)

    /// A camera that goes on, with frames of one value.
    private func script(_ fill: UInt8, card: String = "Scripted", busInfo: String = "test-1") -> CameraScript {
        var script = CameraScript(card: card, busInfo: busInfo)
        script.intervalMilliseconds = 2
        script.events = (0..<20_000).map { number in
            .frames([.init(sequence: UInt32(number), nanoseconds: 0, fill: fill)])
        }
        return script
    }

    private var secondScript: CameraScript { script(90, card: "Second", busInfo: "test-2") }
    private var thirdScript: CameraScript { script(170, card: "Third", busInfo: "test-3") }

    /// A camera whose first frame is damaged, and which fails after that.
    private func failing(_ script: CameraScript) -> CameraScript {
        var script = script
        let flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC) | UInt32(V4L2_BUF_FLAG_ERROR)
        script.events = [.frames([.init(sequence: 0, flags: flags)]), .trouble(.failed, status: EIO)]
        return script
    }

    private func start(
        _ scripts: CameraScript...,
        otherProgram: String? = nil,
        patience: Duration = CameraSource.patience
    ) async throws -> (CameraSource, ScriptedSystem) {
        let named = scripts.enumerated().map { ("/dev/video\($0.offset)", $0.element) }
        let system = ScriptedSystem(
            Dictionary(uniqueKeysWithValues: named),
            otherProgram: otherProgram,
            usesRealClock: true
        )
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: system,
            patience: patience
        ) { LumaConverter() }
        source.sink = sink
        holder.withLock { $0 = source }
        systemHolder.withLock { $0 = system }
        try await source.startCapture()
        sink.waitForFrames(5)
        return (source, system)
    }

    private func finish(_ source: CameraSource) async {
        await source.stopCapture()
        holder.withLock { $0 = nil }
        systemHolder.withLock { $0 = nil }
    }

    /// Asks for a change, which is queued when this returns.
    private func ask(for device: CaptureDevice) -> Answer {
        let answer = Answer(nil)
        _ = holder.withLock { $0 }?.selection.ask(
            for: .init(device: device) { result in answer.change { $0 = result } }
        )
        return answer
    }

    private var deadline: MonotonicInstant { MonotonicClock.now + .seconds(20) }

    /// Waits for five more frames of one value; returns whether they came.
    private func framesCome(of luma: UInt8) -> Bool {
        let before = sink.lumas.count { $0 == luma }
        return sink.received.wait(until: deadline) { received -> Bool? in
            received.lumas.count { $0 == luma } >= before + 5 ? true : nil
        } ?? false
    }

    /// Waits for a slate that comes after `before` ones; returns whether it came.
    private func slateComes(after before: Int) -> Bool {
        sink.received.wait(until: deadline) { $0.substitutes > before ? true : nil } ?? false
    }

    // Its caller was told that it was cancelled, or heard of it late, and the camera before it came back.
    @Test("A change is over with its first frame, also while the next one is under way; the next goes back to it")
    func queued() async throws {
        let (toThird, wasOver) = (Monitor<Answer?>(nil), Monitor(false))
        let toSecond = Monitor<Answer?>(nil)
        var (other, last) = (secondScript, failing(thirdScript))
        other.whileOpening = { toThird.withLock { $0 = $0 ?? ask(for: third) } }
        last.whileOpening = {
            guard framesCome(of: 90), let answer = toSecond.withLock({ $0 }) else { return }
            let isOver = answer.wait(until: deadline) { $0 == nil ? nil : true } ?? false
            wasOver.withLock { $0 = isOver }
        }
        let (source, system) = try await start(script(10), other, last)
        toSecond.withLock { $0 = ask(for: second) }
        #expect(framesCome(of: 90))
        let answer = try #require(toThird.withLock { $0 })
        let result = try #require(answer.waitPatiently { $0 })
        #expect(throws: CameraError.self) { _ = try result.get() }
        #expect(wasOver.withLock { $0 }, "before the third camera was open")
        let first = try #require(toSecond.withLock { $0 }?.waitPatiently { $0 })
        #expect(throws: Never.self) { _ = try first.get() }
        #expect(framesCome(of: 90) && source.device == second, "the last camera that worked")
        await finish(source)
        #expect(system.isAllClosed)
    }

    // Slates came between its pictures.
    @Test("An interruption ends with the present camera's first picture, also while another camera is opened")
    func recovered() async throws {
        let (first, hasEnded, endedMeanwhile) = (script(10), Monitor(false), Monitor(false))
        var other = secondScript
        other.whileOpening = {
            first.isSilent.withLock { $0 = false }
            let result = hasEnded.wait(until: deadline) { $0 ? true : nil } ?? false
            endedMeanwhile.withLock { $0 = $0 || result }
        }
        let (source, _) = try await start(first, other)
        let events = source.captureEvents()
        Task {
            for await case .interruptionEnded in events { hasEnded.change { $0 = true } }
        }
        first.isSilent.withLock { $0 = true }
        sink.waitForSlates(1)
        try await source.selectCaptureDevice(second)
        #expect(endedMeanwhile.withLock { $0 })
        await finish(source)
    }

    // The thread took a whole CPU until the camera was open.
    @Test("While a camera is opened during an outage, a further change that waits lets the capture thread rest")
    func resting() async throws {
        let first = script(10)
        var other = secondScript
        let toThird = Monitor<Answer?>(nil)
        other.whileOpening = {
            guard let system = systemHolder.withLock({ $0 }), toThird.withLock({ $0 == nil }) else { return }
            toThird.withLock { $0 = ask(for: third) }
            let before = system.record.withLock { $0.looksAtClock }
            usleep(300_000)
            let looks = system.record.withLock { $0.looksAtClock } - before
            #expect(looks < 5000, "some hundred thousand without rest")
        }
        let (source, system) = try await start(first, other, thirdScript)
        system.plug(["/dev/video1": other, "/dev/video2": thirdScript])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        _ = ask(for: second)
        #expect(framesCome(of: 170))
        await finish(source)
    }

    // It was refused as busy.
    @Test("If two nodes of one device exclude each other, the present one is closed for the other")
    func exclusive() async throws {
        var sibling = script(90, card: "Second")
        sibling.isExclusive = true
        let device = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-1", driver: "scripted")
        let (source, system) = try await start(script(10), sibling)
        try await source.selectCaptureDevice(device)
        #expect(framesCome(of: 90))
        await finish(source)
        #expect(system.isAllClosed)
    }

    @Test("The present camera is not closed for another node of its device that another program has")
    func takenSibling() async throws {
        var sibling = script(90, card: "Second")
        sibling.isExclusive = true
        let device = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-1", driver: "scripted")
        let (source, system) = try await start(script(10), sibling, otherProgram: "cheese (pid 42)")
        let error = await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(device) }
        #expect(error?.code == .busy && system.calls(cv4l2_STREAMOFF) == 0)
        await finish(source)
    }

    // The capture thread waited for the former camera, and nothing was delivered until that was closed.
    @Test("Slates come while the former camera takes long to close and the new one fails", arguments: [false, true])
    func slowClosing(failsAtOnce: Bool) async throws {
        let came = Monitor<Bool?>(nil)
        var first = script(10)
        let other = failsAtOnce ? failing(secondScript) : secondScript
        first.whileStopping = {
            guard came.withLock({ $0 == nil }) else { return }
            if !failsAtOnce {
                _ = framesCome(of: 90)
                other.isUnplugged.withLock { $0 = true }
            }
            let result = slateComes(after: 0)
            came.change { $0 = result }
        }
        let (source, system) = try await start(first, other)
        let answer = try #require(ask(for: second).waitPatiently { $0 })
        if failsAtOnce { #expect(throws: CameraError.self) { _ = try answer.get() } }
        #expect(came.waitPatiently { $0 } == true)
        await finish(source)
        #expect(system.isAllClosed)
    }

    // The present camera was opened only to be closed.
    @Test("A stop while a change fails does not open the present camera again")
    func stopped() async throws {
        let first = script(10)
        var other = secondScript
        other.failures = [cv4l2_S_FMT: EIO]
        other.whileOpening = {
            first.isUnplugged.withLock { $0 = true }
            // The other node is not counted before it is open.
            _ = systemHolder.withLock { $0 }?.record.wait(until: deadline) { $0.openNodes == 0 ? true : nil }
            holder.withLock { $0 }?.core.abandon(waiting: false)
        }
        let (source, system) = try await start(first, other)
        let answer = try #require(ask(for: second).waitPatiently { $0 })
        #expect(throws: (any Error).self) { _ = try answer.get() }
        await finish(source)
        #expect(system.calls(cv4l2_STREAMON) == 1)
    }

    @Test("A stop cancels a change to a camera that gives no frame")
    func cancelled() async throws {
        var silent = secondScript
        silent.silentWidth = 64
        let (source, system) = try await start(script(10), silent, patience: .seconds(600))
        let answer = ask(for: second)
        _ = system.record.waitPatiently { $0.calls[cv4l2_STREAMON] == 2 ? true : nil }
        await finish(source)
        let result = try #require(answer.waitPatiently { $0 })
        #expect(throws: CancellationError.self) { _ = try result.get() }
    }
}
