import CV4L2
import Capture
import Glibc
import MediaCore
import Testing

@testable import V4L2Capture

private let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE)
private let streaming = UInt32(V4L2_CAP_STREAMING)

/// A machine with cameras, and with nodes that are none.
private func makeMachine() -> ScriptedSystem {
    ScriptedSystem(
        [
            "/dev/video0": CameraScript(card: "HD Webcam", busInfo: "usb-1"),
            "/dev/video1": CameraScript(deviceCapabilities: UInt32(V4L2_CAP_META_CAPTURE) | streaming),
            "/dev/video2": CameraScript(card: "HD Webcam", busInfo: "usb-2"),
            "/dev/video3": CameraScript(deviceCapabilities: UInt32(V4L2_CAP_VIDEO_OUTPUT) | streaming),
            "/dev/video4": CameraScript(deviceCapabilities: UInt32(V4L2_CAP_VIDEO_M2M) | streaming),
            "/dev/video5": CameraScript(deviceCapabilities: capture | UInt32(V4L2_CAP_READWRITE)),
            "/dev/video6": CameraScript(
                card: "Loopback",
                busInfo: "platform:loop",
                deviceCapabilities: capture | UInt32(V4L2_CAP_VIDEO_OUTPUT) | streaming
            ),
            "/dev/video7": CameraScript(
                card: "Bad\u{1B}[31m",
                busInfo: "pci-7",
                capabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE) | streaming,
                deviceCapabilities: 0
            ),
            "/dev/video9": CameraScript(failures: [cv4l2_QUERYCAP: ENOTTY]),
        ],
        openFailures: ["/dev/video8": EACCES, "/dev/video10": ENXIO],
        links: [
            StableLink(path: "/dev/v4l/by-id/usb-Maker_Cam-index0", node: "/dev/video2"),
            StableLink(path: "/dev/v4l/by-path/pci-0-usb-2", node: "/dev/video2"),
        ]
    )
}

@Suite("Finding cameras", .timeLimit(.minutes(1)))
struct CameraDirectoryTests {
    private let machine: ScriptedSystem
    private let directory: CameraDirectory

    init() {
        machine = makeMachine()
        directory = CameraDirectory(system: machine)
    }

    // Beside a camera that could be opened, one that this user may not open was not mentioned.
    @Test("A node that is refused is named beside the cameras, with what to do; nodes that are no cameras are not")
    func survey() {
        let survey = directory.survey()
        #expect(survey.cameras == directory.devices())
        #expect(survey.refusals.map(\.device) == ["/dev/video8"])
        let refusal = survey.refusals.first
        #expect(refusal?.code == .permissionDenied && refusal?.explanation.contains("`video`") == true)
        #expect(machine.isAllClosed)
    }

    @Test("Cameras are found by what each node can do; metadata, output and codec nodes are none")
    func devices() {
        let devices = directory.devices()
        #expect(devices.map(\.path) == ["/dev/video0", "/dev/video2", "/dev/video6", "/dev/video7"])
        #expect(devices.map(\.nodeNumber) == [0, 2, 6, 7])
        #expect(devices[1].stableLinks.count == 2 && devices[0].stableLinks.isEmpty)
        #expect(devices[0].driver == "scripted")
        #expect(devices[3].name == "Bad?[31m")
        #expect(machine.isAllClosed)
    }

    @Test(
        "A camera is found by path, number, link, name or bus, and by part of them",
        arguments: [
            ("/dev/video2", "/dev/video2"), ("0", "/dev/video0"), ("2", "/dev/video2"),
            ("/dev/v4l/by-id/usb-Maker_Cam-index0", "/dev/video2"), ("usb-Maker_Cam-index0", "/dev/video2"),
            ("Loopback", "/dev/video6"), ("usb-1", "/dev/video0"), ("loop", "/dev/video6"), ("MAKER", "/dev/video2"),
        ]
    )
    func matching(text: String, path: String) throws {
        #expect(try directory.device(matching: text).path == path)
    }

    @Test(
        "A text that names no camera is refused with advice",
        arguments: [
            ("nothing", "noSuchDevice", "/dev/video6 (Loopback, platform:loop)"),
            ("", "noSuchDevice", "HD Webcam"),
            ("/dev/video77", "noSuchDevice", "HD Webcam"),
            ("77", "noSuchDevice", "HD Webcam"),
            ("99999999999999999999", "noSuchDevice", "HD Webcam"),
            ("HD Webcam", "ambiguousDevice", "usb-2"),
            ("webcam", "ambiguousDevice", "usb-1"),
            ("/dev/video8", "permissionDenied", "group"),
            ("8", "permissionDenied", "usermod"),
            ("1", "notACamera", "metadata"),
            ("/dev/video9", "notACamera", "no video device"), ("/dev/video10", "noSuchDevice", "behind it"),
        ]
    )
    func refused(text: String, code: String, says: String) throws {
        let error = try #require(throws: CameraError.self) { try directory.device(matching: text) }
        #expect(error.code.name == code)
        #expect(error.description.contains(says), "\(error)")
    }

    @Test("On a machine without cameras the advice is to plug one in")
    func none() throws {
        let empty = CameraDirectory(system: ScriptedSystem([:]))
        #expect(empty.devices().isEmpty)
        let error = try #require(throws: CameraError.self) { try empty.device(matching: "0") }
        #expect(error.code == .noSuchDevice && error.description.contains("plug one in"))
        let absence = try #require(throws: CameraError.self) { try empty.firstDevice() }
        #expect(absence.description.contains("no /dev/video node exists; plug one in"), "\(absence)")
    }

