import Glibc
import MediaCore
import TestTools
import Testing

@testable import Diagnosis
@testable import V4L2Capture

@Suite("The check of cameras")
struct CameraCheckTests {
    private static let camera = CaptureDevice(path: "/dev/video0", name: "Cam", busInfo: "usb-1", driver: "uvcvideo")

    private func findings(
        _ finding: CameraInspection.Finding?,
        hidden: HiddenCameras = HiddenCameras(),
        isWanted: Bool = false,
        access: FileAccess? = nil
    ) -> [Finding] {
        let nodes = finding.map { [CameraInspection(path: "/dev/video0", finding: $0)] } ?? []
        // Where there is no camera, none is found.
        let hasCamera =
            switch finding {
            case nil, .other?: false
            default: true
            }
        let found: Result<CaptureDevice, CameraError> = hasCamera ? .success(Self.camera) : .failure(Self.absent)
        let selection = isWanted ? found : nil
        return CameraCheck(nodes: nodes, hidden: hidden, selection: selection).findings { _ in access }
    }

    private static let format = VideoFormat(dimensions: .vga, frameRate: FrameRate(30), pixelFormat: .yuyv)
    private static let usable = CameraInspection.Finding.camera(
        camera,
        usable: [format],
        offered: [.yuyv],
        holder: nil
    )
    private static let absent = CameraError(
        .noSuchDevice,
        device: "/dev/video0",
        attempt: "find",
        explanation: "there is none"
    )
    private static let held = CameraInspection.Finding.failed(
        CameraError(.busy, device: "/dev/video0", attempt: "open", explanation: "it is in use")
    )

    @Test("A usable camera is ok, one without a usable format is a problem that names its formats")
    func formats() throws {
        let good = findings(Self.usable)
        #expect(good.map(\.level) == [.ok] && good[0].found.contains("640x480"))
        let strange = try #require(PixelFormat(fourCC: "ABCD"))
        let bad = findings(.camera(Self.camera, usable: [], offered: [strange], holder: nil))
        #expect(bad.map(\.code) == ["unsupportedFormat"] && bad[0].level == .problem && bad[0].found.contains("ABCD"))
    }

    // `docker run --device /dev/video2:/dev/camera`: the doctor said that there was no camera.
    @Test("A camera whose node has a name of its own is one")
    func renamed() {
        let camera = CaptureDevice(path: "/dev/camera", name: "Cam", busInfo: "usb-1", driver: "uvcvideo")
        let findings = CameraCheck(nodes: [], hidden: HiddenCameras(), selection: .success(camera)).findings()
        #expect(findings.map(\.level) == [.ok] && findings[0].found.contains("/dev/camera"))
    }

    @Test("No camera and a busy one are problems only where a camera is wanted", arguments: [true, false])
    func wanted(isWanted: Bool) {
        let level = isWanted ? Finding.Level.problem : .note
        let none = findings(nil, isWanted: isWanted)
        #expect(none.map(\.code) == ["noSuchDevice"] && none[0].level == level)
        let metadata = findings(.other, isWanted: isWanted)
        #expect(metadata.map(\.code) == ["noSuchDevice"] && metadata[0].found.contains("/dev/video0 does not"))
        let busy = findings(.busy(Self.camera), isWanted: isWanted)
        #expect(busy.map(\.code) == ["busy"] && busy[0].level == level)
        #expect(busy[0].advice?.contains("fuser -v /dev/video0") == true)
        #expect(findings(Self.held, isWanted: isWanted).map(\.level) == [level])
    }

    @Test("Only the camera to capture from is a problem when it is busy, not the others")
    func otherCamera() {
        let other = CaptureDevice(path: "/dev/video2", name: "Other", busInfo: "usb-2", driver: "uvcvideo")
        let nodes = [
            CameraInspection(path: "/dev/video0", finding: Self.usable),
            CameraInspection(path: "/dev/video2", finding: .busy(other)),
            CameraInspection(path: "/dev/video4", finding: Self.held),
        ]
        let levels = [Self.camera, other].map { device in
            CameraCheck(nodes: nodes, hidden: HiddenCameras(), selection: .success(device)).findings().map(\.level)
        }
        #expect(levels == [[.ok, .note, .note], [.ok, .problem, .note]])
    }

    @Test("A camera that another program has open is ok, and the program is named")
    func open() {
        let found = findings(
            .camera(Self.camera, usable: [Self.format], offered: [.yuyv], holder: "cheese (pid 7)"),
            isWanted: true
        )
        #expect(found.map(\.level) == [.ok] && found[0].found.contains("open in cheese (pid 7)"))
    }

    @Test("After six cameras without a fault the others are counted, and a fault is told wherever it is")
    func many() {
        let fine = (0..<8).map { CameraInspection(path: "/dev/video\($0)", finding: Self.usable) }
        let last = CameraInspection(path: "/dev/video8", finding: Self.held)
        let check = CameraCheck(nodes: fine + [last], hidden: HiddenCameras(), selection: nil)
        let found = check.findings()
        #expect(found.map(\.level) == Array(repeating: .ok, count: 6) + [.note, .ok], "\(found)")
        #expect(found.last?.found.hasPrefix("and 2 more") == true)
    }

