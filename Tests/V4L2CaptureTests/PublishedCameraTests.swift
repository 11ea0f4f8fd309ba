import MediaCore
import RoomKit
import TestSupport
import Testing
import Threading
import VideoProcessing

@testable import V4L2Capture

/// A scripted camera as the source of a track, through a relay to a subscriber.
@Suite("A published camera", .timeLimit(.minutes(2)))
struct PublishedCameraTests {
    /// A camera that has but one size.
    private let script: CameraScript

    init() {
        var script = CameraScript()
        script.formats = [CameraScript.Format(pixelFormat: .yuyv, sizes: .discrete([(1280, 720)]))]
        script.intervalMilliseconds = 20
        script.events = CameraScript.steady(10_000)
        self.script = script
    }

    private func camera(
        _ request: VideoFormatRequest = VideoFormatRequest(),
        _ transform: FrameTransform = FrameTransform()
    ) -> CameraSource {
        CameraSource(device: testDevice, request: request, system: ScriptedSystem(script)) {
            do {
                return try FrameConverter(transform: transform)
            } catch {
                preconditionFailure("\(error)")
            }
        }
    }

    // A size that the camera did not have was published in that of the camera.
    @Test(
        "A size that the camera does not have is cut out and scaled down to, then cropped and turned",
        arguments: [
            (Dimensions(width: 700, height: 500), FrameTransform(), Dimensions(width: 700, height: 500)),
            (Dimensions(width: 1920, height: 1200), FrameTransform(), Dimensions(width: 1152, height: 720)),
            (
                Dimensions(width: 640, height: 360),
                FrameTransform(crop: Dimensions(width: 320, height: 200), rotation: .clockwise90),
                Dimensions(width: 200, height: 320)
            ),
        ]
    )
    func requestedSize(size: Dimensions, transform: FrameTransform, expected: Dimensions) async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let camera = camera(VideoFormatRequest(dimensions: size), transform)
        let local = LocalVideoTrack(source: camera)
        try await robot.room.localParticipant.publish(local)
        #expect(local.dimensions == expected)
        #expect(camera.captureFormat?.dimensions == Dimensions(width: 1280, height: 720))
        let track = try await viewer.subscribedTrack()
        #expect(track.dimensions == expected)
        let sizes = try await recordedSizes(of: track) { $0.framesWritten >= 3 }
        #expect(sizes == [expected])
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A size that is asked for while the camera is published is taken up at once")
    func requestWhilePublished() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let camera = camera()
        try await robot.room.localParticipant.publish(LocalVideoTrack(source: camera))
        let track = try await viewer.subscribedTrack()
        let sizes = try await recordedSizes(of: track) { statistics in
            if statistics.framesWritten >= 2 {
                camera.requestOutputFormat(VideoFormatRequest(dimensions: Dimensions(width: 480, height: 480)))
            }
            return statistics.files.count == 2
        }
        #expect(sizes == [Dimensions(width: 1280, height: 720), Dimensions(width: 480, height: 480)])
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A camera that is unplugged while it is published is told of, and can be published again")
    func unplugged() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let track = LocalVideoTrack(source: camera(VideoFormatRequest(dimensions: testSize)))
        try await robot.room.localParticipant.publish(track)
        _ = try await viewer.subscribedTrack()
        script.isUnplugged.withLock { $0 = true }
        let (failed, error) = try await robot.event("it is told") { event -> (LocalVideoTrack, any Error)? in
            if case .localTrackFailed(let track, let error) = event { (track, error) } else { nil }
        }
        #expect(failed === track && (error as? CameraError)?.code == .deviceLost)
        #expect(await robot.room.localParticipant.videoTracks.map(\.name) == ["camera"], "it stays published")
        await robot.room.localParticipant.unpublish(track)
        script.isUnplugged.withLock { $0 = false }
        try await robot.room.localParticipant.publish(track)
        let again = try await viewer.subscribedTrack(occurrence: 2)
        try await eventually("pictures come again") { again.statistics.framesDecoded > 0 }
        await robot.room.disconnect()
        await viewer.room.disconnect()
        let failures = robot.events.count { if case .localTrackFailed = $0 { true } else { false } }
        #expect(failures == 1)
    }

    // It was a trap.
    @Test("Where the system has no thread left, a camera does not start, and can be started again")
    func noThread() async {
        await #expect(processExitsWith: .success) {
            let source = makeSource(ScriptedSystem(CameraScript(events: CameraScript.steady(1))))
            let sink = RecordingSink()
            source.sink = sink
            try leaveNoThreads()
            for _ in 0..<2 {
                do {
                    try await source.startCapture()
                    throw TestFailure("a camera without a thread")
                } catch let error as CameraError {
                    guard error.code == .outOfResources else { throw error }
                }
            }
            await source.stopCapture()
            withExtendedLifetime(sink) {}
        }
    }

    @Test("Pictures that are all damaged are named where there is none to publish")
    func damaged() async throws {
        var script = script
        script.formats = [CameraScript.Format(pixelFormat: .mjpeg, isCompressed: true)]
        let camera = CameraSource(device: testDevice, request: VideoFormatRequest(), system: ScriptedSystem(script)) {
            LumaConverter()
        }
        let stage = try Stage()
        let robot = try await stage.join("robot")
        do {
            try await robot.room.localParticipant.publish(LocalVideoTrack(source: camera))
            Issue.record("it was published")
        } catch let error as RoomError {
            #expect(error.code == .noFramesCaptured && "\(error)".contains("damaged"), "\(error)")
        }
        await robot.room.disconnect()
    }

    /// Records a track until `isEnough`, and gives the size of the pictures in each file.
    private func recordedSizes(
        of track: RemoteVideoTrack,
        until isEnough: (RecordingStatistics) -> Bool
    ) async throws -> [Dimensions] {
        let directory = try TemporaryDirectory()
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "PA_1", format: .webm)
        try await eventually("enough is recorded") { isEnough(recorder.statistics) }
        recorder.stop()
        return try recorder.statistics.files.flatMap { file in
            let reading = try DumpReading(file)
            return [reading.dimensions].filter { reading.pictureSizes == [$0] }
        }
    }
}
