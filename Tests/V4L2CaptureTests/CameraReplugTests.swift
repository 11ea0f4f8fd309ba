import CV4L2
import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

private let lost = CameraScript.Event.trouble([.failed, .gone], status: ENODEV)

/// A webcam's first interface in the port `place`.
private func webcam(_ place: String, serial: String?, index: Int = 0) -> CameraHardware {
    CameraHardware(place: place, index: index, interfaceNumber: "00", model: "046d:0825", serialNumber: serial)
}

private func camera(at path: String = "/dev/video0", _ hardware: CameraHardware?) -> CaptureDevice {
    CaptureDevice(
        path: path,
        name: "Scripted",
        busInfo: "test-1",
        driver: "scripted",
        stableLinks: [],
        hardware: hardware
    )
}

@Suite("A camera that comes and goes", .timeLimit(.minutes(1)))
struct CameraReplugTests {
    private func script(_ count: Int, then: CameraScript.Event = lost) -> CameraScript {
        CameraScript(events: CameraScript.steady(count) + [then])
    }

    /// A camera that goes on until the test unplugs it, so that no test has to be faster than its camera.
    private func pluggedIn() -> CameraScript {
        var script = CameraScript(events: CameraScript.steady(20_000))
        script.intervalMilliseconds = 1
        return script
    }

    /// The words for what is told from now on.
    private func story(of source: CameraSource) -> Monitor<[String]> {
        let told = Monitor<[String]>([])
        let events = source.captureEvents()
        Task {
            for await event in events {
                let words =
                    switch event {
                    case .interrupted(let error): "interrupted \((error as? CameraError)?.code.name ?? "")"
                    case .interruptionEnded: "goes on"
                    case .noFramesCaptured(let error): "none yet \((error as? CameraError)?.code.name ?? "")"
                    case .warning(let error): "warning \((error as? CameraError)?.code.name ?? "")"
                    case .failed(let error): "failed \((error as? CameraError)?.code.name ?? "")"
                    case .finished: "finished"
                    }
                told.change { $0.append(words) }
            }
        }
        return told
    }

    @Test("Unplugged, it is a slate of the same size with fresh stamps; plugged in under another node, it goes on")
    func replugged() async throws {
        let first = pluggedIn()
        let system = ScriptedSystem(first)
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        sink.waitForFrames(3)
        system.plug([:])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(4)
        let slate = try #require(sink.received.withLock { $0.lastSlate })
        #expect(slate.dimensions == Dimensions(width: 64, height: 48))
        let ink = slate.buffer.withPlanes { luma, _, _ in luma.indices.count { luma[$0] > 200 } }
        #expect(ink > 50, "the slate has letters")
        #expect(source.captureStatistics.interruptions == 1 && source.failure == nil)
        let before = sink.pictures
        var back = CameraScript(events: CameraScript.steady(20) + [.silence])
        back.intervalMilliseconds = 1
        system.plug(["/dev/video5": back])
        _ = sink.received.waitPatiently { $0.timestamps.count - $0.substitutes >= before + 5 ? true : nil }
        await source.stopCapture()
        #expect(source.device.path == "/dev/video5" && system.isAllClosed)
        let statistics = source.captureStatistics
        #expect(statistics.framesCaptured == sink.count + statistics.framesDropped.total)
        #expect(statistics.framesSubstituted >= sink.slates && sink.slates >= 4)
        let timestamps = sink.timestamps
        #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $0 <= $1 })
        _ = told.waitPatiently { $0.contains("goes on") ? true : nil }
        #expect(told.withLock { Array($0.prefix(2)) } == ["interrupted deviceLost", "goes on"])
    }

