import Synchronization

/// Orders what earlier holders of a used-again buffer did before what its next holder does.
///
/// A buffer is free once its pool holds the only reference to it. That the last holder's reads come before the next
/// holder's writes follows from the ordering of Swift's reference counts, but the runtime does not promise it and
/// ThreadSanitizer cannot see it. So every lending ends with a releasing addition here, and the pool looks at the sum,
/// acquiring, before it hands the buffer out again.
@usableFromInline package struct LendingRecord: ~Copyable, Sendable {
    private let lendings = Atomic(0)

    /// No lendings yet.
    package init() {}

    /// Notes that a lending has ended.
    @usableFromInline func lendingEnded() {
        lendings.wrappingAdd(1, ordering: .releasing)
    }

    /// Makes all lendings that have ended come before whatever the caller does next.
    func acquire() {
        _ = lendings.load(ordering: .acquiring)
    }
}

/// A buffer that a pool can hand out again.
package protocol ReusableBuffer: AnyObject, Sendable {
    /// Makes everything that earlier holders did with the buffer come before what the caller does next.
    func acquireFromEarlierHolders()
}
