import Glibc
import RoomKit

/// Publishes the test pattern, or this machine's first camera, for some seconds.
///
///     MinimalPublisher URL [pattern|camera] [seconds]
///     MinimalPublisher ws://127.0.0.1:8480 camera 60
@main
struct MinimalPublisher {
    static func main() async throws {
        let arguments = CommandLine.arguments
        var options = ConnectOptions(roomName: "examples")
        if arguments.count > 1 { options.url = arguments[1] }
        let seconds = arguments.count > 3 ? Int(arguments[3]) ?? 10 : 10

        let source: any VideoSource
        if arguments.contains("camera") {
            do {
                source = CameraSource(device: try CameraSource.defaultDevice())
            } catch {
                print("\(error)")
                exit(1)
            }
        } else {
            source = PatternSource()
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
