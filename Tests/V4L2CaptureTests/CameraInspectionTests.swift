import CV4L2
import Glibc
import MediaCore
import Testing

@testable import V4L2Capture

@Suite("Inspecting cameras", .timeLimit(.minutes(1)))
struct CameraInspectionTests {
    private func inspect(
        _ script: CameraScript,
        wanted: String? = "/dev/video0",
        holder: String? = nil
    ) throws -> (CameraInspection.Finding, ScriptedSystem) {
        let system = ScriptedSystem(["/dev/video0": script], otherProgram: holder)
        let inspection = try #require(CameraInspection.ofAllNodes(in: system, wanted: wanted).first)
        #expect(inspection.path == "/dev/video0" && system.isAllClosed)
        return (inspection.finding, system)
    }

    @Test("A free camera is described with the formats that can be read, and nothing about it is changed")
    func free() throws {
        let strange = CameraScript.Format(pixelFormat: try #require(PixelFormat(fourCC: "ABCD")))
        let large = CameraScript.Format(pixelFormat: .yuyv, sizes: .discrete([(320, 240), (64, 48)]))
        let (finding, system) = try inspect(CameraScript(card: "Cam", formats: [strange, large]))
        guard case .camera(let device, let usable, let offered, holder: nil) = finding else {
            Issue.record("\(finding)")
            return
        }
        #expect(device.name == "Cam" && offered.count == 2)
        #expect(usable.map(\.dimensions) == [Dimensions(width: 64, height: 48), Dimensions(width: 320, height: 240)])
        for request in [cv4l2_S_FMT, cv4l2_S_PARM, cv4l2_STREAMON] { #expect(system.calls(request) == 0) }
    }

    @Test("A camera from which somebody captures is busy; it is asked once, and not for its formats")
    func busy() throws {
        let (finding, system) = try inspect(CameraScript(card: "Cam", failures: [cv4l2_REQBUFS: EBUSY]))
        guard case .busy(let device) = finding else {
            Issue.record("\(finding)")
            return
        }
        #expect(device.name == "Cam" && system.calls(cv4l2_REQBUFS) == 1 && system.calls(cv4l2_ENUM_FMT) == 0)
    }

    // v4l2loopback sets up its buffers anew with each such call, and some drivers free those of another program.
    @Test(
        "Buffers are asked for only of a wanted camera that nobody else is known to have open, and of no loopback",
        arguments: [
            (nil, nil, "uvcvideo"), ("/dev/video1", nil, "uvcvideo"), ("/dev/video0", "cheese (pid 7)", "uvcvideo"),
            ("/dev/video0", nil, "v4l2 loopback"),
        ] as [(String?, String?, String)]
    )
    func unasked(wanted: String?, holder: String?, driver: String) throws {
        let script = CameraScript(driver: driver, failures: [cv4l2_REQBUFS: EBUSY])
        let (finding, system) = try inspect(script, wanted: wanted, holder: holder)
        guard case .camera(_, _, _, let known) = finding else {
            Issue.record("\(finding)")
            return
        }
        #expect(known == holder && system.calls(cv4l2_REQBUFS) == 0)
    }

    @Test("Metadata nodes are other nodes, and one that may not be opened has failed")
    func others() {
        let metadata = UInt32(V4L2_CAP_META_CAPTURE) | UInt32(V4L2_CAP_STREAMING)
        let system = ScriptedSystem(
            ["/dev/video1": CameraScript(deviceCapabilities: metadata)],
            openFailures: ["/dev/video2": EACCES]
        )
        let findings = CameraInspection.ofAllNodes(in: system, wanted: nil).map(\.finding)
        guard case .other = findings[0], case .failed(let error) = findings[1] else {
            Issue.record("\(findings)")
            return
        }
        #expect(error.code == .permissionDenied && system.isAllClosed)
    }
}
