/// A first-in first-out queue between two threads that refuses what does not fit.
///
/// Depth: given; drop rule: the newest is refused. The putting side never waits.
package final class BoundedQueue<Element: Sendable>: Sendable {
    private struct State: Sendable {
        var elements: [Element] = []
        var isClosed = false
    }

    private let depth: Int
    private let monitor = Monitor(State())

    /// An empty queue for `depth` elements.
    package init(depth: Int) {
        self.depth = depth
    }

    /// Puts `element` in, if there is room; says whether there was.
    package func put(_ element: Element) -> Bool {
        monitor.change { state in
            guard !state.isClosed, state.elements.count < depth else { return false }
            state.elements.append(element)
            return true
        }
    }

    /// Takes the oldest element, waiting for one; `nil` once the queue is closed and empty.
    package func take() -> Element? {
        monitor.wait { state -> Element?? in
            if !state.elements.isEmpty { return .some(state.elements.removeFirst()) }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    /// Lets nothing in any more; what waits is still to be taken.
    package func close() {
        monitor.change { $0.isClosed = true }
    }
}
