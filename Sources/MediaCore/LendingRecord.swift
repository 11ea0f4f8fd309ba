import Synchronization

/// Makes a reused buffer safe: what its earlier holders did with it happens before what its next holder does.
///
/// A buffer is free once its pool holds the only reference to it. The ordering of Swift's reference counts makes the
/// last holder's reads happen before the next holder's writes. But the runtime does not promise this, and
/// ThreadSanitizer cannot see it. So every lending ends with a releasing addition here, and the pool reads the sum with
/// acquire ordering before it hands the buffer out again.
@usableFromInline package struct LendingRecord: ~Copyable, Sendable {
    private let lendings = Atomic(0)

    /// Creates a record without lendings.
    package init() {}

    /// Records that a lending has ended.
    @usableFromInline func lendingEnded() {
        lendings.wrappingAdd(1, ordering: .releasing)
    }

    /// Makes all ended lendings happen before what the caller does next.
    func acquire() {
        _ = lendings.load(ordering: .acquiring)
    }
}

/// A buffer that a pool can hand out again.
package protocol ReusableBuffer: AnyObject, Sendable {
    /// Makes everything that earlier holders did with the buffer happen before what the caller does next.
    func acquireFromEarlierHolders()
}
