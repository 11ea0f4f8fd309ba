import ArgumentParser
import Glibc
import MediaCore
import RelayServer
import RoomKit
import Threading

/// Measures what a renderer that sleeps costs the other renderers and the publication: publisher, relay and subscriber
/// in this process, with and without it by turns.
struct RendererCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renderers",
        abstract: "Ages and intervals of pictures at a renderer, beside one that sleeps and without it."
    )

    @Option(help: "How long the other renderer sleeps in each call, in milliseconds.")
    var sleep = 500

    @Option(help: "Seconds of a phase.")
    var seconds = 5.0

    @Option(help: "How often each phase is measured.")
    var rounds = 8

    /// What came in a phase; times in milliseconds.
    private struct Phase: Encodable {
        var round: Int
        var phase: String
        var localAge, localInterval, remoteAge, remoteInterval: [Double]
        /// Of the publication.
        var captured, encoded: Int
        var milliseconds: Double

        enum CodingKeys: String, CodingKey {
            case round, phase, captured, encoded
            case localAge = "local_age_ms"
            case localInterval = "local_interval_ms"
            case remoteAge = "remote_age_ms"
            case remoteInterval = "remote_interval_ms"
            case milliseconds = "cpu_ms_per_frame"
        }
    }

    func run() async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        let viewer = try await join("viewer", server)
        let author = try await join("author", server)
        let track = LocalVideoTrack(source: PatternSource(dimensions: Dimensions(width: 640, height: 480)))
        let (local, remote) = (StampingRenderer(), StampingRenderer())
        try await author.localParticipant.publish(track)
        let subscribed = try await firstTrack(of: viewer)
        track.addRenderer(local)
        subscribed.addRenderer(remote)
        try await Task.sleep(for: .seconds(3))

        for round in 0..<rounds {
            // Two undisturbed phases show what the machine itself changes from one to the next.
            for phase in round.isMultiple(of: 2) ? ["quiet", "again", "sleeping"] : ["sleeping", "again", "quiet"] {
                let sleepers = (SleepingRenderer(sleep), SleepingRenderer(sleep))
                if phase == "sleeping" {
                    track.addRenderer(sleepers.0)
                    subscribed.addRenderer(sleepers.1)
                }
                try await Task.sleep(for: .milliseconds(500))
                (local.pictures, remote.pictures) = ([], [])
                let before = (track.statistics, ProcessCPU.time)
                try await Task.sleep(for: .seconds(seconds))
                let after = (track.statistics, ProcessCPU.time)
                let (shownLocally, shownRemotely) = (local.pictures, remote.pictures)
                track.removeRenderer(sleepers.0)
                subscribed.removeRenderer(sleepers.1)
                let captured = after.0.framesCaptured - before.0.framesCaptured
                try report(
                    Phase(
                        round: round,
                        phase: phase,
                        localAge: shownLocally.ages,
                        localInterval: shownLocally.intervals,
                        remoteAge: shownRemotely.ages,
                        remoteInterval: shownRemotely.intervals,
                        captured: captured,
                        encoded: after.0.framesEncoded - before.0.framesEncoded,
                        milliseconds: (after.1 - before.1).milliseconds / Double(max(captured, 1))
                    )
                )
                // A sleeper that was removed sleeps its last call to the end.
                try await Task.sleep(for: .milliseconds(sleep))
            }
        }
        await author.disconnect()
        await viewer.disconnect()
    }

    private func join(_ identity: String, _ server: RelayServer) async throws -> Room {
        var options = ConnectOptions(roomName: "bench")
        options.url = server.url
        options.identity = identity
        return try await RoomClient.connect(options: options)
    }

    private func firstTrack(of room: Room) async throws -> RemoteVideoTrack {
        for await event in room.events { if case .trackSubscribed(let track, _) = event { return track } }
        throw ValidationError("The viewer got no track.")
    }
}

/// When a picture was captured and shown.
struct ShownPicture: Sendable {
    var captured: MonotonicInstant
    var shown: MonotonicInstant
}

extension [ShownPicture] {
    /// From capture to the call of the renderer, in milliseconds.
    var ages: [Double] { map { $0.shown.duration(since: $0.captured).milliseconds } }
    /// From one call to the next, in milliseconds.
    var intervals: [Double] { zip(dropFirst(), self).map { $0.shown.duration(since: $1.shown).milliseconds } }
}

/// Notes when pictures come.
private final class StampingRenderer: VideoRenderer {
    private let state = Monitor<[ShownPicture]>([])

    var pictures: [ShownPicture] {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    func render(_ frame: VideoFrame) {
        let picture = ShownPicture(captured: frame.timestamp, shown: MonotonicClock.now)
        state.withLock { $0.append(picture) }
    }
}

/// Sleeps in each call.
private final class SleepingRenderer: VideoRenderer {
    private let milliseconds: Int

    init(_ milliseconds: Int) { self.milliseconds = milliseconds }

    func render(_ frame: VideoFrame) { usleep(useconds_t(milliseconds) * 1000) }
}
