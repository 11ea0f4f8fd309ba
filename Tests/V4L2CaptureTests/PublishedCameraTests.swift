import Capture
import Glibc
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
        _ transform: FrameTransform = FrameTransform(),
        outageLimit: Duration? = nil,
        on system: ScriptedSystem? = nil
    ) -> CameraSource {
        let system = system ?? ScriptedSystem(script)
        return CameraSource(device: testDevice, request: request, system: system, outageLimit: outageLimit) {
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
        var options = VideoPublishOptions()
        // On a busy machine, the size is otherwise what the CPU takes.
        options.degradationPreference = .maintainResolution
        try await robot.room.localParticipant.publish(local, options: options)
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
        let square = Dimensions(width: 480, height: 480)
        let directory = try TemporaryDirectory()
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "PA_1", format: .webm)
        try await eventually("two frames are recorded") { recorder.statistics.framesWritten >= 2 }
        camera.requestOutputFormat(VideoFormatRequest(dimensions: square))
        try await eventually("the square is shown") { track.statistics.dimensions == square }
        let count = recorder.statistics.framesWritten
        try await eventually("the square is recorded") { recorder.statistics.framesWritten > count }
        recorder.stop()
        // One file holds both sizes.
        #expect(recorder.statistics.files.count == 1)
        let reading = try DumpReading(try #require(recorder.statistics.files.first))
        #expect(reading.dimensions == Dimensions(width: 1280, height: 720))
        #expect(reading.pictureSizes.contains(square) && reading.pictureSizes.count >= 2)
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A camera that is unplugged and plugged in again is the same track for its viewers, with a slate in between")
    func replugged() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let system = ScriptedSystem(["/dev/video0": script], usesRealClock: true)
        let size = Dimensions(width: 320, height: 180)
        let local = LocalVideoTrack(source: camera(VideoFormatRequest(dimensions: size), on: system))
        try await robot.room.localParticipant.publish(local)
        let track = try await viewer.subscribedTrack()
        try await eventually("pictures come") { track.statistics.framesDecoded > 0 }
        system.plug([:])
        script.isUnplugged.withLock { $0 = true }
        let cause = try await robot.event("it is told") { event -> (any Error)? in
            if case .localTrackInterrupted(_, let error) = event { error } else { nil }
        }
        #expect((cause as? CameraError)?.code == .deviceLost)
        // Pictures that the camera gave before may still be on their way.
        try await eventually("slates are made") { local.statistics.framesSubstituted >= 2 }
        let before = track.statistics.framesDecoded
        try await eventually("slates are seen") { track.statistics.framesDecoded >= before + 2 }
        #expect(track.statistics.dimensions == size)
        script.isUnplugged.withLock { $0 = false }
        system.plug(["/dev/video3": script])
        _ = try await robot.event("its end is told") { event -> Bool? in
            if case .localTrackInterruptionEnded = event { true } else { nil }
        }
        let later = track.statistics.framesDecoded
        try await eventually("pictures come again") { track.statistics.framesDecoded >= later + 10 }
        await robot.room.disconnect()
        #expect(local.statistics.unaccounted == 0 && local.statistics.interruptions == 1)
        await viewer.room.disconnect()
        let subscriptions = viewer.events.count { if case .trackSubscribed = $0 { true } else { false } }
        #expect(subscriptions == 1, "viewers never resubscribe")
    }

    @Test("A camera that is unplugged and not waited for is reported, and can be published again")
    func unplugged() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let track = LocalVideoTrack(source: camera(VideoFormatRequest(dimensions: testSize), outageLimit: .zero))
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

    // The second track took the first one's frames; refused, it stopped the first one's camera, without an event.
    @Test("Two tracks on one camera both get frames, and a third that is refused disturbs neither")
    func shared() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let system = ScriptedSystem(script)
        let camera = CameraSource(device: testDevice, request: VideoFormatRequest(dimensions: testSize), system: system)
        {
            LumaConverter()
        }
        let (whole, half) = (
            LocalVideoTrack(source: camera, name: "whole"), LocalVideoTrack(source: camera, name: "half")
        )
        half.requestOutputFormat(
            VideoFormatRequest(dimensions: Dimensions(width: 160, height: 90), frameRate: FrameRate(15))
        )
        try await robot.room.localParticipant.publish(whole)
        try await robot.room.localParticipant.publish(half)
        await #expect(throws: RoomError.self) {
            try await robot.room.localParticipant.publish(LocalVideoTrack(source: camera, name: "whole"))
        }
        let first = try await viewer.subscribedTrack("whole")
        let second = try await viewer.subscribedTrack("half")
        #expect(second.dimensions == Dimensions(width: 160, height: 90) && second.frameRate == 15)
        let (before, beforeSecond) = (first.statistics.framesDecoded, second.statistics.framesDecoded)
        try await eventually("both go on") {
            first.statistics.framesDecoded > before + 5 && second.statistics.framesDecoded > beforeSecond + 5
        }
        await robot.room.localParticipant.unpublish(half)
        let counted = half.statistics
        #expect(counted.unaccounted == 0 && counted.framesDropped[.notWanted] > 0)
        // The first began before, and both took every frame; each counts the pictures that it showed again for itself.
        let ofFirst = whole.statistics
        #expect(
            ofFirst.framesCaptured - ofFirst.framesRepeated >= counted.framesCaptured - counted.framesRepeated,
            "\(ofFirst), \(counted)"
        )
        let later = first.statistics.framesDecoded
        try await eventually("the first goes on") { first.statistics.framesDecoded > later + 5 }
        #expect(!system.isAllClosed && half.statistics == counted)
        await robot.room.localParticipant.unpublish(whole)
        #expect(system.isAllClosed && whole.statistics.unaccounted == 0)
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    // A capturer that counted nothing had more frames encoded than captured.
    @Test("A source that counts nothing still has captured = encoded + dropped")
    func uncounted() async throws {
        final class DirectSource: VideoSource {
            let sinks = VideoSinks()
            func deliver(_ frame: VideoFrame) { sink?.onVideoFrame(frame) }
        }
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let source = DirectSource()
        let track = LocalVideoTrack(source: source)
        let publishing = Task { try await robot.room.localParticipant.publish(track) }
        try await eventually("it waits for a frame") { source.sink != nil }
        func deliver() {
            source.deliver(VideoFrame(buffer: VideoBuffer(dimensions: testSize), timestamp: MonotonicClock.now))
        }
        deliver()
        try await publishing.value
        _ = try await viewer.subscribedTrack()
        try await eventually("some are encoded") {
            deliver()
            return track.statistics.framesEncoded >= 3
        }
        await robot.room.disconnect()
        #expect(track.statistics.framesCaptured > 3 && track.statistics.unaccounted == 0)
        await viewer.room.disconnect()
    }

    // The watchdog counted what came, not what could be used: viewers saw nothing, for ever, without a word.
    @Test("A camera of which every frame is damaged fails, and says so")
    func damaged() async throws {
        var script = script
        script.formats = [CameraScript.Format(pixelFormat: .mjpeg, isCompressed: true)]
        script.intervalMilliseconds = 1
        let camera = CameraSource(device: testDevice, request: VideoFormatRequest(), system: ScriptedSystem(script)) {
            LumaConverter()
        }
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let track = LocalVideoTrack(source: camera)
        let error = await #expect(throws: CameraError.self) {
            try await robot.room.localParticipant.publish(track)
        }
        #expect(error?.code == .noFrames && "\(error, default: "")".contains("damaged"))
        await robot.room.disconnect()
    }

    // It took ten seconds, and the error was that no picture had come.
    @Test(
        "A camera that dies before its first frame fails the publishing at once, with its own error",
        .timeLimit(.minutes(1))
    )
    func deadBeforeFirstFrame() async throws {
        var script = script
        script.events = [.trouble([.failed, .gone], status: ENODEV)]
        let camera = CameraSource(device: testDevice, request: VideoFormatRequest(), system: ScriptedSystem(script)) {
            LumaConverter()
        }
        let stage = try Stage()
        let robot = try await stage.join("robot")
        for _ in 0..<10 {
            let error = await #expect(throws: CameraError.self) {
                try await robot.room.localParticipant.publish(LocalVideoTrack(source: camera))
            }
            #expect(error?.code == .deviceLost)
        }
        await robot.room.disconnect()
    }

    // The rate of the driver was announced.
    @Test(
        "The announced rate is the least of the camera's, the ones that were requested and the default limit",
        arguments: [
            (30, 10, nil, 10), (30, 60, nil, 30), (60, nil, nil, 30), (60, 60, nil, 60), (60, nil, 12, 12),
            (60, 20, 25, 20),
        ]
            as [(UInt32, Int?, Int?, Int)]
    )
    func announcedRate(stated: UInt32, ofSource: Int?, ofTrack: Int?, announced: Int) async throws {
        var script = script
        script.statedRate = (stated, 1)
        let request = VideoFormatRequest(frameRate: ofSource.map { FrameRate($0) })
        let camera = CameraSource(device: testDevice, request: request, system: ScriptedSystem(script)) {
            LumaConverter()
        }
        let track = LocalVideoTrack(source: camera)
        track.requestOutputFormat(VideoFormatRequest(frameRate: ofTrack.map { FrameRate($0) }))
        #expect(track.frameRate == nil)
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        try await robot.room.localParticipant.publish(track)
        #expect(camera.captureFormat?.frameRate == FrameRate(Int(stated)))
        #expect(track.frameRate == FrameRate(announced))
        #expect(try await viewer.subscribedTrack().frameRate == Double(announced))
        await robot.room.disconnect()
        await viewer.room.disconnect()
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
