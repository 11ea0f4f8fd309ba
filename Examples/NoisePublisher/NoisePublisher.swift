import ArgumentParser
import RoomKit

/// Publishes a custom source, white noise, for some seconds.
///
///     NoisePublisher [URL [seconds]]
@main
struct NoisePublisher: AsyncParsableCommand {
    @Argument(help: "The server; $ROOM_URL is the default, if it is set.")
    var url = ConnectOptions.defaultURL

    @Argument(help: "How long to publish.")
    var seconds = 10

    func run() async throws {
        var options = ConnectOptions(roomName: "examples")
        options.url = url
        // What it would receive would be sent and decoded although nobody looks at it.
        options.isAutomaticSubscriptionEnabled = false

        let room = try await RoomClient.connect(options: options)
        let track = LocalVideoTrack(source: Self.makeNoise())
        try await room.localParticipant.publish(track)
        print("Publishing \(track.name).")
        try await Task.sleep(for: .seconds(seconds))
        await room.disconnect()
        print("\(track.statistics.framesCaptured) frames captured, \(track.statistics.framesSent) sent.")
    }

    /// A custom source: its closure paints a frame whenever one is due, on a thread of the source's own.
    static func makeNoise() -> PacedSource {
        PacedSource(
            dimensions: Dimensions(width: 320, height: 240),
            frameRate: FrameRate(15),
            kind: .noise
        ) { buffer, frame in
            var generator = SystemRandomNumberGenerator()
            buffer.withMutablePlanes { luma, chromaU, chromaV in
                for pixel in luma.indices { luma[pixel] = UInt8.random(in: 16...235, using: &generator) }
                // 128 means no colour.
                chromaU.update(repeating: 128)
                chromaV.update(repeating: 128)
            }
            return true
        }
    }
}
