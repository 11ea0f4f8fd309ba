import Threading

/// Events on their way to the application.
///
/// Depth: 1,024; drop rule: the newest is refused, but for the last one, which always has its place.
final class EventQueue: Sendable {
    private struct State: Sendable {
        var events: [RoomEvent] = []
        var isFinished = false
        var reader: CheckedContinuation<RoomEvent?, Never>?

        /// What whoever waits is given, if that is known.
        mutating func take() -> RoomEvent?? {
            if !events.isEmpty { return .some(events.removeFirst()) }
            return isFinished ? .some(nil) : nil
        }
    }

    private static let depth = 1024
    private let state = Monitor(State())

    /// The events, for one reader.
    var stream: AsyncStream<RoomEvent> {
        AsyncStream {
            await self.next()
        } onCancel: {
            self.finish()
        }
    }

    /// Adds an event, if there is room.
    func put(_ event: RoomEvent) {
        change { state in
            if state.events.count < Self.depth && !state.isFinished { state.events.append(event) }
        }
    }

    /// Adds the last event.
    func finish(with event: RoomEvent) {
        change { state in
            if !state.isFinished { state.events.append(event) }
            state.isFinished = true
        }
    }

    private func finish() {
        change { $0.isFinished = true }
    }

    private func change(_ body: (inout State) -> Void) {
        let (reader, event) = state.withLock { state -> (CheckedContinuation<RoomEvent?, Never>?, RoomEvent?) in
            body(&state)
            guard state.reader != nil, let event = state.take() else { return (nil, nil) }
            return (state.reader.take(), event)
        }
        reader?.resume(returning: event)
    }

    private func next() async -> RoomEvent? {
        await withCheckedContinuation { continuation in
            let (event, former) = state.withLock { state -> (RoomEvent??, CheckedContinuation<RoomEvent?, Never>?) in
                // A second reader takes the place of the first, whose events end.
                let former = state.reader.take()
                let event = state.take()
                if event == nil { state.reader = continuation }
                return (event, former)
            }
            former?.resume(returning: nil)
            if let event { continuation.resume(returning: event) }
        }
    }
}