    @Test("Where none is named, the first camera is taken; one that is forbidden is told from none at all")
    func defaultDevice() throws {
        #expect(try directory.firstDevice().path == "/dev/video0")
        let metadata = CameraScript(deviceCapabilities: UInt32(V4L2_CAP_META_CAPTURE) | streaming)
        let forbidden = ScriptedSystem(["/dev/video0": metadata], openFailures: ["/dev/video8": EACCES])
        let refusal = try #require(throws: CameraError.self) { try CameraDirectory(system: forbidden).firstDevice() }
        #expect(refusal.code == .permissionDenied && refusal.device == "/dev/video8")
        // This was told as no camera at all.
        let broken = ScriptedSystem(["/dev/video0": metadata], openFailures: ["/dev/video8": EIO])
        let failure = try #require(throws: CameraError.self) { try CameraDirectory(system: broken).firstDevice() }
        #expect(failure.code == .driverFailed && failure.device == "/dev/video8")
        // A node may go away meanwhile.
        let none = ScriptedSystem(["/dev/video0": metadata], openFailures: ["/dev/video8": ENOENT])
        let absence = try #require(throws: CameraError.self) { try CameraDirectory(system: none).firstDevice() }
        #expect(absence.code == .noSuchDevice && absence.description.contains("plug one in"))
        #expect(absence.description.contains("none of /dev/video0, /dev/video8 captures video"), "\(absence)")
    }

    private let pipelineEnd = CameraScript(
        card: "ISYS",
        deviceCapabilities: capture | streaming | UInt32(V4L2_CAP_IO_MC),
        failures: [cv4l2_STREAMON: EPIPE]
    )

    // A laptop's webcam was not found behind the nodes of its image processor.
    @Test("The ends of pipelines are no cameras, but one that is named by its path is tried, and says what it needs")
    func pipelines() async throws {
        let system = ScriptedSystem(["/dev/video0": pipelineEnd, "/dev/video42": CameraScript(card: "Webcam")])
        let directory = CameraDirectory(system: system)
        #expect(directory.devices().map(\.path) == ["/dev/video42"])
        #expect(directory.survey().cameras.map(\.path) == ["/dev/video42"])
        #expect(try directory.firstDevice().path == "/dev/video42")
        #expect(throws: CameraError.self) { try directory.device(matching: "ISYS") }
        guard case .other = CameraInspection.ofAllNodes(in: system, wanted: nil).first?.finding else {
            Issue.record("it is inspected as a camera")
            return
        }
        for status in [EPIPE, ENOLINK] {
            var named = pipelineEnd
            named.failures = [cv4l2_STREAMON: status]
            let system = ScriptedSystem(["/dev/video0": named])
            let device = try CameraDirectory(system: system).device(matching: "/dev/video0")
            let error = await #expect(throws: CameraError.self) {
                try await makeSource(system, device: device).startCapture()
            }
            let words = error.map { "\($0)" } ?? "none"
            #expect(error?.code == .driverFailed && words.contains("media-ctl"), "\(words)")
        }
        let alone = CameraDirectory(system: ScriptedSystem(["/dev/video0": pipelineEnd]))
        let absence = try #require(throws: CameraError.self) { try alone.firstDevice() }
        #expect(absence.code == .noSuchDevice && "\(absence)".contains("libcamera"), "\(absence)")
    }

    @Test("Where none is named, a camera whose formats cannot be read comes after one with pictures")
    func depthCamera() throws {
        var depth = CameraScript(card: "Depth")
        depth.formats = [.init(pixelFormat: try #require(PixelFormat(fourCC: "Z16 ")))]
        let scripts = ["/dev/video0": depth, "/dev/video2": CameraScript(card: "Colour")]
        #expect(try CameraDirectory(system: ScriptedSystem(scripts)).firstDevice().name == "Colour")
        let alone = CameraDirectory(system: ScriptedSystem(["/dev/video0": depth, "/dev/video1": depth]))
        #expect(try alone.firstDevice().path == "/dev/video0")
    }

    // It spoke of a metadata node.
    @Test("A loopback device without a writer says that it needs one")
    func loopbackWithoutWriter() throws {
        let loopback = CameraScript(
            driver: "v4l2 loopback",
            deviceCapabilities: UInt32(V4L2_CAP_VIDEO_OUTPUT) | streaming
        )
        let directory = CameraDirectory(system: ScriptedSystem(["/dev/video0": loopback]))
        let error = try #require(throws: CameraError.self) { try directory.device(matching: "0") }
        #expect(error.code == .notACamera && "\(error)".contains("no program writes to"), "\(error)")
    }

    @Test("The real machine can be asked, whether or not it has a camera")
    func realMachine() throws {
        for device in CameraSource.devices() { #expect(nodeNumber(of: device.path) != nil) }
        let error = try #require(throws: CameraError.self) {
            try CameraSource.captureDevice(matching: "/dev/video-there-is-none")
        }
        #expect(error.code == .noSuchDevice)
        let notVideo = try #require(throws: CameraError.self) { try CameraSource.captureDevice(matching: "/dev/null") }
        #expect(notVideo.code == .notACamera)
        // Without a controlling terminal the kernel says ENXIO, as of a camera that is gone.
        let terminal = try #require(throws: CameraError.self) { try CameraSource.captureDevice(matching: "/dev/tty") }
        #expect(terminal.code == .notACamera)
    }
}
