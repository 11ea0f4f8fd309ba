import CV4L2
import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

private let second = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")

@Suite("Changing cameras", .timeLimit(.minutes(3)))
struct CameraChangeTests {
    /// A camera that goes on, with frames of one value.
    private func script(_ fill: UInt8, card: String = "Scripted", busInfo: String = "test-1") -> CameraScript {
        var script = CameraScript(card: card, busInfo: busInfo)
        script.intervalMilliseconds = 2
        script.events = (0..<20_000).map { number in
            .frames([.init(sequence: UInt32(number), nanoseconds: 0, fill: fill)])
        }
        return script
    }

    private func system(_ change: (inout CameraScript) -> Void = { _ in }) -> ScriptedSystem {
        var other = script(90, card: "Second", busInfo: "test-2")
        change(&other)
        return ScriptedSystem(["/dev/video0": script(10), "/dev/video1": other], usesRealClock: true)
    }

    private func start(
        _ system: ScriptedSystem,
        patience: Duration = CameraSource.patience
    ) async throws -> (CameraSource, RecordingSink) {
        let source = CameraSource(
            device: testDevice,
            request: VideoFormatRequest(),
            system: system,
            patience: patience
        ) { LumaConverter() }
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(5)
        return (source, sink)
    }

    @Test("The frames of the new camera follow those of the old, which is closed; stamps stay in order")
    func changed() async throws {
        let system = system()
        let (source, sink) = try await start(system)
        let gap = try await source.selectCaptureDevice(second)
        #expect(gap >= .zero && source.device == second)
        let count = sink.count
        sink.waitForFrames(count + 5)
        await source.stopCapture()
        let lumas = sink.lumas
        #expect(lumas.first == 10 && lumas.last == 90 && sink.slates == 0)
        #expect(lumas == lumas.sorted(), "first the one, then the other")
        let timestamps = sink.timestamps
        #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(system.isAllClosed)
    }

    @Test("The answer of a change is the time without a frame")
    func gap() async throws {
        var slow = script(10)
        slow.firstFrameDelay = .milliseconds(300)
        let began = MonotonicClock.now
        let (source, _) = try await start(ScriptedSystem(["/dev/video0": slow], usesRealClock: true))
        let gap = try await source.selectCaptureDevice(testDevice)
        // The last frame before it came after the beginning, and the first one after it has come.
        #expect(gap >= .milliseconds(300) && gap <= MonotonicClock.now.duration(since: began), "\(gap)")
        await source.stopCapture()
    }

