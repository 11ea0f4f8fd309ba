import RoomProtocol
import Threading
import WebSockets

/// Connects to rooms.
public enum RoomClient {
    /// Connects to a server and joins a room.
    ///
    /// It returns when the server has accepted us and the tracks of `options` are published, or have failed if they are
    /// not required. If the server does not
    /// answer, it fails after at most 30 s. From then on the room's `events` report everything that happens. Call
    /// `Room.disconnect()` when you are done: a room that you merely drop stays joined.
    ///
    /// - Parameter options: The server, room, identity and tracks.
    /// - Returns: The joined room.
    /// - Throws: `RoomError` (`invalidURL`, `logFailed`, `serverUnavailable`, `refused`, `connectionLost`,
    ///   `protocolViolation`, and those of publishing a track); any error of a track's source that cannot start;
    ///   `CancellationError`. After an error no room is joined.
    public static func connect(options: ConnectOptions) async throws -> Room {
        let url = try url(of: options)
        let room = try Room(options: options, loop: sharedLoop())
        do {
            try await room.join(url)
        } catch {
            await room.recorder?.discard()
            throw error
        }
        // The start of a source may wait for something that never comes, such as a pipe's writer. Leaving ends it.
        try await withTaskCancellationHandler {
            try await publish(options.videoTracks, in: room, areRequired: options.areVideoTracksRequired)
        } onCancel: {
            Task { await room.disconnect() }
        }
        return room
    }

    /// Publishes tracks at the same time, so that none waits for another one's camera.
    ///
    /// - Throws: The error of the first track that cannot be published, if all are required; `CancellationError`. The
    ///   room is left then.
    private static func publish(_ tracks: [LocalVideoTrack], in room: Room, areRequired: Bool) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for track in tracks {
                group.addTask {
                    do {
                        try await room.localParticipant.publish(track)
                    } catch {
                        if areRequired || Task.isCancelled { throw error }
                        room.eventQueue.put(.localTrackFailed(track, error))
                    }
                }
            }
            do {
                for try await _ in group {}
                try Task.checkCancellation()
            } catch {
                // The others fail by this.
                await room.disconnect()
                try Task.checkCancellation()
                throw error
            }
        }
    }

    /// The server's URL with the path of the room.
    ///
    /// Proxies and clusters of servers can route the connection by this path. A URL that already has a path stays as it
    /// is.
    private static func url(of options: ConnectOptions) throws(RoomError) -> WebSocketURL {
        let name = options.roomName
        let url: WebSocketURL
        do throws(WebSocketError) {
            url = try WebSocketURL(options.url)
            // A name with an unusable length has no path. The server then says what is wrong with it.
            if url.path == "/", (1...WireFormat.maximumNameBytes).contains(name.utf8.count) {
                let authority = WebSocketURL.authority(host: url.host, port: url.port)
                return try WebSocketURL("ws://\(authority)\(RoomPath.path(ofRoom: name))")
            }
        } catch {
            throw RoomError(.invalidURL, "\(error)")
        }
        if let path = RoomPath(reading: url.path), case .room(let other) = path, !path.admits(room: name) {
            throw RoomError(
                .invalidURL,
                "The URL \(options.url) names the room \"\(other)\", not \"\(name)\"; leave its path out, or join that room."
            )
        }
        return url
    }

    private static let loop = Monitor<WebSocketLoop?>(nil)

    /// The event loop that runs all rooms of this program, from the first room to the program's end.
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
