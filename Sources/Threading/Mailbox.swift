/// A slot of one between two threads: the newest element wins, an older one that nobody took is given back.
///
/// Depth 1; drop rule: newest wins. The putting side never waits.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State: Sendable {
        var element: Element?
        var isClosed = false
    }

    private let monitor = Monitor(State())

    /// An empty mailbox.
    package init() {}

    /// Puts `element` in, whatever lies there.
    ///
    /// - Returns: The element that was displaced, so that the caller can count it; `element` itself once closed.
    @discardableResult
    package func put(_ element: Element) -> Element? {
        monitor.change { state in
            guard !state.isClosed else { return element }
            let displaced = state.element
            state.element = element
            return displaced
        }
    }

    /// Takes the element, waiting for one.
    ///
    /// - Returns: `nil` once the mailbox is closed.
    package func take() -> Element? {
        monitor.wait { state -> Element?? in
            if state.isClosed { return .some(nil) }
            guard let element = state.element else { return nil }
            state.element = nil
            return element
        } ?? nil
    }

    /// Ends every `take`, now and later.
    ///
    /// - Returns: The element that still lay in the mailbox, so that the caller can count it.
    @discardableResult
    package func close() -> Element? {
        monitor.change { state in
            state.isClosed = true
            let left = state.element
            state.element = nil
            return left
        }
    }
}
