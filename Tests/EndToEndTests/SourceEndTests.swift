import Glibc
import MediaCore
import RelayCore
import RelayServer
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

/// A device of the test: slow to close, and ended or failing when the test says so.
private final class TestDevice: CustomCapturer {
    struct Unplugged: Error {}

    private let consumer = Monitor<VideoCaptureConsumer?>(nil)
    private let closingTime: Duration
    private let size: Dimensions

    init(closingTime: Duration = .zero, size: Dimensions = Dimensions(width: 64, height: 48)) {
        self.closingTime = closingTime
        self.size = size
    }

    func initCapture() {}
    func startCapture(_ consumer: VideoCaptureConsumer) { self.consumer.withLock { $0 = consumer } }
    func stopCapture() {}
    func releaseCapture() {
        _ = Monitor(()).wait(until: MonotonicClock.now + closingTime) { _ -> Void? in nil }
    }

    func deliver() {
        let buffer = VideoBuffer(dimensions: size)
        buffer.withMutablePlanes { plane, chromaU, chromaV in
            plane.update(repeating: 90)
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        _ = consumer.withLock { $0 }?.consume(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now))
    }

    func finish() { consumer.withLock { $0 }?.finish() }
    func fail() { consumer.withLock { $0 }?.fail(Unplugged()) }
}

@Suite("Tracks whose source or session ends", .timeLimit(.minutes(2)))
struct SourceEndTests {
    private func publish(_ track: LocalVideoTrack, by member: Member, _ device: TestDevice) async throws {
        let publishing = Task { try await member.room.localParticipant.publish(track) }
        let pictures = Task {
            while true {
                try await Task.sleep(for: .milliseconds(20))
                device.deliver()
            }
        }
        defer { pictures.cancel() }
        try await publishing.value
    }

    // Connecting again failed for good, because the camera of the session before was still being closed.
    @Test("A track can be published again at once after its session is over, or while it is unpublished")
    func again() async throws {
        let stage = try Stage()
        let device = TestDevice(closingTime: .milliseconds(400))
        let track = LocalVideoTrack(source: CapturerSource(device, kind: .camera), name: "camera")
        let first = try await stage.join("robot")
        #expect(track.sid == nil)
        try await publish(track, by: first, device)
        let formerID = try #require(track.sid)
        // It replaces the first one.
        let second = try await stage.join("robot")
        #expect(try await first.ending()?.serverCode == 4409)
        try await publish(track, by: second, device)
        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack("camera")
        #expect(track.sid == remote.sid && remote.sid != formerID)
        let withdrawal = Task { await second.room.localParticipant.unpublish(track) }
        try await Task.sleep(for: .milliseconds(50))
        try await publish(track, by: second, device)
        await withdrawal.value
        #expect(await second.room.localParticipant.videoTracks.count == 1)
        _ = try await viewer.subscribedTrack("camera", occurrence: 2)
        #expect(!remote.isSubscribed)
        for member in [second, viewer] { await member.room.disconnect() }
        #expect(track.statistics.unaccounted == 0 && track.sid == nil)
    }

    // It found nothing to withdraw, and the track appeared a moment later.
    @Test("A publication that waits for the end of the one before it can be withdrawn, too")
    func withdrawnWhileWaiting() async throws {
        let stage = try Stage()
        let device = TestDevice(closingTime: .seconds(1))
        let track = LocalVideoTrack(source: CapturerSource(device, kind: .camera), name: "camera")
        let robot = try await stage.join("robot")
        try await publish(track, by: robot, device)
        let participant = robot.room.localParticipant
        let first = Task { await participant.unpublish(track) }
        try await Task.sleep(for: .milliseconds(50))
        let second = Task { try await publish(track, by: robot, device) }
        try await Task.sleep(for: .milliseconds(50))
        await participant.unpublish(track)
        let error = await #expect(throws: RoomError.self) { try await second.value }
        #expect(error?.code == .unpublished)
        await first.value
        #expect(await participant.videoTracks.isEmpty && track.sid == nil)
        // It leaves nothing that is in the way of the next one.
        try await publish(track, by: robot, device)
        #expect(await participant.videoTracks.count == 1)
        await robot.room.disconnect()
    }

