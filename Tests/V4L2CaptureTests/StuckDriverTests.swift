import CV4L2
import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

/// What viewers get while a driver is stuck, as those of USB cameras are for many seconds if the device answers no more.
@Suite("A stuck driver", .timeLimit(.minutes(2)))
struct StuckDriverTests {
    private let sink = RecordingSink()

    private func steady(_ fill: UInt8 = 10) -> CameraScript {
        var script = CameraScript(
            events: (0..<20_000).map { .frames([.init(sequence: UInt32($0), nanoseconds: 0, fill: fill)]) }
        )
        script.intervalMilliseconds = 2
        return script
    }

    /// Keeps a driver busy until two more slates have come, and notes whether they have.
    private func untilSlates(_ came: Monitor<[Bool]>) -> @Sendable () -> Void {
        let sink = sink
        return {
            let before = sink.slates
            let limit = MonotonicClock.now + .seconds(15)
            let have = sink.received.wait(until: limit) { $0.substitutes >= before + 2 ? true : nil } ?? false
            came.change { $0.append(have) }
        }
    }

    private func start(_ system: ScriptedSystem) async throws -> CameraSource {
        let source = makeSource(system, outageLimit: nil)
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        return source
    }

    private func waitForPicture(of fill: UInt8) {
        _ = sink.received.waitPatiently { $0.lumas.last == fill ? true : nil }
    }

