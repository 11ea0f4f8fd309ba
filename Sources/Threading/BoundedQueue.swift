/// A first-in first-out queue between two threads that refuses elements when it is full.
///
/// Depth: set at creation. Drop rule: the newest element is refused. The thread that puts never waits.
@usableFromInline package final class BoundedQueue<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var elements: [Element] = []
        @usableFromInline var isClosed = false
    }

    @usableFromInline let depth: Int
    @usableFromInline let monitor = Monitor(State())

    /// Creates an empty queue for `depth` elements.
    package init(depth: Int) {
        self.depth = depth
    }

    /// Puts `element` in if there is room; returns whether there was.
    @inlinable package func put(_ element: Element) -> Bool {
        monitor.change { state in
            guard !state.isClosed, state.elements.count < depth else { return false }
            state.elements.append(element)
            return true
        }
    }

    /// Takes the oldest element, waiting for one; `nil` once the queue is closed and empty.
    @inlinable package func take() -> Element? {
        monitor.wait { state -> Element?? in
            if !state.elements.isEmpty { return .some(state.elements.removeFirst()) }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    /// Accepts no more elements; those in the queue can still be taken.
    @inlinable package func close() {
        monitor.change { $0.isClosed = true }
    }
}
