import RelayServer
import RoomKit
import Synchronization
import Testing

/// A source of an application's own: a grey picture whenever it is asked for one.
private final class GreySource: VideoSource {
    let sinks = VideoSinks()

    func deliver() {
        let buffer = VideoBuffer(dimensions: Dimensions(width: 64, height: 48))
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: 128)
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        sinks.deliver(VideoFrame(buffer: buffer, timestamp: .now))
    }
}

/// Counts pictures, and notes the age of the newest.
private final class AgeRenderer: VideoRenderer {
    let newest = Mutex<(count: Int, age: Duration)>((0, .zero))

    func render(_ frame: VideoFrame) {
        newest.withLock { $0 = ($0.count + 1, MonotonicInstant.now.duration(since: frame.timestamp)) }
    }
}

/// What an application does in its own tests, with the products RoomKit and RelayServer alone.
@Suite("An application's own test", .timeLimit(.minutes(1)))
struct InProcessRoomTests {
    @Test("A picture of an application's own source is shown to another participant, through a relay in this process")
    func pictureAcross() async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        var options = ConnectOptions(roomName: "test")
        options.url = server.url
        options.identity = "viewer"
        let viewer = try await RoomClient.connect(options: options)
        let events = viewer.events
        options.identity = "robot"
        let robot = try await RoomClient.connect(options: options)

        let source = GreySource()
        let track = LocalVideoTrack(source: source, name: "grey")
        let delivering = Task {
            while !Task.isCancelled {
                source.deliver()
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        try await robot.localParticipant.publish(track)

        let renderer = AgeRenderer()
        for await event in events {
            guard case .trackSubscribed(let track, let participant) = event else { continue }
            #expect(track.name == "grey" && track.isSupported && participant.identity == "robot")
            track.addRenderer(renderer)
            break
        }
        while renderer.newest.withLock({ $0.count }) < 3 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(renderer.newest.withLock { $0.age } > .zero)
        delivering.cancel()
        await robot.disconnect()
        for await event in events {
            if case .participantDisconnected = event { break }
        }
        await viewer.disconnect()
    }
}