    // The thread that captures closed the camera and opened it again, and viewers saw one slate for as long.
    @Test("While a lost camera is closed, and while it is opened again, slates come")
    func replugged() async throws {
        let (closing, opening) = (Monitor<[Bool]>([]), Monitor<[Bool]>([]))
        var first = steady()
        first.whileStopping = untilSlates(closing)
        var back = steady(90)
        back.whileOpening = untilSlates(opening)
        let system = ScriptedSystem(first, usesRealClock: true)
        let source = try await start(system)
        system.plug(["/dev/video0": back])
        first.isUnplugged.withLock { $0 = true }
        waitForPicture(of: 90)
        #expect(closing.withLock { $0 } == [true])
        #expect(opening.withLock { !$0.isEmpty && !$0.contains(false) })
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    private let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")

    private func secondCamera() -> CameraScript {
        var script = steady(90)
        script.card = "Second"
        script.busInfo = "test-2"
        return script
    }

    // The change waited for the driver, and so did everybody else.
    @Test("Another camera is changed to although the driver does not let go of the one that is lost")
    func changedWhileClosing() async throws {
        let (isClosing, mayClose) = (Monitor(false), Monitor(false))
        var first = steady()
        first.whileStopping = {
            isClosing.change { $0 = true }
            _ = mayClose.waitPatiently { $0 ? true : nil }
        }
        let other = secondCamera()
        let system = ScriptedSystem(["/dev/video0": first, "/dev/video1": other], usesRealClock: true)
        let source = try await start(system)
        system.plug(["/dev/video1": other])
        first.isUnplugged.withLock { $0 = true }
        _ = isClosing.waitPatiently { $0 ? true : nil }
        try await source.selectCaptureDevice(second)
        #expect(!mayClose.withLock { $0 } && sink.lumas.last == 90 && source.device == second)
        mayClose.change { $0 = true }
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("A change back to a camera that is still being closed waits for that, and the present one goes on meanwhile")
    func changedBack() async throws {
        let (isClosing, refused, wentOn) = (Monitor(false), Monitor(0), Monitor(false))
        var busy = steady()
        busy.failures = [cv4l2_S_FMT: EBUSY]
        busy.whileOpening = { refused.change { $0 += 1 } }
        let (present, back, other) = (busy, steady(50), secondCamera())
        var first = steady()
        let system = ScriptedSystem([:], otherProgram: nil, usesRealClock: true)
        let sink = sink
        first.whileStopping = {
            system.plug(["/dev/video0": present, "/dev/video1": other])
            isClosing.change { $0 = true }
            _ = refused.waitPatiently { $0 > 0 ? true : nil }
            let before = sink.lumas.count { $0 == 90 }
            let goesOn = sink.received.waitPatiently { $0.lumas.count { $0 == 90 } >= before + 5 ? true : nil }
            wentOn.withLock { $0 = goesOn ?? false }
            system.plug(["/dev/video0": back, "/dev/video1": other])
        }
        system.plug(["/dev/video0": first, "/dev/video1": other])
        let source = try await start(system)
        try await source.selectCaptureDevice(second)
        _ = isClosing.waitPatiently { $0 ? true : nil }
        try await source.selectCaptureDevice(testDevice)
        #expect(sink.lumas.last == 50 && wentOn.withLock { $0 } && sink.slates == 0)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("A stop while the camera is closed for another format does not open it again")
    func stoppedWhileClosing() async throws {
        let (isClosing, mayClose, openings) = (Monitor(false), Monitor(false), Monitor(0))
        var script = steady()
        script.whileOpening = { openings.change { $0 += 1 } }
        script.whileStopping = {
            isClosing.change { $0 = true }
            _ = mayClose.waitPatiently { $0 ? true : nil }
        }
        let system = ScriptedSystem(script, usesRealClock: true)
        let source = try await start(system)
        let slow = VideoFormatRequest(frameRate: FrameRate(10))
        let change = Task { try await source.selectCaptureDevice(testDevice, format: slow) }
        _ = isClosing.waitPatiently { $0 ? true : nil }
        let stop = Task { await source.stopCapture() }
        try await eventually("the stop is requested") { !source.isCapturing }
        mayClose.change { $0 = true }
        await stop.value
        await #expect(throws: CancellationError.self) { try await change.value }
        #expect(openings.withLock { $0 } == 1 && system.isAllClosed)
    }

    /// A camera that goes on after a loss, and whose driver does not open it until `mayOpen` says so.
    private func stuckBack(_ isOpening: Monitor<Bool>, _ mayOpen: Monitor<Bool>) -> CameraScript {
        var back = steady(50)
        back.whileOpening = {
            isOpening.change { $0 = true }
            _ = mayOpen.waitPatiently { $0 ? true : nil }
        }
        return back
    }

    // Nobody looked for changes until the driver had opened the camera.
    @Test("Another camera is changed to although the driver does not open the one that was lost, which is closed then")
    func changedWhileOpening() async throws {
        let (isOpening, mayOpen) = (Monitor(false), Monitor(false))
        let (first, other) = (steady(), secondCamera())
        let system = ScriptedSystem(["/dev/video0": first, "/dev/video1": other], usesRealClock: true)
        let source = try await start(system)
        system.plug(["/dev/video0": stuckBack(isOpening, mayOpen), "/dev/video1": other])
        first.isUnplugged.withLock { $0 = true }
        _ = isOpening.waitPatiently { $0 ? true : nil }
        try await source.selectCaptureDevice(second)
        #expect(!mayOpen.withLock { $0 } && sink.lumas.last == 90 && source.device == second)
        mayOpen.change { $0 = true }
        try await eventually("the late camera is closed") { system.record.withLock { $0.openNodes } == 1 }
        sink.waitForFrames(sink.count + 5)
        #expect(source.device == second && !sink.lumas.contains(50))
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("The wait for a lost camera ends at its limit although the driver does not open the camera")
    func limitWhileOpening() async throws {
        let (isOpening, mayOpen) = (Monitor(false), Monitor(false))
        let first = steady()
        let system = ScriptedSystem(first, usesRealClock: true)
        let source = makeSource(system, outageLimit: .seconds(2))
        source.sink = sink
        var failures = source.failures().makeAsyncIterator()
        try await source.startCapture()
        sink.waitForFrames(3)
        system.plug(["/dev/video0": stuckBack(isOpening, mayOpen)])
        first.isUnplugged.withLock { $0 = true }
        _ = isOpening.waitPatiently { $0 ? true : nil }
        // The failure does not wait for the driver, which may never return.
        let failure = await failures.next()
        #expect(failure?.code == .deviceLost && !mayOpen.withLock { $0 })
        mayOpen.change { $0 = true }
        try await eventually("the late camera is closed") { system.isAllClosed }
        #expect(!sink.lumas.contains(50))
    }

    // It was closed on the thread that captures, and the present camera stood still for as long.
    @Test("A new camera that gives nothing, and whose driver is stuck when it is closed, does not stop the present one")
    func silentNewcomer() async throws {
        let closing = Monitor<[Bool]>([])
        var other = secondCamera()
        other.isSilent = Monitor(true)
        let sink = sink
        other.whileStopping = {
            let before = sink.pictures
            let limit = MonotonicClock.now + .seconds(15)
            let came = sink.received.wait(until: limit) {
                $0.timestamps.count - $0.substitutes >= before + 2 ? true : nil
            }
            closing.change { $0.append(came ?? false) }
        }
        let system = ScriptedSystem(["/dev/video0": steady(), "/dev/video1": other], usesRealClock: true)
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: system,
            patience: .seconds(1),
            outageLimit: nil
        ) { LumaConverter() }
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(second) }
        _ = closing.waitPatiently { $0.isEmpty ? nil : true }
        #expect(closing.withLock { $0 } == [true])
        await source.stopCapture()
        #expect(system.isAllClosed)
    }
}
