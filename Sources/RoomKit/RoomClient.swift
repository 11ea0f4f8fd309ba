import Threading
import WebSockets

/// Where a session with a room begins.
public enum RoomClient {
    /// Connects to a server and joins a room.
    ///
    /// Returns once the server has let us in and the tracks of `options` are published; a server that does not answer is
    /// given up after 30 s at most. From then on everything that
    /// happens comes through the room's `events`. Call `Room.disconnect()` when done: a room that is dropped without it
    /// stays joined.
    ///
    /// - Parameter options: Where, as whom, with which tracks.
    /// - Returns: The room, joined.
    /// - Throws: `RoomError` (`invalidURL`, `serverUnavailable`, `refused`, `connectionLost`, `protocolViolation`, and
    ///   what publishing a track throws); what a track's source throws when it cannot start; `CancellationError`.
    ///   Nothing is joined then.
    public static func connect(options: ConnectOptions) async throws -> Room {
        let url: WebSocketURL
        do {
            url = try WebSocketURL(options.url)
        } catch {
            throw RoomError(.invalidURL, "\(error)")
        }
        let room = try Room(options: options, loop: sharedLoop())
        try await room.join(url)
        do {
            for track in options.videoTracks { try await room.localParticipant.publish(track) }
        } catch {
            await room.disconnect()
            throw error
        }
        return room
    }

    private static let loop = Monitor<WebSocketLoop?>(nil)

    /// The event loop on which all rooms of this program live; it runs from the first room to the program's end.
    private static func sharedLoop() throws(RoomError) -> WebSocketLoop {
        try loop.withLock { loop throws(RoomError) in
            if let loop { return loop }
            do throws(WebSocketError) {
                let new = try WebSocketLoop(name: "room")
                loop = new
                return new
            } catch {
                throw RoomError(.serverUnavailable, "\(error)")
            }
        }
    }
}