    // The server was told that the track was disabled, and so left out the frames that were on their way.
    @Test("A track that is unpublished because its source has ended is not announced as disabled before")
    func unpublishedAtTheEnd() async throws {
        let stage = try Stage()
        let device = TestDevice(size: Dimensions(width: 1920, height: 1080))
        let track = LocalVideoTrack(source: CapturerSource(device, kind: .camera), name: "camera")
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        try await publish(track, by: robot, device)
        _ = try await viewer.subscribedTrack("camera")
        device.deliver()
        device.finish()
        _ = try await robot.event("the end is told") { if case .localTrackFinished = $0 { true } else { nil } }
        // Viewers are to be told a second later that nothing more comes, and the encoder is still at work.
        try await Task.sleep(for: .milliseconds(5))
        await robot.room.localParticipant.unpublish(track)
        _ = try await viewer.event("it is gone") { if case .trackUnpublished = $0 { true } else { nil } }
        #expect(!viewer.events.contains { if case .trackDisabled = $0 { true } else { false } })
        for member in [robot, viewer] { await member.room.disconnect() }
    }

    // Its viewers kept the last picture as a live one, and an end was no event at all.
    @Test("The end of a source is an event, and its viewers learn that nothing more comes", arguments: [false, true])
    func ends(byFailure: Bool) async throws {
        let stage = try Stage()
        let device = TestDevice()
        let source = CapturerSource(device, kind: .camera)
        let track = LocalVideoTrack(source: source, name: "camera")
        let robot = try await stage.join("robot")
        let viewer = try await stage.join("viewer")
        try await publish(track, by: robot, device)
        let remote = try await viewer.subscribedTrack("camera")
        if byFailure { device.fail() } else { device.finish() }
        let isTold = try await robot.event("the end is told") { event -> Bool? in
            switch event {
            case .localTrackFailed(let failed, let error) where byFailure:
                failed === track && error is TestDevice.Unplugged
            case .localTrackFinished(let ended) where !byFailure: ended === track
            default: nil
            }
        }
        #expect(isTold)
        try await eventually("the viewer knows") { !remote.isEnabled }
        #expect(track.isEnabled, "that is what the application wants of it")
        // The application may start it again.
        try await source.startCapture()
        try await eventually("it goes on") {
            device.deliver()
            return remote.isEnabled
        }
        let decoded = remote.statistics.framesDecoded
        try await eventually("pictures come again") {
            device.deliver()
            try await Task.sleep(for: .milliseconds(20))
            return remote.statistics.framesDecoded >= decoded + 3
        }
        await source.stopCapture()
        for member in [robot, viewer] { await member.room.disconnect() }
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("A track whose source never starts holds up neither the failure of another one nor the end of the task")
    func endlessStart() async throws {
        let stage = try Stage()
        let failing = Task {
            try await stage.join("robot") { options in
                let broken = LocalVideoTrack(source: CapturerSource(AbsentDevice(), kind: .camera), name: "broken")
                options.videoTracks = [LocalVideoTrack(source: EndlessStart(), name: "endless"), broken]
            }
        }
        await #expect(throws: AbsentDevice.Absent.self) { try await failing.value }
        let joining = Task {
            try await stage.join("robot") { options in
                options.videoTracks = [LocalVideoTrack(source: EndlessStart(), name: "endless")]
            }
        }
        try await eventually("it has joined") { await stage.server.statistics().connections == 1 }
        joining.cancel()
        await #expect(throws: (any Error).self) { try await joining.value }
        try await eventually("nobody is left") { await stage.server.statistics().connections == 0 }
    }

    /// How a publishing ends whose source does not open.
    enum Ending: CaseIterable { case cancelled, unpublished, disconnected, serverStopped }

    // It was not ended by its task; it threw the error of a source that was stopped; and a room whose source somebody else
    // waited for was never left.
    @Test("A publishing ends while its source waits, also if another room waits for that", arguments: Ending.allCases)
    func silentSource(ending: Ending) async throws {
        let stages = try (Stage(), Stage())
        let directory = try TemporaryDirectory()
        try #require(mkfifo(directory("pipe"), 0o600) == 0)
        let source = ClipSource(path: directory("pipe"))
        let (one, other) = (try await stages.0.join("one"), try await stages.1.join("other"))
        let tracks = (LocalVideoTrack(source: source, name: "one"), LocalVideoTrack(source: source, name: "other"))
        let publishing = Task { try await one.room.localParticipant.publish(tracks.0) }
        let others = Task { try await other.room.localParticipant.publish(tracks.1) }
        try await eventually("one waits") { !source.sinks.isEmpty }
        try await Task.sleep(for: .milliseconds(100))
        switch ending {
        case .cancelled: publishing.cancel()
        case .unpublished: await one.room.localParticipant.unpublish(tracks.0)
        case .disconnected: await one.room.disconnect()
        case .serverStopped: stages.0.server.stop()
        }
        let error = await #expect(throws: (any Error).self) { try await publishing.value }
        switch ending {
        case .cancelled: #expect(error is CancellationError)
        case .unpublished: #expect((error as? RoomError)?.code == .unpublished)
        case .disconnected: #expect((error as? RoomError)?.code == .notConnected)
        case .serverStopped: #expect((error as? RoomError)?.code == .connectionLost)
        }
        await one.room.disconnect()
        await other.room.disconnect()
        await #expect(throws: RoomError.self) { try await others.value }
    }

    // One camera that was absent kept the program out of the room, with the camera that worked.
    @Test("A track that cannot be published keeps the others away only if all are required", arguments: [false, true])
    func absentCamera(isRequired: Bool) async throws {
        let stage = try Stage()
        let absent = CapturerSource(AbsentDevice(), kind: .camera)
        let broken = LocalVideoTrack(source: absent, name: "broken")
        let working = makePattern()
        func join() async throws -> Member {
            try await stage.join("robot") { options in
                options.videoTracks = [broken, working]
                options.areVideoTracksRequired = isRequired
            }
        }
        guard !isRequired else {
            await #expect(throws: AbsentDevice.Absent.self) { try await join() }
            try await eventually("nobody is left") { await stage.server.statistics().connections == 0 }
            return
        }
        let robot = try await join()
        #expect(await robot.room.localParticipant.videoTracks.map(\.name) == [working.name])
        let isTold = try await robot.event("the failure is told") { event -> Bool? in
            guard case .localTrackFailed(let track, let error) = event else { return nil }
            return track === broken && error is AbsentDevice.Absent
        }
        #expect(isTold)
        await robot.room.disconnect()
    }
}

/// A source whose start waits for something that never comes.
private final class EndlessStart: VideoCapturer {
    let sinks = VideoSinks()
    var captureFormat: VideoFormat? { nil }
    var isCapturing: Bool { false }
    private let stopped = AsyncStream<Void>.makeStream()

    func startCapture() async throws { for await _ in stopped.stream {} }
    func stopCapture() async { stopped.continuation.finish() }
    func startCapture(for sink: any VideoSink) async throws {
        try await startCapture()
        throw CancellationError()
    }
    func stopCapture(for sink: any VideoSink) async { await stopCapture() }
}

/// A device that is not there.
private final class AbsentDevice: CustomCapturer {
    struct Absent: Error {}

    func initCapture() throws { throw Absent() }
    func startCapture(_ consumer: VideoCaptureConsumer) {}
    func stopCapture() {}
    func releaseCapture() {}
}
