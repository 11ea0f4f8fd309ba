import CV4L2
import Capture
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

private let link = "/dev/v4l/by-id/usb-046d_C270-video-index0"

/// Two cameras of one model that nothing tells apart but their ports.
@Suite("A camera and its double", .timeLimit(.minutes(1)))
struct CameraDoubleTests {
    private let own = "/usb/1-1"
    private let elsewhere = "/usb/1-2"

    private func webcam(_ place: String, serial: String?) -> CameraHardware {
        CameraHardware(place: place, index: 0, interfaceNumber: "00", model: "046d:0825", serialNumber: serial)
    }

    /// A camera that goes on, with frames of one value.
    private func script(_ fill: UInt8) -> CameraScript {
        var script = CameraScript()
        script.intervalMilliseconds = 1
        script.events = (0..<20_000).map { .frames([.init(sequence: UInt32($0), nanoseconds: 0, fill: fill)]) }
        return script
    }

    /// Plugs in cameras by their nodes and ports; the name by serial number leads to the last one.
    private func plug(
        _ cameras: [(node: String, place: String, script: CameraScript)],
        serial: String?,
        in system: ScriptedSystem
    ) {
        var (scripts, hardware): ([String: CameraScript], [String: CameraHardware]) = ([:], [:])
        for camera in cameras {
            scripts[camera.node] = camera.script
            scripts[camera.node]?.busInfo = camera.place
            hardware[camera.node] = webcam(camera.place, serial: serial)
        }
        let links = cameras.last.map { [StableLink(path: link, node: $0.node)] } ?? []
        system.plug(scripts, links: links, hardware: hardware)
    }

    // udev leads the name to the double, whose serial number is the same or missing too.
    @Test("When a camera is gone, its double in another port is not opened for it", arguments: [nil, "SN0001"])
    func doubleElsewhere(serial: String?) throws {
        let system = ScriptedSystem([:])
        let directory = CameraDirectory(system: system)
        plug([("/dev/video1", elsewhere, script(90)), ("/dev/video0", own, script(10))], serial: serial, in: system)
        let known = try #require(directory.devices().first)
        #expect(known.stableLinks == [link] && known.sighting?.hasDouble == true)
        plug([("/dev/video1", elsewhere, script(90))], serial: serial, in: system)
        let opened = system.calls(cv4l2_QUERYCAP)
        let error = #expect(throws: CameraError.self) { try directory.open(known) }
        #expect(error?.code == .noSuchDevice && error?.explanation.contains("same port") == true)
        #expect(system.calls(cv4l2_QUERYCAP) == opened)
        plug([("/dev/video4", own, script(10)), ("/dev/video1", elsewhere, script(90))], serial: serial, in: system)
        #expect(try directory.open(known).path == "/dev/video4", "the name leads to the double, and is not followed")
    }

    @Test("A camera with a serial number that never had a double is found in another port")
    func alone() throws {
        let serial = "SN0001"
        let system = ScriptedSystem([:])
        let directory = CameraDirectory(system: system)
        plug([("/dev/video0", own, script(10))], serial: serial, in: system)
        let known = try #require(directory.devices().first)
        plug([("/dev/video3", elsewhere, script(20))], serial: serial, in: system)
        #expect(try directory.open(known).path == "/dev/video3")
        // It has moved; now a double comes to where it was.
        let moved = directory.sighted(known, at: "/dev/video3")
        plug([("/dev/video3", elsewhere, script(20)), ("/dev/video0", own, script(90))], serial: serial, in: system)
        #expect(try directory.open(moved).path == "/dev/video3")
        #expect(moved == directory.withDoubles(moved), "where it was seen is no part of what it is")
    }

