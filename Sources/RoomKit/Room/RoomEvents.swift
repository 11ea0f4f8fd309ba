import Threading

/// The events of a room, for one reader.
///
/// Each value has its own queue, in which up to 1,024 events wait until they are read. When the queue is full, further
/// events are left out. In their place the reader gets `RoomEvent.eventsMissed` with their number. `disconnected` is
/// never left out, and the sequence ends after it. A second iteration over the same value continues where the first
/// stopped. Two tasks that iterate over the same value share its events.
public struct RoomEvents: AsyncSequence, Sendable {
    /// The type of the events.
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

/// The queue of events for one reader.
///
/// Its depth is 1,024. When it is full, the newest events are left out and counted, and one event reports their number.
/// The last event always fits.
final class EventPlace: Sendable {
    private struct State: Sendable {
        var events: [RoomEvent] = []
        /// Events that were left out after those in `events`.
        var missed = 0
        var isFinished = false
        var readers: [Int: CheckedContinuation<RoomEvent?, Never>] = [:]
        var nextTicket = 0

        mutating func put(_ event: RoomEvent, isLast: Bool) {
            // Two more events always fit: `eventsMissed` and the last event.
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

        /// The next result for a reader; `nil` if the reader must wait, `.some(nil)` at the end.
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

    /// Adds the last event, after which nothing can be added.
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
                    // This check holds the lock: a cancellation either happened before, or finds the reader registered.
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

/// Passes a room's events to all readers.
final class EventQueue: Sendable {
    private struct Reader: Sendable {
        weak var place: EventPlace?
    }

    private struct State: Sendable {
        /// The queue of the first reader, which exists from the beginning so that the first reader misses nothing.
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

    /// Makes a queue for one more reader.
    ///
    /// The first reader gets all events from the beginning; later readers get the events from now on.
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

    /// Adds an event to the queues of all readers.
    func put(_ event: RoomEvent) {
        for place in places { place.put(event) }
    }

    /// Adds the last event to the queues of all readers, and of those that come later.
    func finish(with event: RoomEvent) {
        let places = state.withLock { state in
            if state.last == nil { state.last = event }
            return state.readers.compactMap(\.place)
        }
        for place in places { place.finish(with: event) }
    }

    private var places: [EventPlace] { state.withLock { $0.readers.compactMap(\.place) } }
}
