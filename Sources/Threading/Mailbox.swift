/// A slot for one element between two threads: the newest element wins, and an untaken older one is returned.
///
/// Depth 1; drop rule: newest wins. The thread that puts never waits.
@usableFromInline package final class Mailbox<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var element: Element?
        @usableFromInline var isClosed = false
    }

    @usableFromInline let monitor = Monitor(State())

    /// An empty mailbox.
    package init() {}

    /// Puts `element` in and replaces the element that is there.
    ///
    /// - Returns: The element that was replaced, so that the caller can count it; `element` itself once the mailbox is
    ///   closed.
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

    /// Closes the mailbox: every `take` ends, now and later.
    ///
    /// - Returns: The element that was still in the mailbox, so that the caller can count it.
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
