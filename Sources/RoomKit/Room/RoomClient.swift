import RoomProtocol
import Threading
import WebSockets

/// Where a session with a room begins.
public enum RoomClient {
    /// Connects to a server and joins a room.
    ///
    /// Returns when the server has let us in and the tracks of `options` are published. A server that does not answer is
    /// given up after at most 30 s. From then on everything that happens comes through the room's `events`. Call
    /// `Room.disconnect()` when done: a room that is dropped without it stays joined.
    ///
    /// - Parameter options: Where, as whom, with which tracks.
    /// - Returns: The room, joined.
    /// - Throws: `RoomError` (`invalidURL`, `serverUnavailable`, `refused`, `connectionLost`, `protocolViolation`, and
    ///   what publishing a track throws); what a track's source throws when it cannot start; `CancellationError`.
    ///   Nothing is joined then.
    public static func connect(options: ConnectOptions) async throws -> Room {
        let url = try url(of: options)
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

    /// The server's URL with the path of the room, by which a proxy or a server of several routes the connection.
    ///
    /// A URL that has a path already is left as it is.
    private static func url(of options: ConnectOptions) throws(RoomError) -> WebSocketURL {
        do throws(WebSocketError) {
            let url = try WebSocketURL(options.url)
            let name = options.roomName
            // A name that no server accepts has no path: the server says what is wrong with it.
            let isUsable = (1...WireFormat.maximumNameBytes).contains(name.utf8.count)
            guard url.path == "/", isUsable else { return url }
            let authority = WebSocketURL.authority(host: url.host, port: url.port)
            return try WebSocketURL("ws://\(authority)\(RoomPath.path(ofRoom: name))")
        } catch {
            throw RoomError(.invalidURL, "\(error)")
        }
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