    @Test(
        "A user who may not open a node is told the command that helps",
        arguments: [
            (FileAccess(mode: 0o660, group: 44, groupName: "video", user: "ann"), "usermod -aG video ann"),
            (
                FileAccess(mode: 0o660, group: 44, groupName: "video", user: "ann", isListedInGroup: true),
                "log out and in again"
            ),
            (FileAccess(mode: 0o660, group: 44, groupName: nil, user: "ann"), "--group-add 44"),
            (FileAccess(mode: 0o600, group: 0, groupName: "root", user: "ann"), "chgrp video /dev/video0"),
            (FileAccess(mode: 0o600, group: 44, groupName: "video", user: "ann"), "chmod 660 /dev/video0"),
            (
                FileAccess(mode: 0o660, group: 44, groupName: "video", user: "root", isRoot: true),
                "--device /dev/video0"
            ),
            (FileAccess(mode: 0o660, group: 44, groupName: "video", user: "ann", isInGroup: true), "policy"),
        ]
    )
    func permission(access: FileAccess, advice: String) throws {
        #expect(access.advice(for: "/dev/video0").contains(advice))
        let refused = CameraError(.permissionDenied, device: "/dev/video0", attempt: "open", explanation: "refused")
        let found = findings(.failed(refused), access: access)
        #expect(found.map(\.code) == ["permissionDenied"] && found.map(\.level) == [.problem])
        let finding = try #require(found.first)
        #expect(finding.found.contains("group \(access.groupName ?? "\(access.group)"), mode"), "\(finding.found)")
        #expect(finding.advice == access.advice(for: "/dev/video0"))
    }

    @Test("The facts of a file are read: its mode, its group and whether this program is in it")
    func access() throws {
        let directory = try TemporaryDirectory()
        let path = directory("video0")
        try store([], at: path)
        chmod(path, 0o240)
        let access = try #require(FileAccess(path: path))
        #expect(access.mode == 0o240 && access.group == getegid() && access.isInGroup)
        #expect(access.isRoot == (geteuid() == 0) && !access.user.isEmpty)
        #expect(FileAccess(path: directory("video1")) == nil)
    }

    @Test("Cameras without a driver and cameras without a node are found in sysfs")
    func hidden() throws {
        let root = try TemporaryDirectory()
        let usb = root("bus/usb/devices")
        let folders = ["bus", "bus/usb", "bus/usb/devices", "class", "class/video4linux", "dev"]
        let devices = ["1-1", "1-1:1.0", "1-1:1.1", "1-2", "1-2:1.0", "1-2:1.0/driver", "1-3:1.0"]
        let nodes = ["video0", "video1", "video2", "v4l-subdev0"].map { "class/video4linux/\($0)" }
        for folder in folders + devices.map({ "bus/usb/devices/\($0)" }) + nodes { mkdir(root(folder), 0o700) }
        for (path, text) in [
            ("1-1/product", "HD Cam"), ("1-1:1.0/bInterfaceClass", "0e"), ("1-1:1.0/bInterfaceSubClass", "01"),
            ("1-1:1.1/bInterfaceClass", "0e"), ("1-1:1.1/bInterfaceSubClass", "02"),
            ("1-2/product", "Other Cam"), ("1-2:1.0/bInterfaceClass", "0e"), ("1-2:1.0/bInterfaceSubClass", "01"),
            ("1-3:1.0/bInterfaceClass", "03"), ("1-3:1.0/bInterfaceSubClass", "01"),
        ] {
            try store("\(text)\n".utf8, at: "\(usb)/\(path)")
        }
        try store("Inner Cam\n".utf8, at: root("class/video4linux/video1/name"))
        // The second node of the same device gives its metadata.
        for (node, index) in [("video1", 0), ("video2", 1)] {
            try store("\(index)\n".utf8, at: root("class/video4linux/\(node)/index"))
        }
        try store([], at: root("dev/video0"))
        let hidden = HiddenCameras(sysfs: root.path, devices: root("dev"))
        #expect(hidden.withoutDriver == ["HD Cam"])
        #expect(hidden.withoutNode == [HiddenCameras.Node(path: "\(root("dev"))/video1", name: "Inner Cam")])
        let found = findings(nil, hidden: hidden, isWanted: true)
        #expect(found.map(\.code) == ["noDriver", "noNode"] && found.allSatisfy { $0.level == .problem })
        #expect(findings(nil, hidden: hidden).map(\.level) == [.problem, .note])
        #expect(findings(Self.usable, hidden: hidden, isWanted: true).map(\.code) == [nil, "noDriver"])
        #expect(found[0].advice?.contains("modprobe uvcvideo") == true)
        #expect(found[1].advice?.contains("--device \(root("dev"))/video1") == true)
    }
}
