package import MediaCore
import RelayCore
package import RelayServer
package import RoomKit

/// A test's own relay, and a room on it.
package final class Stage: Sendable {
    /// The relay.
    package let server: RelayServer

    /// Starts a relay at a free port.
    ///
    /// If `isLenient` is `true`, the relay drops nothing for a subscriber that lags up to 20 s. The machine that runs
    /// the tests may be busy, and most tests are about something else.
    package init(isLenient: Bool = true, change: (inout RelayServer.Options) -> Void = { _ in }) throws {
        var options = RelayServer.Options()
        options.port = 0
        if isLenient {
            options.relay.forwarding.dropTopLayerAfter = .seconds(20)
            options.relay.forwarding.dropMiddleLayerAfter = .seconds(20)
            options.relay.forwarding.skipAfter = .seconds(20)
            options.relay.stream.liveWindow = .seconds(20)
        }
        change(&options)
        server = try RelayServer(options)
    }

    deinit {
        server.stop()
    }

    /// The relay's URL.
    package var url: String { "ws://127.0.0.1:\(server.port)" }

    /// The options with which a member joins.
    package func options(_ identity: String, room: String = "stage") -> ConnectOptions {
        var options = ConnectOptions(roomName: room)
        options.url = url
        options.identity = identity
        return options
    }

    /// Joins the room.
    package func join(
        _ identity: String,
        room: String = "stage",
        change: (inout ConnectOptions) -> Void = { _ in }
    ) async throws -> Member {
        var options = options(identity, room: room)
        change(&options)
        return try await Member(options)
    }

    /// Makes an author publish the test pattern, `frameRate` pictures a second, and waits until a viewer has decoded at least
    /// `frames` of them.
    package func show(
        frames: Int,
        frameRate: Int = 30
    ) async throws -> (viewer: Member, author: Member, track: LocalVideoTrack, remote: RemoteVideoTrack) {
        let viewer = try await join("viewer")
        let author = try await join("author")
        let track = makePattern(frameRate: frameRate)
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        try await eventually("frames are decoded") { remote.statistics.framesDecoded >= frames }
        return (viewer, author, track, remote)
    }
}

/// The size of the pictures in most tests: small, and with room for the barcode.
package let testSize = Dimensions(width: 320, height: 180)

/// A track of the test pattern.
package func makePattern(
    name: String? = nil,
    size: Dimensions = testSize,
    frameRate: Int = 30
) -> LocalVideoTrack {
    LocalVideoTrack(source: PatternSource(dimensions: size, frameRate: FrameRate(frameRate)), name: name)
}

extension LocalVideoTrackStatistics {
    /// Captured pictures that were neither encoded nor dropped; 0 once the track is no longer published.
    package var unaccounted: Int { framesCaptured - framesEncoded - framesDropped.total }
}
