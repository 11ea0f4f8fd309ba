import RoomKit
import Testing

@testable import room_client

@Suite("The list of cameras")
struct DeviceListingTests {
    private let cameras = (0...1).map { number in
        CaptureDevice(path: "/dev/video\(number)", name: "camera", busInfo: "usb-\(number)", driver: "uvcvideo")
    }

    /// The error of a camera that does not exist, for a device whose details cannot be read.
    private func failure() throws -> CameraError {
        try #require(throws: CameraError.self) { try CameraSource.captureDevice(matching: "/dev/video-there-is-none") }
    }

    // The first camera that could not be asked ended the list.
    @Test("A camera whose formats cannot be read is listed with the error, and the next one as usual")
    func oneFails() throws {
        let (failure, broken) = (try failure(), cameras[0])
        let listing = DeviceListing(readFormats: { if $0 == broken { throw failure } else { [] } })
        var failures: [any Error] = []
        let events = cameras.map { listing.event(of: $0, failures: &failures) }
        #expect(events[0].error == "\(failure)" && events[0].code == "noSuchDevice" && events[0].formats == nil)
        #expect(events[0].words.contains("/dev/video0") && events[0].words.contains("\(failure)"))
        #expect(events[1].error == nil && events[1].formats?.isEmpty == true)
        #expect(failures.count == 1 && listing.failure(in: CameraSurvey(cameras: cameras), failures) == nil)
    }

    @Test("The list fails only if nothing could be listed")
    func allFail() throws {
        let failure = try failure()
        let listing = DeviceListing(readControls: { _ in throw failure })
        var failures: [any Error] = []
        for device in cameras { _ = listing.event(of: device, failures: &failures) }
        #expect(listing.failure(in: CameraSurvey(cameras: cameras), failures) != nil)
        #expect(listing.failure(in: CameraSurvey(refusals: [failure]), []) != nil, "all nodes are refused")
        #expect(listing.failure(in: CameraSurvey(cameras: cameras, refusals: [failure]), []) == nil)
        #expect(listing.failure(in: CameraSurvey(), []) == nil, "there is nothing")
    }

    @Test("A node that is refused has a line that says what to do")
    func refusal() throws {
        let failure = try failure()
        let event = RefusedDeviceEvent(failure)
        #expect(event.words.contains(failure.device) && event.words.contains(failure.explanation))
        #expect(event.path == failure.device && event.error == "\(failure)" && event.code == "noSuchDevice")
    }
}
