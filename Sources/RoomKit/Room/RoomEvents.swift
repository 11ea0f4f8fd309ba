import Threading

/// The events of a room, for one reader.
///
/// Each value has a place of its own, where up to 1,024 events wait until they are read. When the place is full, further
/// events are left out; the reader then gets `RoomEvent.eventsMissed` with their number, where they would have been.
/// `disconnected` always comes, and the sequence ends after it. Iterating the same value again goes on where the last
/// iteration stopped; two tasks that iterate the same value share its events.
public struct RoomEvents: AsyncSequence, Sendable {
    /// What is iterated over.
    public typealias Element = RoomEvent
    /// Reading an event does not fail.
    public typealias Failure = Never

    let place: EventPlace

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(place: place) }

    /// Reads the events of one place.
    public struct Iterator: AsyncIteratorProtocol {
        let place: EventPlace

        /// Waits for the next event; `nil` after the last one, and in a task that is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> RoomEvent? {
            await place.next()
        }

        /// Waits for the next event; `nil` after the last one, and in a task that is cancelled.
        public mutating func next() async -> RoomEvent? {
            await place.next()
        }
    }
}

/// Where events wait for one reader.
///
/// Depth: 1,024; drop rule: the newest are left out, counted, and told of as one event; the last one always fits.
final class EventPlace: Sendable {
    private struct State: Sendable {
        var events: [RoomEvent] = []
        /// Events that were left out after those in `events`.
        var missed = 0
        var isFinished = false
        var readers: [Int: CheckedContinuation<RoomEvent?, Never>] = [:]
        var nextTicket = 0

        mutating func put(_ event: RoomEvent, isLast: Bool) {
            // Two places more: one for the news of what was missed, one for the last event.
            guard isLast || events.count < EventPlace.depth && missed == 0 else {
                missed += 1
                return
            }
            tellOfMissed()
            events.append(event)
        }

        mutating func tellOfMissed() {
            if missed > 0 { events.append(.eventsMissed(missed)) }
            missed = 0
        }

        /// What a reader is given, if that is known.
        mutating func take() -> RoomEvent?? {
            if events.isEmpty { tellOfMissed() }
            if !events.isEmpty { return .some(events.removeFirst()) }
            return isFinished ? .some(nil) : nil
        }
    }

    private static let depth = 1024
    private let state = Monitor(State())

    /// Adds an event, if there is room.
    func put(_ event: RoomEvent) {
        change { if !$0.isFinished { $0.put(event, isLast: false) } }
    }

    /// Adds the last event.
    func finish(with event: RoomEvent) {
        change { state in
            if !state.isFinished { state.put(event, isLast: true) }
            state.isFinished = true
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let resumed = state.withLock { state in
            body(&state)
            var resumed: [(CheckedContinuation<RoomEvent?, Never>, RoomEvent?)] = []
            while let ticket = state.readers.keys.min(), let event = state.take() {
                if let reader = state.readers.removeValue(forKey: ticket) { resumed.append((reader, event)) }
            }
            return resumed
        }
        for (reader, event) in resumed { reader.resume(returning: event) }
    }

    /// Waits for the next event.
    func next() async -> RoomEvent? {
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let event = state.withLock { state -> RoomEvent?? in
                    // Under the lock, so that a cancellation comes either before this or finds the reader waiting.
                    if Task.isCancelled { return .some(nil) }
                    if let event = state.take() { return event }
                    state.readers[ticket] = continuation
                    return nil
                }
                if let event { continuation.resume(returning: event) }
            }
        } onCancel: {
            state.withLock { $0.readers.removeValue(forKey: ticket) }?.resume(returning: nil)
        }
    }
}

/// Hands a room's events to all that read them.
final class EventQueue: Sendable {
    private struct Reader: Sendable {
        weak var place: EventPlace?
    }

    private struct State: Sendable {
        /// Kept for the first reader from the beginning on, so that it misses nothing.
        var first: EventPlace? = EventPlace()
        var readers: [Reader] = []
        var last: RoomEvent?
    }

    private let state: Monitor<State>

    init() {
        var first = State()
        first.readers = [Reader(place: first.first)]
        state = Monitor(first)
    }

    /// A place for one more reader: the first one gets all events from the beginning, later ones those from now on.
    func makeEvents() -> RoomEvents {
        let place = state.withLock { state -> EventPlace in
            if let first = state.first.take() { return first }
            let place = EventPlace()
            if let last = state.last { place.finish(with: last) }
            state.readers.removeAll { $0.place == nil }
            state.readers.append(Reader(place: place))
            return place
        }
        return RoomEvents(place: place)
    }

    /// Tells all readers.
    func put(_ event: RoomEvent) {
        for place in places { place.put(event) }
    }

    /// Tells all readers, now and later, that the session is over.
    func finish(with event: RoomEvent) {
        let places = state.withLock { state in
            if state.last == nil { state.last = event }
            return state.readers.compactMap(\.place)
        }
        for place in places { place.finish(with: event) }
    }

    private var places: [EventPlace] { state.withLock { $0.readers.compactMap(\.place) } }
}
