/// A slot of one between two threads: the newest element wins, an older one that nobody took is given back.
///
/// Depth 1; drop rule: newest wins. The putting side never waits.
@usableFromInline package final class Mailbox<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var element: Element?
        @usableFromInline var isClosed = false
    }

    @usableFromInline let monitor = Monitor(State())

    /// An empty mailbox.
    package init() {}

    /// Puts `element` in, whatever lies there.
    ///
    /// - Returns: The element that was displaced, so that the caller can count it; `element` itself once closed.
    @discardableResult
    @inlinable package func put(_ element: Element) -> Element? {
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
    @inlinable package func take() -> Element? {
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
    @inlinable package func close() -> Element? {
        monitor.change { state in
            state.isClosed = true
            let left = state.element
            state.element = nil
            return left
        }
    }
}
