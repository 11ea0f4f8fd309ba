import CV4L2
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture
@testable import V4L2Capture

/// Receivers of HDMI and the like, whose pictures are as large as what somebody connects.
@Suite("A receiver's signal", .timeLimit(.minutes(1)))
struct SignalTests {
    private let sink = RecordingSink()
    private let signal = Monitor(CameraScript.Signal())

    private func receiver() -> CameraScript {
        var script = CameraScript(driver: "tc358743", events: CameraScript.steady(20_000))
        script.intervalMilliseconds = 1
        script.signal = signal
        return script
    }

    // Its size stayed what another program had set, or that of the driver's start.
    @Test("The receiver is set to its signal before its format is asked for")
    func followed() async throws {
        let system = ScriptedSystem(receiver())
        let source = makeSource(system)
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(2)
        #expect(system.calls(cv4l2_S_DV_TIMINGS) == 1)
        await source.stopCapture()
    }

    @Test("A camera has no signal, and is not asked to tell of one")
    func camera() async throws {
        let system = ScriptedSystem(CameraScript(events: CameraScript.steady(3) + [.silence]))
        let source = makeSource(system)
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(2)
        #expect(system.calls(cv4l2_S_DV_TIMINGS) == 0 && system.calls(cv4l2_SUBSCRIBE_EVENT) == 0)
        await source.stopCapture()
    }

    @Test("Without a signal that it can take, it says what to do", arguments: [ENOLINK, ENOLCK, ERANGE])
    func missing(_ status: Int32) async throws {
        signal.withLock { $0.status = status }
        let source = makeSource(ScriptedSystem(receiver()))
        let error = await #expect(throws: CameraError.self) { try await source.startCapture() }
        #expect(error?.code == .noSignal && error?.attempt == "find the signal of")
        #expect(error?.explanation.contains("source") == true)
    }

    @Test("After a change of its signal it is set up anew, also if none comes for a while; slates come meanwhile")
    func changed() async throws {
        let system = ScriptedSystem(receiver())
        let source = makeSource(system, outageLimit: nil)
        source.sink = sink
        let words = Monitor<[String]>([])
        let events = source.captureEvents()
        Task {
            for await case .interrupted(let error) in events { words.change { $0.append("\(error)") } }
        }
        try await source.startCapture()
        sink.waitForFrames(2)
        // vivid tells of a change as soon as it is listened to.
        signal.withLock { $0.changes = 2 }
        sink.waitForFrames(9)
        #expect(sink.slates == 0)
        signal.withLock { $0 = CameraScript.Signal(status: ENOLINK, width: 48, changes: 3) }
        sink.waitForSlates(3)
        #expect(source.failure == nil && system.calls(cv4l2_S_DV_TIMINGS) == 1)
        let before = sink.pictures
        signal.withLock { $0.status = 0 }
        _ = sink.received.waitPatiently { $0.timestamps.count - $0.substitutes > before + 2 ? true : nil }
        #expect(system.calls(cv4l2_S_DV_TIMINGS) == 2)
        #expect(source.captureStatistics.interruptions == 1)
        _ = words.waitPatiently { $0.isEmpty ? nil : true }
        #expect(words.withLock { $0.count == 1 && $0[0].contains("switch the source on") })
        await source.stopCapture()
        #expect(system.isAllClosed)
    }
}
