import ArgumentParser
import RoomKit

/// Publishes the frames of a source without their colours: it reads each frame, changes it and writes the result.
///
///     GrayscalePublisher [URL [seconds]]
@main
struct GrayscalePublisher: AsyncParsableCommand {
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
        let track = LocalVideoTrack(writtenAs: "grayscale")
        // Publishing waits for the first frame, so the frames are written by a task of their own.
        let writing = Task {
            let pool = VideoBufferPool()
            for await frame in PatternSource().frames { track.write(Self.gray(frame, in: pool)) }
        }
        try await room.localParticipant.publish(track)
        print("Publishing \(track.name).")
        try await Task.sleep(for: .seconds(seconds))
        writing.cancel()
        await room.disconnect()
        let statistics = track.writeStatistics
        print("\(statistics.framesCaptured) frames written, \(track.statistics.framesSent) sent.")
    }

    /// A copy of the frame without colours, in a buffer that is used again; frames themselves are read-only.
    static func gray(_ frame: VideoFrame, in pool: VideoBufferPool) -> VideoFrame {
        var result = frame
        result.buffer = pool.take(frame.dimensions)
        result.buffer.withMutablePlanes { luma, chromaU, chromaV in
            frame.buffer.withPlanes { source, _, _ in
                for index in source.indices { luma[index] = source[index] }
            }
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        return result
    }
}
