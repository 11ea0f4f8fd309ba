import MediaCore
import RoomKit
import SyntheticSources
import TestSupport
import Testing
import Threading
import WebSockets

/// Each in a process of its own, to which no thread is left: formerly a trap, wherever the next thread was begun.
@Suite("Without threads", .timeLimit(.minutes(2)))
struct ThreadShortageTests {
    @Test("A thread that cannot be started lets go of what it was to run")
    func workerThread() async {
        await #expect(processExitsWith: .success) {
            try leaveNoThreads()
            var body: BodyMarker? = BodyMarker()
            weak let kept = body
            do throws(ThreadShortage) {
                _ = try WorkerThread(name: "test") { [body] in withExtendedLifetime(body) {} }
            } catch {
                body = nil
            }
            try require(kept == nil, "the body is kept")
        }
    }

    @Test("A loop is not there, and says why")
    func loop() async {
        await #expect(processExitsWith: .success) {
            try leaveNoThreads()
            do {
                _ = try WebSocketLoop(name: "test")
                try require(false, "a loop without a thread")
            } catch let error as WebSocketError {
                try require(error.code == .systemFailure && "\(error)".contains("ulimit"), "\(error)")
            }
        }
    }

    @Test("A source does not start, and can be stopped, started again and dropped")
    func source() async {
        await #expect(processExitsWith: .success) {
            try leaveNoThreads()
            let source = PatternSource(dimensions: Dimensions(width: 64, height: 48))
            for _ in 0..<2 {
                do {
                    try await source.startCapture()
                    try require(false, "a source without a thread")
                } catch let error as SyntheticSourceError {
                    try require(error.code == .outOfResources, "\(error)")
                }
                await source.stopCapture()
            }
        }
    }

    @Test("A track is not published, and withdrawn again")
    func publisher() async {
        await #expect(processExitsWith: .success) {
            let stage = try Stage()
            let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
            let track = LocalVideoTrack(source: StillSource(), name: "still")
            try leaveNoThreads()
            do {
                try await robot.room.localParticipant.publish(track)
                try require(false, "published without a thread")
            } catch let error as RoomError {
                try require(error.code == .outOfResources, "\(error)")
            }
            _ = try await viewer.event("it is withdrawn") { if case .trackUnpublished = $0 { true } else { nil } }
            try require(await robot.room.localParticipant.videoTracks.isEmpty, "it is there")
            await robot.room.disconnect()
            await viewer.room.disconnect()
        }
    }

    @Test("A server's name is not looked up, which is told")
    func resolver() async {
        await #expect(processExitsWith: .success) {
            let stage = try Stage()
            let member = try await stage.join("member")
            try leaveNoThreads()
            var options = stage.options("other")
            options.url = "ws://server.invalid:8480"
            do {
                _ = try await RoomClient.connect(options: options)
                try require(false, "connected")
            } catch let error as RoomError {
                try require(error.code == .serverUnavailable && "\(error)".contains("ulimit"), "\(error)")
            }
            try require(await member.room.state == .connected, "the other session is over")
            await member.room.disconnect()
        }
    }

    @Test("A track is not received, nor recorded, which is told, and the session goes on")
    func receiver() async {
        await #expect(processExitsWith: .success) {
            let stage = try Stage()
            let robot = try await stage.join("robot") { $0.isAutomaticSubscriptionEnabled = false }
            let viewer = try await stage.join("viewer") { $0.isAutomaticSubscriptionEnabled = false }
            try await robot.room.localParticipant.publish(makePattern())
            let track = try await viewer.event("the track is there") { event -> RemoteVideoTrack? in
                if case .trackPublished(let track, _) = event { track } else { nil }
            }
            let directory = try TemporaryDirectory()
            try leaveNoThreads()
            do {
                _ = try TrackRecorder(track: track, directory: directory.path, recorderID: "PA_1", format: .webm)
                try require(false, "recorded")
            } catch let error as RecordingError {
                try require("\(error)".contains("ulimit"), "\(error)")
            }
            await viewer.room.subscribe(to: track)
            let error = try await viewer.event("it is not received") { event -> RoomError? in
                guard case .trackSubscriptionFailed(let failed, _, let error) = event else { return nil }
                return failed === track ? error : nil
            }
            try require(error.code == .outOfResources, "\(error)")
            try require(await viewer.room.state == .connected, "the session is over")
            await viewer.room.disconnect()
            await robot.room.disconnect()
            let isReceived = viewer.events.contains { if case .trackSubscribed = $0 { true } else { false } }
            try require(!isReceived, "it was received")
        }
    }
}

/// Ends an exit test's process with a failure unless `condition` holds.
private func require(_ condition: Bool, _ what: String) throws {
    if !condition { throw TestFailure(what) }
}

private final class BodyMarker: Sendable {}

/// Gives one picture to each sink for which it is started.
private final class StillSource: VideoCapturer {
    let sinks = VideoSinks()
    var captureFormat: VideoFormat? { nil }
    var isCapturing: Bool { true }

    func startCapture() async throws {}
    func stopCapture() async {}
    func stopCapture(for sink: any VideoSink) async {}

    func startCapture(for sink: any VideoSink) async throws {
        sinks.add(sink)
        let buffer = VideoBuffer(dimensions: Dimensions(width: 64, height: 48))
        sinks.deliver(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now))
    }
}