    // Its name under by-id is that of its model, and led to the twin, which had never been seen before.
    @Test("A twin that is plugged in elsewhere after the camera was lost is not published in its place")
    func twinAfterwards() async throws {
        let (first, twin) = (script(10), script(90))
        let system = ScriptedSystem([:])
        plug([("/dev/video0", own, first)], serial: nil, in: system)
        let source = makeSource(
            system,
            device: try #require(CameraDirectory(system: system).devices().first),
            outageLimit: nil
        )
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        plug([], serial: nil, in: system)
        first.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(2)
        let opened = system.calls(cv4l2_QUERYCAP)
        plug([("/dev/video0", elsewhere, twin)], serial: nil, in: system)
        let slates = sink.slates
        _ = sink.received.wait { $0.substitutes >= slates + 10 || $0.lumas.contains(90) ? true : nil }
        #expect(system.calls(cv4l2_QUERYCAP) == opened, "the twin is not even opened")
        // Both are there; the name leads to the one that came last.
        plug([("/dev/video4", own, script(20)), ("/dev/video0", elsewhere, twin)], serial: nil, in: system)
        _ = sink.received.wait { $0.lumas.contains(20) || $0.lumas.contains(90) ? true : nil }
        await source.stopCapture()
        #expect(!sink.lumas.contains(90) && source.device.path == "/dev/video4")
    }

    @Test("In the port of a camera without a serial number, another one of its model is taken for it")
    func twinInThePort() throws {
        let system = ScriptedSystem([:])
        let directory = CameraDirectory(system: system)
        plug([("/dev/video0", own, script(10))], serial: nil, in: system)
        let known = try #require(directory.devices().first)
        plug([("/dev/video1", own, script(90))], serial: nil, in: system)
        #expect(try directory.open(known).path == "/dev/video1", "nothing tells them apart")
        plug([("/dev/video1", own, script(90))], serial: "SN0002", in: system)
        #expect(throws: CameraError.self) { try directory.open(known) }
    }

    // The name alone was followed to a camera of the same model on another bus.
    @Test("A description that knows nothing of the hardware finds its camera by name only if that has a serial number")
    func unknownHardware() throws {
        let system = ScriptedSystem([:])
        let directory = CameraDirectory(system: system)
        let known = CaptureDevice(
            path: "/dev/video0",
            name: "Scripted",
            busInfo: own,
            driver: "scripted",
            stableLinks: [link]
        )
        plug([("/dev/video1", elsewhere, script(90))], serial: nil, in: system)
        #expect(throws: CameraError.self) { try directory.open(known) }
        plug([("/dev/video2", own, script(10)), ("/dev/video1", elsewhere, script(90))], serial: nil, in: system)
        #expect(try directory.open(known).path == "/dev/video2")
        plug([("/dev/video1", elsewhere, script(10))], serial: "SN0001", in: system)
        #expect(try directory.open(known).path == "/dev/video1")
    }

    @Test(
        "A double that was plugged in while the camera worked is not published in its place",
        arguments: [nil, "SN0001"]
    )
    func doubleLater(serial: String?) async throws {
        let (first, double) = (script(10), script(90))
        let system = ScriptedSystem([:])
        plug([("/dev/video0", own, first)], serial: serial, in: system)
        let source = makeSource(
            system,
            device: try #require(CameraDirectory(system: system).devices().first),
            outageLimit: nil
        )
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        plug([("/dev/video0", own, first), ("/dev/video1", elsewhere, double)], serial: serial, in: system)
        sink.waitForFrames(sink.count + 3)
        plug([("/dev/video1", elsewhere, double)], serial: serial, in: system)
        first.isUnplugged.withLock { $0 = true }
        _ = sink.received.waitPatiently { $0.substitutes >= 10 || $0.lumas.contains(90) ? true : nil }
        #expect(!sink.lumas.contains(90) && source.device.path == "/dev/video0")
        plug([("/dev/video1", elsewhere, double), ("/dev/video2", own, script(20))], serial: serial, in: system)
        _ = sink.received.waitPatiently { $0.lumas.contains(20) || $0.lumas.contains(90) ? true : nil }
        await source.stopCapture()
        #expect(!sink.lumas.contains(90) && source.device.path == "/dev/video2")
    }

    @Test("A double that gets the camera's node is another camera")
    func sameness() throws {
        let system = ScriptedSystem([:])
        let directory = CameraDirectory(system: system)
        plug([("/dev/video0", own, script(10)), ("/dev/video1", elsewhere, script(90))], serial: nil, in: system)
        let known = try #require(directory.devices().first)
        plug([("/dev/video0", elsewhere, script(90))], serial: nil, in: system)
        let double = try #require(directory.devices().first)
        #expect(double.path == known.path && !double.isSameCamera(as: known))
    }
}