    // Each look opened every camera twice, for as long as the loopback device was gone.
    @Test("A loopback device that is gone makes no camera with hardware be opened")
    func goneLoopback() async throws {
        let first = pluggedIn()
        let other = CameraScript(busInfo: "test-2", failures: [cv4l2_QUERYCAP: EIO])
        let system = ScriptedSystem(first)
        let hardware = ["/dev/video1": webcam("1-2", serial: nil)]
        system.plug(["/dev/video0": first, "/dev/video1": other], hardware: hardware)
        let loopback = CaptureDevice(
            path: "/dev/video0",
            name: "Scripted",
            busInfo: "test-1",
            driver: "v4l2 loopback",
            stableLinks: []
        )
        let source = makeSource(system, device: loopback, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        let before = system.calls(cv4l2_QUERYCAP)
        system.plug(["/dev/video1": other], hardware: hardware)
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(6)
        #expect(system.calls(cv4l2_QUERYCAP) == before)
        await source.stopCapture()
    }

    // Without a node there was no hardware to compare, and every other camera was opened at each look.
    @Test("A camera without a serial number that is gone makes no other camera be opened")
    func othersAreLeftAlone() async throws {
        let first = pluggedIn()
        let other = CameraScript(busInfo: "test-2", failures: [cv4l2_QUERYCAP: EIO])
        let (own, theirs) = (webcam("1-1", serial: nil), webcam("1-2", serial: nil))
        let system = ScriptedSystem(first)
        system.plug(
            ["/dev/video0": first, "/dev/video1": other],
            hardware: ["/dev/video0": own, "/dev/video1": theirs]
        )
        let source = makeSource(system, device: camera(own), outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        let opened = system.calls(cv4l2_QUERYCAP)
        system.plug(["/dev/video1": other], hardware: ["/dev/video1": theirs])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(10)
        await source.stopCapture()
        #expect(system.calls(cv4l2_QUERYCAP) == opened)
    }

    @Test("After the limit it is a failure; zero is no wait at all, and neither is there one before the first frame")
    func limits() async throws {
        let system = ScriptedSystem(script(2))
        let source = makeSource(system, outageLimit: .seconds(3))
        let sink = RecordingSink()
        source.sink = sink
        var failures = source.failures().makeAsyncIterator()
        try await source.startCapture()
        sink.waitForFrames(2)
        system.plug([:])
        let failure = await failures.next()
        let words = failure.map { "\($0)" } ?? "none"
        #expect(failure?.code == .deviceLost, "\(words)")
        #expect(words.contains("within 3.0 s"), "\(words)")
        #expect(sink.slates >= 5 && system.isAllClosed)
        let never = makeSource(ScriptedSystem(script(0)), outageLimit: nil)
        var neverFailures = never.failures().makeAsyncIterator()
        try await never.startCapture()
        #expect(await neverFailures.next()?.code == .deviceLost)
    }

    @Test("A permission that comes a moment after the node costs nothing but that moment")
    func latePermission() async throws {
        let system = ScriptedSystem(script(2))
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        sink.waitForFrames(2)
        system.plug([:], openFailures: ["/dev/video0": EACCES])
        sink.waitForSlates(3)
        system.plug(["/dev/video0": CameraScript(events: CameraScript.steady(5) + [.silence])])
        _ = told.waitPatiently { $0.contains("goes on") ? true : nil }
        await source.stopCapture()
        #expect(told.withLock { $0.first } == "interrupted deviceLost")
    }

    @Test("A camera without permission is tried whenever its permissions change")
    func changingPermissions() async throws {
        let folder = try TemporaryDirectory()
        try store("".utf8, at: folder("video0"))
        let system = ScriptedSystem(["/dev/video0": script(2)], usesRealClock: true, nodeFolder: folder.path)
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        sink.waitForFrames(2)
        system.plug([:], openFailures: ["/dev/video0": EACCES])
        // By themselves, ten tries take minutes.
        try await eventually("ten tries") {
            #expect(chmod(folder("video0"), 0o600) == 0)
            return system.record.withLock { $0.refusals >= 10 }
        }
        system.plug(["/dev/video0": CameraScript(events: CameraScript.steady(5) + [.silence])])
        #expect(chmod(folder("video0"), 0o600) == 0)
        _ = told.waitPatiently { $0.contains("goes on") ? true : nil }
        await source.stopCapture()
    }

    @Test("A camera that hangs is a slate after a second, and is opened anew after its patience")
    func wedged() async throws {
        let system = ScriptedSystem(script(3, then: .silence))
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        // It delivers three frames after each start.
        _ = told.waitPatiently { $0.count >= 4 ? true : nil }
        await source.stopCapture()
        #expect(
            told.withLock { Array($0.prefix(4)) } == [
                "interrupted noFrames", "goes on", "interrupted noFrames", "goes on",
            ]
        )
        #expect(sink.slates >= 8 && system.calls(cv4l2_STREAMON) >= 2 && system.isAllClosed)
    }

    @Test(
        "Whatever else keeps it from being opened is waited for too, and told once",
        arguments: [
            (cv4l2_S_FMT, EBUSY, "busy"), (cv4l2_STREAMON, ENOSPC, "noBandwidth"),
            (cv4l2_STREAMON, EIO, "driverFailed"),
        ] as [(UInt, Int32, String)]
    )
    func refused(request: UInt, status: Int32, code: String) async throws {
        let first = pluggedIn()
        let system = ScriptedSystem(first)
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        sink.waitForFrames(2)
        system.plug(["/dev/video0": CameraScript(failures: [request: status])])
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(100)
        let opened = system.calls(cv4l2_QUERYCAP)
        #expect(opened < 40, "it is not opened all the time")
        system.plug(["/dev/video0": CameraScript(events: CameraScript.steady(5) + [.silence])])
        _ = told.waitPatiently { $0.contains("goes on") ? true : nil }
        await source.stopCapture()
        let ending = told.withLock { Array($0.prefix { $0 != "goes on" }) }
        #expect(ending == ["interrupted deviceLost", "interrupted \(code)"])
    }

    @Test("On a bus that is full, a camera is captured as MJPG instead, and says so")
    func fullBus() async throws {
        var script = CameraScript(events: CameraScript.steady(3) + [.silence])
        script.formats = [
            CameraScript.Format(pixelFormat: .yuyv), CameraScript.Format(pixelFormat: .mjpeg, isCompressed: true),
        ]
        script.passingFailures = [cv4l2_STREAMON: (after: 0, status: ENOSPC)]
        let system = ScriptedSystem(script)
        let source = makeSource(system)
        let told = story(of: source)
        // The second opening of the node finds the bus full no more, as a smaller format would.
        await #expect(throws: CameraError.self) { try await source.startCapture() }
        script.passingFailures = [:]
        script.failuresOfFormat = [.yuyv: ENOSPC]
        system.plug(["/dev/video0": script])
        try await source.startCapture()
        #expect(source.captureFormat?.pixelFormat == .mjpeg)
        _ = told.waitPatiently { $0.contains("warning noBandwidth") ? true : nil }
        await source.stopCapture()
    }

    @Test("Damaged first frames are left out and counted, and told once")
    func damagedStart() async throws {
        let frames = (0..<60).map { number -> CameraScript.Event in
            let stamp = Int64(number + 1) * 33_333_333
            return .frames([.init(sequence: UInt32(number), nanoseconds: stamp, fill: number < 5 ? 0 : 0xFF)])
        }
        var script = CameraScript(events: frames + [.silence])
        script.formats = [CameraScript.Format(pixelFormat: .mjpeg, isCompressed: true)]
        let source = makeSource(ScriptedSystem(script))
        let sink = RecordingSink()
        source.sink = sink
        let told = story(of: source)
        try await source.startCapture()
        _ = told.waitPatiently { $0.contains { $0.hasPrefix("failed") } ? true : nil }
        let corrupt = source.captureStatistics.framesDropped[.corrupt]
        #expect(corrupt == 5 && sink.pictures == 55)
        let warnings = told.withLock { told in told.count { $0 == "warning damagedFrames" } }
        #expect(warnings == 1)
    }

    @Test("A camera that gives nothing after its start says so before it fails")
    func nothingYet() async throws {
        let source = makeSource(ScriptedSystem(CameraScript(events: [.silence])))
        let told = story(of: source)
        try await source.startCapture()
        _ = told.waitPatiently { $0.count >= 2 ? true : nil }
        #expect(told.withLock { $0 } == ["none yet noFrames", "failed noFrames"])
    }

    // MARK: Which camera

    @Test("With a serial number a camera is found in whatever port, and another of its make is never taken for it")
    func serialNumbers() throws {
        let known = camera(webcam("/usb/1-1", serial: "A"))
        let other = CameraScript()
        let system = ScriptedSystem(["/dev/video0": other, "/dev/video2": other, "/dev/video3": other])
        system.plug(
            ["/dev/video0": other, "/dev/video2": other, "/dev/video3": other],
            hardware: [
                "/dev/video0": webcam("/usb/1-1", serial: "B"), "/dev/video2": webcam("/usb/1-9", serial: "A"),
                "/dev/video3": webcam("/usb/1-9", serial: "A", index: 1),
            ]
        )
        #expect(try CameraDirectory(system: system).open(known).path == "/dev/video2")
        system.plug(["/dev/video0": other], hardware: ["/dev/video0": webcam("/usb/1-1", serial: "B")])
        let error = #expect(throws: CameraError.self) { try CameraDirectory(system: system).open(known) }
        #expect(error?.code == .noSuchDevice)
    }

    @Test("If two cameras have one serial number, the one in the same port is taken, and none in another")
    func doubtfulSerialNumbers() throws {
        let known = camera(webcam("/usb/1-2", serial: "0001"))
        let script = CameraScript()
        let system = ScriptedSystem(["/dev/video0": script, "/dev/video2": script])
        let first = webcam("/usb/1-1", serial: "0001")
        system.plug(
            ["/dev/video0": script, "/dev/video2": script],
            hardware: ["/dev/video0": first, "/dev/video2": webcam("/usb/1-2", serial: "0001")]
        )
        #expect(try CameraDirectory(system: system).open(known).path == "/dev/video2")
        system.plug(
            ["/dev/video0": script, "/dev/video2": script],
            hardware: ["/dev/video0": first, "/dev/video2": webcam("/usb/1-3", serial: "0001")]
        )
        #expect(throws: CameraError.self) { try CameraDirectory(system: system).open(known) }
    }

    @Test("Without a serial number only the same port counts, and no node elsewhere is opened")
    func ports() throws {
        let known = camera(webcam("/usb/1-1", serial: nil))
        let script = CameraScript()
        let system = ScriptedSystem(script)
        system.plug(["/dev/video0": script], hardware: ["/dev/video0": webcam("/usb/1-2", serial: nil)])
        #expect(throws: CameraError.self) { try CameraDirectory(system: system).open(known) }
        #expect(system.calls(cv4l2_QUERYCAP) == 0)
        system.plug(["/dev/video4": script], hardware: ["/dev/video4": webcam("/usb/1-1", serial: nil)])
        #expect(try CameraDirectory(system: system).open(known).path == "/dev/video4")
    }

    @Test("The properties of a webcam are read from sysfs: from the folders of its node, its interface and its device")
    func sysfs() {
        let files = [
            "/sys/class/video4linux/video1/index": "1", "/sys/devices/usb1/1-1/1-1:1.0/bInterfaceNumber": "00",
            "/sys/devices/usb1/1-1/1-1:1.0/../idVendor": "046d", "/sys/devices/usb1/1-1/1-1:1.0/../idProduct": "0825",
            "/sys/devices/usb1/1-1/1-1:1.0/../serial": "5F2A",
        ]
        let hardware = CameraHardware(
            folder: "/sys/class/video4linux/video1",
            resolve: { $0 == "/sys/class/video4linux/video1/device" ? "/sys/devices/usb1/1-1/1-1:1.0" : nil },
            read: { files[$0] }
        )
        #expect(hardware == webcam("/sys/devices/usb1/1-1/1-1:1.0", serial: "5F2A", index: 1))
        #expect(
            CameraHardware(folder: "/sys/class/video4linux/video9", resolve: { _ in nil }, read: { _ in nil }) == nil
        )
    }
}
