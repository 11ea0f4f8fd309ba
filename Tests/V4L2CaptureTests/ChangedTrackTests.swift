import Capture
import MediaCore
import RoomKit
import TestSupport
import Testing
import Threading
import VideoProcessing

@testable import RoomKit
@testable import V4L2Capture

/// A published camera that is changed, turned or asked for another size, and what both ends see of it.
@Suite("A published camera that changes", .timeLimit(.minutes(2)))
struct ChangedTrackTests {
    private let size = Dimensions(width: 320, height: 180)

    private func script(_ card: String = "Scripted", busInfo: String = "test-1") -> CameraScript {
        var script = CameraScript(card: card, busInfo: busInfo)
        script.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(320, 180), (640, 360)]))]
        script.intervalMilliseconds = 20
        script.events = CameraScript.steady(10_000)
        return script
    }

    private func camera(
        on system: ScriptedSystem,
        turnedBy tracker: any OrientationTracker = StaticOrientationTracker(.none)
    ) -> CameraSource {
        CameraSource(device: testDevice, request: VideoFormatRequest(dimensions: size), system: system) {
            do {
                return OrientedConverter(try FrameConverter(), tracker)
            } catch {
                preconditionFailure("\(error)")
            }
        }
    }

    @Test("Two cameras are changed: the same track, no second subscription, one keyframe at most")
    func changed() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let scripts = ["/dev/video0": script(), "/dev/video1": script("Second", busInfo: "test-2")]
        let source = camera(on: ScriptedSystem(scripts, usesRealClock: true))
        let local = LocalVideoTrack(source: source)
        try await robot.room.localParticipant.publish(local)
        let track = try await viewer.subscribedTrack()
        try await eventually("pictures come") { track.statistics.framesDecoded >= 5 }
        let keyframes = local.statistics.keyframes
        let device = CaptureDevice(path: "/dev/video1", name: "Second", busInfo: "test-2", driver: "scripted")
        try await source.selectCaptureDevice(device)
        let decoded = track.statistics.framesDecoded
        try await eventually("pictures come from the other") { track.statistics.framesDecoded >= decoded + 10 }
        #expect(local.statistics.keyframes - keyframes <= 1)
        #expect(source.device == device && source.captureStatistics.interruptions == 0)
        await robot.room.disconnect()
        #expect(local.statistics.unaccounted == 0)
        await viewer.room.disconnect()
        let subscriptions = viewer.events.count { if case .trackSubscribed = $0 { true } else { false } }
        #expect(subscriptions == 1)
    }

    @Test("A size that is requested, and one that is taken back, are reported at both ends")
    func dimensions() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let source = camera(on: ScriptedSystem(["/dev/video0": script()], usesRealClock: true))
        let local = LocalVideoTrack(source: source)
        try await robot.room.localParticipant.publish(local)
        let track = try await viewer.subscribedTrack()
        try await eventually("pictures come") { track.statistics.dimensions == size }
        let square = Dimensions(width: 96, height: 96)
        source.requestOutputFormat(VideoFormatRequest(dimensions: square))
        #expect(try await resized(robot) == square)
        #expect(try await resized(viewer) == square)
        #expect(local.dimensions == square && track.dimensions == square && track.publishedDimensions == size)
        source.resetOutputFormat()
        try await eventually("the camera's own size is back") { local.dimensions == size && track.dimensions == size }
        local.requestOutputFormat(VideoFormatRequest(dimensions: square))
        try await eventually("the track is square") { local.dimensions == square && track.dimensions == square }
        local.resetOutputFormat()
        try await eventually("the track is the source's again") { local.dimensions == size && track.dimensions == size }
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A camera that is turned while it is published comes out upright, as large as it is")
    func turned() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let tracker = ManualOrientationTracker()
        let source = camera(on: ScriptedSystem(["/dev/video0": script()], usesRealClock: true), turnedBy: tracker)
        let local = LocalVideoTrack(source: source)
        try await robot.room.localParticipant.publish(local)
        let track = try await viewer.subscribedTrack()
        try await eventually("pictures come") { track.statistics.framesDecoded >= 3 }
        tracker.rotation = .clockwise90
        let upright = try await resized(viewer)
        #expect(upright == size.transposed)
        tracker.rotation = .half
        try await eventually("it lies again") { track.dimensions == size }
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    /// The first size that a room tells a track of its own or another's to have changed to.
    private func resized(_ guest: Member) async throws -> Dimensions {
        try await guest.event("another size is told") { event in
            switch event {
            case .localTrackDimensionsChanged(_, let size), .trackDimensionsChanged(_, _, let size): size
            default: nil
            }
        }
    }

    @Test("The turn of the camera is added to the one that is asked for")
    func sum() throws {
        let converter = try FrameConverter(transform: FrameTransform(rotation: .clockwise90))
        let tracker = ManualOrientationTracker(.clockwise90)
        let oriented = OrientedConverter(converter, tracker)
        #expect(converter.transform.rotation == .half)
        #expect(oriented.outputDimensions(for: size) == size)
        tracker.rotation = .half
        #expect(oriented.outputDimensions(for: size) == size.transposed)
        #expect(VideoRotation.clockwise270 + .clockwise270 == .half)
    }
}
