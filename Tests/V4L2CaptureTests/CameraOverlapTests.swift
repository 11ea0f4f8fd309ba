import CV4L2
import Glibc
import MediaCore
import Testing
import Threading

@testable import Capture
@testable import V4L2Capture

private let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")

/// What becomes of the present camera, and of requests, while another one is opened.
@Suite("Another camera beside the present one", .timeLimit(.minutes(3)))
struct CameraOverlapTests {
    private let sink = RecordingSink()

    /// A camera that goes on, with frames of one value in two sizes.
    private func script(_ fill: UInt8, card: String = "Scripted", busInfo: String = "test-1") -> CameraScript {
        var script = CameraScript(card: card, busInfo: busInfo)
        script.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(64, 48), (32, 24)]))]
        script.intervalMilliseconds = 2
        script.events = (0..<20_000).map { number in
            .frames([.init(sequence: UInt32(number), nanoseconds: 0, fill: fill)])
        }
        return script
    }

    private func other() -> CameraScript { script(90, card: "Second", busInfo: "test-2") }

    private func start(
        _ first: CameraScript,
        _ other: CameraScript,
        request: VideoFormatRequest = VideoFormatRequest(),
        patience: Duration = CameraSource.patience,
        outageLimit: Duration? = nil
    ) async throws -> (CameraSource, ScriptedSystem) {
        let system = ScriptedSystem(["/dev/video0": first, "/dev/video1": other], usesRealClock: true)
        let source = CameraSource(
            device: testDevice,
            request: request,
            system: system,
            patience: patience,
            outageLimit: outageLimit
        ) { LumaConverter() }
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(5)
        return (source, system)
    }

    /// Waits for five more frames that `isRight`; returns whether they came.
    private func framesCome(where isRight: @escaping @Sendable (UInt8) -> Bool) -> Bool {
        let before = sink.lumas.count { isRight($0) }
        let deadline = MonotonicClock.now + .seconds(20)
        return sink.received.wait(until: deadline) { received -> Bool? in
            received.lumas.count { isRight($0) } >= before + 5 ? true : nil
        } ?? false
    }

    // The thread that captures opened the new camera, which takes up to a second.
    @Test("While the new camera is opened, frames of the present one come")
    func slowOpening() async throws {
        let came = Monitor<Bool?>(nil)
        var slow = other()
        slow.whileOpening = {
            let result = framesCome { $0 == 10 }
            came.withLock { $0 = $0 ?? result }
        }
        let (source, system) = try await start(script(10), slow)
        try await source.selectCaptureDevice(second)
        #expect(came.withLock { $0 } == true)
        #expect(framesCome { $0 == 90 })
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("While the new camera has no frame yet, frames of the present one come")
    func slowFirstFrame() async throws {
        let atOpening = Monitor<Int?>(nil)
        var slow = other()
        slow.isReady = {
            let count = sink.lumas.count { $0 == 10 }
            let first = atOpening.withLock { atOpening in
                atOpening = atOpening ?? count
                return atOpening ?? count
            }
            return count >= first + 5
        }
        let (source, system) = try await start(script(10), slow)
        try await source.selectCaptureDevice(second)
        #expect(framesCome { $0 == 90 })
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    // The thread that captures closed the former camera, and the first frames of the new one were late.
    @Test("While the former camera is closed, frames of the new one come; the stop waits for it")
    func slowClosing() async throws {
        let came = Monitor<Bool?>(nil)
        let isClosed = Monitor(false)
        var slow = script(10)
        slow.whileStopping = {
            let result = framesCome { $0 == 90 }
            came.change { $0 = $0 ?? result }
            usleep(300_000)
            isClosed.withLock { $0 = true }
        }
        let (source, system) = try await start(slow, other())
        try await source.selectCaptureDevice(second)
        #expect(framesCome { $0 == 90 })
        // The thread that closes may get to run late; without frames, it would wait in vain.
        #expect(came.wait(until: MonotonicClock.now + .seconds(40)) { $0 } == true)
        await source.stopCapture()
        #expect(isClosed.withLock { $0 })
        #expect(system.isAllClosed)
    }

    // The present camera was closed and opened again: a picture was missing, and another program could take it.
    @Test("A camera that another program has is refused, and the present one is never closed")
    func busy() async throws {
        var busy = other()
        busy.failures = [cv4l2_S_FMT: EBUSY]
        let (source, system) = try await start(script(10), busy)
        let error = await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(second) }
        #expect(error?.code == .busy && source.device == testDevice)
        #expect(system.calls(cv4l2_STREAMOFF) == 0 && framesCome { $0 == 10 })
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    // A change replaced the request that the source was made with.
    @Test("A format requested with a change is taken back by a reset, as every other request")
    func reset() async throws {
        let made = VideoFormatRequest(frameRate: FrameRate(25))
        let (source, _) = try await start(script(10), other(), request: made)
        let asked = VideoFormatRequest(dimensions: Dimensions(width: 32, height: 24), frameRate: FrameRate(10))
        try await source.selectCaptureDevice(second, format: asked)
        #expect(source.sinks.request == asked)
        source.resetOutputFormat()
        #expect(source.sinks.request == made)
        await source.stopCapture()
        try await source.selectCaptureDevice(testDevice, format: asked)
        source.resetOutputFormat()
        #expect(source.sinks.request == made, "while not capturing")
    }

    // A format of the list could not be selected without writing all its fields again.
    @Test("One of a camera's formats is selected as it is, and nil keeps what was requested")
    func listedFormat() async throws {
        let (source, _) = try await start(script(10), other())
        let size = Dimensions(width: 32, height: 24)
        let format = VideoFormat(dimensions: size, frameRate: FrameRate(10), pixelFormat: .yuyv)
        let formats = [format]
        try await source.selectCaptureDevice(second, format: formats.last)
        #expect(source.sinks.request == VideoFormatRequest(format))
        try await source.selectCaptureDevice(testDevice, format: nil)
        #expect(source.sinks.request == VideoFormatRequest(format))
        await source.stopCapture()
    }

    // The request of before the change became the one that a reset goes back to.
    @Test("A change that is taken back restores the request, but none that was made since; a reset goes back further")
    func takenBack() async throws {
        var silent = script(10)
        silent.silentWidth = 32
        let made = VideoFormatRequest(frameRate: FrameRate(60))
        // The request that is made meanwhile must come before this is over.
        let (source, _) = try await start(silent, other(), request: made, patience: .seconds(4))
        let rate = VideoFormatRequest(frameRate: FrameRate(50))
        source.requestOutputFormat(rate)
        let small = VideoFormatRequest(dimensions: Dimensions(width: 32, height: 24))
        await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(testDevice, format: small) }
        #expect(source.sinks.request == rate)
        source.resetOutputFormat()
        #expect(source.sinks.request == made)

        let change = Task { try await source.selectCaptureDevice(testDevice, format: small) }
        while source.sinks.request != small { await Task.yield() }
        let later = VideoFormatRequest(dimensions: Dimensions(width: 16, height: 12))
        source.requestOutputFormat(later)
        await #expect(throws: CameraError.self) { try await change.value }
        #expect(source.sinks.request == later)
        await source.stopCapture()
    }

    // A request that came while the change was being made counted as the change's own, and was lost with it.
    @Test("A request made in the very moment of a change stays when that is taken back")
    func requestDuringChange() async throws {
        var silent = script(10)
        silent.silentWidth = 32
        let (source, _) = try await start(silent, other(), patience: .seconds(1))
        let small = VideoFormatRequest(dimensions: Dimensions(width: 32, height: 24), frameRate: FrameRate(20))
        let later = VideoFormatRequest(dimensions: Dimensions(width: 16, height: 12), frameRate: FrameRate(10))
        let caller = RequestingSink { [weak source] request in
            if request.frameRate == small.frameRate { source?.requestOutputFormat(later) }
        }
        source.sinks.add(caller)
        await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(testDevice, format: small) }
        #expect(source.sinks.request == later)
        await source.stopCapture()
    }

    // The wait for the lost camera went on while the new one had not given its first frame, and the source failed.
    @Test("The wait for a lost camera does not end a change to another, which may take longer for its first frame")
    func limitDuringChange() async throws {
        let first = script(10)
        var slow = other()
        slow.firstFrameDelay = .seconds(4)
        let (source, system) = try await start(first, slow, patience: .seconds(15), outageLimit: .seconds(3))
        system.plug(["/dev/video1": slow])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        let slates = sink.slates
        try await source.selectCaptureDevice(second)
        #expect(source.failure == nil && source.device == second && sink.lumas.last == 90)
        // Eight on an idle machine; what cannot be painted in time is not made up for.
        #expect(sink.slates > slates, "slates came meanwhile")
        await source.stopCapture()
    }
}

/// A sink that answers format requests.
private final class RequestingSink: VideoSink {
    private let answer: @Sendable (VideoFormatRequest) -> Void

    init(_ answer: @escaping @Sendable (VideoFormatRequest) -> Void) {
        self.answer = answer
    }

    var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
    func onVideoFrame(_ frame: VideoFrame) {}
    func onVideoFormatRequest(_ request: VideoFormatRequest) { answer(request) }
}