    @Test(
        "A camera that cannot be used leaves the present one running",
        arguments: [
            (cv4l2_S_FMT, EIO, "driverFailed"), (cv4l2_STREAMON, ENOSPC, "noBandwidth"), (cv4l2_S_FMT, EBUSY, "busy"),
        ] as [(UInt, Int32, String)]
    )
    func refused(request: UInt, status: Int32, code: String) async throws {
        let system = system { $0.failures = [request: status] }
        let (source, sink) = try await start(system)
        let error = await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(second) }
        #expect(error?.code.name == code && source.device == testDevice)
        let count = sink.count
        sink.waitForFrames(count + 5)
        #expect(sink.lumas.last == 10 && source.captureStatistics.interruptions == 0)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("A camera that is not there is refused, capturing or not")
    func absent() async throws {
        let nobody = CaptureDevice(path: "/dev/video9", name: "Nobody", busInfo: "test-9", driver: "scripted")
        let (source, sink) = try await start(system())
        await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(nobody) }
        sink.waitForFrames(sink.count + 5)
        await source.stopCapture()
        await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(nobody) }
        #expect(source.device == testDevice)
    }

    @Test("While not capturing, the next start uses the camera and the format")
    func idle() async throws {
        let system = system { $0.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(64, 48), (32, 24)]))] }
        let source = makeSource(system)
        let size = Dimensions(width: 32, height: 24)
        #expect(try await source.selectCaptureDevice(second, format: VideoFormatRequest(dimensions: size)) == .zero)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        await source.stopCapture()
        #expect(sink.lumas.last == 90 && source.captureFormat?.dimensions == size)
    }

    // It opened the camera on the thread of its caller.
    @Test("While not capturing, a camera that takes long to open takes none of the threads that tasks share")
    func slowWhileIdle() async throws {
        let isReleased = Monitor(false)
        let timeouts = Monitor(0)
        let system = system { script in
            script.whileOpening = {
                let limit = MonotonicClock.now + .seconds(10)
                if isReleased.wait(until: limit, for: { $0 ? true : nil }) == nil { timeouts.withLock { $0 += 1 } }
            }
        }
        let source = makeSource(system)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 * sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
                group.addTask { try await source.selectCaptureDevice(second) }
            }
            group.addTask {
                try await Task.sleep(for: .milliseconds(100))
                isReleased.change { $0 = true }
            }
            try await group.waitForAll()
        }
        #expect(timeouts.withLock { $0 } == 0 && source.device == second)
    }

    @Test("The same camera takes another format while capturing, and the former one again where that fails")
    func otherFormat() async throws {
        var one = script(10)
        one.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(64, 48), (32, 24)]))]
        let system = ScriptedSystem(["/dev/video0": one], usesRealClock: true)
        let (source, sink) = try await start(system)
        let size = Dimensions(width: 32, height: 24)
        try await source.selectCaptureDevice(testDevice, format: VideoFormatRequest(dimensions: size))
        #expect(source.captureFormat?.dimensions == size)
        let wrong = VideoFormatRequest(pixelFormat: .nv12)
        let error = await #expect(throws: CameraError.self) {
            try await source.selectCaptureDevice(testDevice, format: wrong)
        }
        #expect(error?.code == .noSuchFormat)
        // The former format is taken again after the answer.
        sink.waitForFrames(sink.count + 5)
        #expect(source.captureFormat?.dimensions == size && source.captureStatistics.interruptions == 0)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("During an outage another camera ends it")
    func duringOutage() async throws {
        let (first, other) = (script(10), script(90, card: "Second", busInfo: "test-2"))
        let system = ScriptedSystem(["/dev/video0": first, "/dev/video1": other], usesRealClock: true)
        let (source, sink) = try await start(system)
        system.plug(["/dev/video1": other])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        try await source.selectCaptureDevice(second)
        sink.waitForFrames(sink.count + 3)
        #expect(sink.lumas.last == 90)
        await source.stopCapture()
    }

    // The change to the second camera stayed open, and the first one was never looked for again.
    @Test("If the second of two changes during an outage loses the new camera, the one before them is waited for again")
    func lostTwice() async throws {
        let (first, isOpening, isAsked) = (script(10), Monitor(false), Monitor(false))
        let system = ScriptedSystem(["/dev/video0": first], usesRealClock: true)
        let (source, sink) = try await start(system)
        var other = script(90, card: "Second", busInfo: "test-2")
        other.isSilent = Monitor(true)
        other.whileOpening = {
            isOpening.change { $0 = true }
            _ = isAsked.waitPatiently { $0 ? true : nil }
        }
        other.whileStopping = { system.plug([:]) }
        system.plug(["/dev/video1": other])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        let change = Task { try await source.selectCaptureDevice(second) }
        _ = isOpening.waitPatiently { $0 ? true : nil }
        let hasFailed = Monitor<Bool?>(nil)
        let request = VideoFormatRequest(frameRate: FrameRate(10))
        let next = CameraSelection.Change(device: second, request: request) { result in
            hasFailed.change { $0 = if case .failure = result { true } else { false } }
        }
        #expect(source.selection.ask(for: next))
        isAsked.change { $0 = true }
        #expect(hasFailed.waitPatiently { $0 } == true)
        await #expect(throws: CameraError.self) { try await change.value }
        #expect(source.device == testDevice)
        system.plug(["/dev/video0": script(50)])
        _ = sink.received.waitPatiently { $0.lumas.last == 50 ? true : nil }
        #expect(sink.lumas.last == 50)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    // Without a session and in an outage, the capture thread spun, and the track was dead.
    @Test("A change that fails while the camera is silent leaves the camera to be opened again")
    func failedWhileSilent() async throws {
        var silent = script(10)
        silent.events = Array(silent.events.prefix(10)) + [.silence]
        let (source, sink) = try await start(ScriptedSystem(["/dev/video0": silent], usesRealClock: true))
        sink.waitForSlates(1)
        let wrong = VideoFormatRequest(pixelFormat: .nv12)
        await #expect(throws: CameraError.self) {
            try await source.selectCaptureDevice(testDevice, format: wrong)
        }
        _ = sink.received.waitPatiently { $0.timestamps.count - $0.substitutes >= 15 ? true : nil }
        await source.stopCapture()
    }

    @Test("A camera that streams and gives no frame is not changed to, and the present one goes on meanwhile")
    func silentCamera() async throws {
        let system = system { $0.silentWidth = 64 }
        let (source, sink) = try await start(system, patience: .seconds(2))
        let before = sink.pictures
        let error = await #expect(throws: CameraError.self) { try await source.selectCaptureDevice(second) }
        #expect(error?.code == .noFrames && source.device == testDevice)
        #expect(sink.pictures > before && source.captureStatistics.interruptions == 0)
        await source.stopCapture()
        #expect(system.isAllClosed && !sink.lumas.contains(90))
    }

    @Test("A format in which no frame comes is taken back")
    func silentFormat() async throws {
        var one = script(10)
        one.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(64, 48), (32, 24)]))]
        one.silentWidth = 32
        let system = ScriptedSystem(["/dev/video0": one], usesRealClock: true)
        let (source, sink) = try await start(system, patience: .seconds(2))
        let small = VideoFormatRequest(dimensions: Dimensions(width: 32, height: 24))
        let error = await #expect(throws: CameraError.self) {
            try await source.selectCaptureDevice(testDevice, format: small)
        }
        #expect(error?.code == .noFrames)
        let before = sink.pictures
        _ = sink.received.waitPatiently { $0.timestamps.count - $0.substitutes >= before + 5 ? true : nil }
        #expect(source.captureFormat?.dimensions == Dimensions(width: 64, height: 48) && source.failure == nil)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("Cameras are the same by their place and serial number, and not by the number of their node")
    func sameness() {
        func camera(_ path: String, _ place: String, serial: String?) -> CaptureDevice {
            let hardware = CameraHardware(
                place: place,
                index: 0,
                interfaceNumber: "00",
                model: "046d:0825",
                serialNumber: serial
            )
            return CaptureDevice(
                path: path,
                name: "C270",
                busInfo: place,
                driver: "uvcvideo",
                stableLinks: [],
                hardware: hardware
            )
        }
        let one = camera("/dev/video0", "1-1", serial: "A")
        #expect(one.isSameCamera(as: camera("/dev/video2", "1-1", serial: "A")), "another number")
        #expect(one.isSameCamera(as: camera("/dev/video0", "1-2", serial: "A")), "another port")
        #expect(!one.isSameCamera(as: camera("/dev/video0", "1-1", serial: "B")), "another camera in the same port")
        #expect(!one.isSameCamera(as: camera("/dev/video2", "1-2", serial: "A")), "its double")
        #expect(testDevice.isSameCamera(as: testDevice) && !testDevice.isSameCamera(as: second))
    }

    @Test("Changes that many tasks ask for at once are carried out or cancelled, and capturing goes on")
    func manyChanges() async throws {
        let system = system()
        let (source, sink) = try await start(system)
        await withTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    do {
                        try await source.selectCaptureDevice(number % 2 == 0 ? second : testDevice)
                    } catch {
                        #expect(error is CancellationError)
                    }
                }
            }
        }
        sink.waitForFrames(sink.count + 5)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }
}
