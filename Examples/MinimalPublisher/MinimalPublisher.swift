import ArgumentParser
import RoomKit

/// Publishes the test pattern, or this machine's first camera, for some seconds.
///
///     MinimalPublisher [URL [pattern|camera [seconds]]]
///     MinimalPublisher ws://127.0.0.1:8480 camera 60
@main
struct MinimalPublisher: AsyncParsableCommand {
    @Argument(help: "The server; $ROOM_URL is the default, if it is set.")
    var url = ConnectOptions.defaultURL

    @Argument(help: "pattern or camera.")
    var source = "pattern"

    @Argument(help: "How long to publish.")
    var seconds = 10

    func run() async throws {
        var options = ConnectOptions(roomName: "examples")
        options.url = url
        // What it would receive would be sent and decoded although nobody looks at it.
        options.isAutomaticSubscriptionEnabled = false

        let source: any VideoSource
        switch self.source {
        case "camera": source = CameraSource(device: try CameraSource.defaultDevice())
        case "pattern": source = PatternSource()
        default: throw ValidationError("The source is pattern or camera, not \(self.source).")
        }
        let track = LocalVideoTrack(source: source)

        let room = try await RoomClient.connect(options: options)
        let events = Task {
            for await event in room.events {
                switch event {
                case .participantConnected(let participant): print("\(participant.identity) joined.")
                case .localTrackFailed(let track, let error): print("\(track.name) delivers nothing: \(error)")
                case .disconnected(let error?): print("The session is over: \(error)")
                default: break
                }
            }
        }

        try await room.localParticipant.publish(track)
        print("Publishing \(track.name) as \(room.localParticipant.identity).")
        try await Task.sleep(for: .seconds(seconds))

        await room.disconnect()
        await events.value
        let statistics = track.statistics
        print("\(statistics.framesCaptured) frames captured, \(statistics.framesSent) sent.")
    }
}
