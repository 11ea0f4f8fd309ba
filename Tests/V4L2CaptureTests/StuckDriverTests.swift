import Capture
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

    @Test("Another camera is changed to as soon as the driver lets go of the one that is lost")
    func changed() async throws {
        let closing = Monitor<[Bool]>([])
        var first = steady()
        first.whileStopping = untilSlates(closing)
        let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")
        var other = steady(90)
        other.card = "Second"
        other.busInfo = "test-2"
        let system = ScriptedSystem(["/dev/video0": first, "/dev/video1": other], usesRealClock: true)
        let source = try await start(system)
        system.plug(["/dev/video1": other])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        try await source.selectCaptureDevice(second)
        waitForPicture(of: 90)
        #expect(closing.withLock { $0 } == [true] && source.device == second)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    // It was closed on the thread that captures, and the present camera stood still for as long.
    @Test("A new camera that gives nothing, and whose driver is stuck when it is closed, does not stop the present one")
    func silentNewcomer() async throws {
        let closing = Monitor<[Bool]>([])
        let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")
        var other = steady(90)
        other.card = "Second"
        other.busInfo = "test-2"
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
