import ArgumentParser
import RoomKit
import Synchronization

/// Counts the pictures that it receives; each track calls it on a thread of its own for it.
final class FrameCounter: VideoRenderer {
    let frames = Atomic(0)

    func render(_ frame: VideoFrame) {
        // `frame.buffer.withPlanes` gives access to the pixels. You may keep a frame as long as you like.
        frames.add(1, ordering: .relaxed)
    }
}

/// Receives every track in the room for some seconds, and prints what arrives.
///
///     MinimalSubscriber [URL [seconds]]
@main
struct MinimalSubscriber: AsyncParsableCommand {
    @Argument(help: "The server; $ROOM_URL is the default, if it is set.")
    var url = ConnectOptions.defaultURL

    @Argument(help: "How long to receive.")
    var seconds = 10

    func run() async throws {
        var options = ConnectOptions(roomName: "examples")
        options.url = url

        let counter = FrameCounter()
        let room = try await RoomClient.connect(options: options)
        let events = Task {
            for await event in room.events {
                switch event {
                case .trackSubscribed(let track, let participant):
                    print("Receiving \(track.name) of \(participant.identity), \(track.dimensions).")
                    track.addRenderer(counter)
                case .trackUnsubscribed(let track, let participant):
                    let age = track.statistics.frameAge?.p50.milliseconds ?? 0
                    print("\(track.name) of \(participant.identity) is over; median frame age \(age) ms.")
                case .eventsMissed:
                    // More than 1,024 events waited here. A track takes the same renderer only once.
                    for track in await room.remoteParticipants.flatMap(\.videoTracks) where track.isSubscribed {
                        track.addRenderer(counter)
                    }
                case .disconnected(let error?): print("The session is over: \(error)")
                default: break
                }
            }
        }

        try await Task.sleep(for: .seconds(seconds))
        await room.disconnect()
        await events.value
        print("\(counter.frames.load(ordering: .relaxed)) frames arrived.")
    }
}
