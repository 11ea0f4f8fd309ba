package import MediaCore
package import RoomKit
import Threading

/// A participant of a room that uses RoomKit and keeps all its events.
package final class Member: Sendable {
    /// The room.
    package let room: Room

    private let seen: Monitor<(events: [RoomEvent], isOver: Bool)>
    private let listener: Task<Void, Never>

    /// Joins a room.
    package init(_ options: ConnectOptions) async throws {
        let room = try await RoomClient.connect(options: options)
        let seen = Monitor((events: [RoomEvent](), isOver: false))
        self.room = room
        self.seen = seen
        listener = Task {
            for await event in room.events { seen.withLock { $0.events.append(event) } }
            seen.withLock { $0.isOver = true }
        }
    }

    /// Joins the room "stage" of the server at `url`, with the usual options.
    package convenience init(at url: String) async throws {
        var options = ConnectOptions(roomName: "stage")
        options.url = url
        try await self.init(options)
    }

    /// The events so far.
    package var events: [RoomEvent] { seen.withLock { $0.events } }

    /// Whether the room's events have ended.
    package var isOver: Bool { seen.withLock { $0.isOver } }

    /// Waits for the first event for which `pick` returns a value.
    package func event<Value>(_ what: String, _ pick: (RoomEvent) throws -> Value?) async throws -> Value {
        try await eventual(what) {
            for event in events {
                if let value = try pick(event) { return value }
            }
            return nil
        }
    }

    /// Waits for the track `name` to be subscribed to, the `occurrence`-th time.
    package func subscribedTrack(_ name: String? = nil, occurrence: Int = 1) async throws -> RemoteVideoTrack {
        try await eventual("track \(name ?? "of any name") is subscribed to") {
            let tracks = events.compactMap { event -> RemoteVideoTrack? in
                guard case .trackSubscribed(let track, _) = event, name == nil || track.name == name else { return nil }
                return track
            }
            return tracks.count >= occurrence ? tracks[occurrence - 1] : nil
        }
    }

    /// Waits for the session's end; returns the error that ended it.
    package func ending() async throws -> RoomError? {
        let ending = try await event("the session ends") { event -> RoomError?? in
            if case .disconnected(let error) = event { .some(error) } else { nil }
        }
        try await eventually("the events end") { isOver }
        return ending
    }
}

/// Counts the pictures that it receives.
package final class CountingRenderer: VideoRenderer {
    private let state = Monitor((frames: 0, sizes: Set<Dimensions>()))
    private let whenRendering: @Sendable () -> Void

    /// A renderer that also calls `whenRendering` for each picture, on the track's thread.
    package init(whenRendering: @escaping @Sendable () -> Void = {}) {
        self.whenRendering = whenRendering
    }

    /// Pictures so far.
    package var frames: Int { state.withLock { $0.frames } }

    /// The sizes of the pictures, each once.
    package var sizes: Set<Dimensions> { state.withLock { $0.sizes } }

    /// Counts a picture.
    package func render(_ frame: VideoFrame) {
        state.withLock { state in
            state.frames += 1
            state.sizes.insert(frame.dimensions)
        }
        whenRendering()
    }
}
