/// A first-in first-out queue between two threads that refuses what does not fit.
///
/// Depth: given; drop rule: the newest is refused. The putting side never waits.
@usableFromInline package final class BoundedQueue<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var elements: [Element] = []
        @usableFromInline var isClosed = false
    }

    @usableFromInline let depth: Int
    @usableFromInline let monitor = Monitor(State())

    /// An empty queue for `depth` elements.
    package init(depth: Int) {
        self.depth = depth
    }

    /// Puts `element` in, if there is room; says whether there was.
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

    /// Lets nothing in any more; what waits is still to be taken.
    @inlinable package func close() {
        monitor.change { $0.isClosed = true }
    }
}
