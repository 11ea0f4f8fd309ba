import Glibc
public import MediaCore

/// State behind a lock, with a way to wait for its changes.
///
/// The lock is a `pthread_mutex_t` rather than `Synchronization.Mutex`: ThreadSanitizer on Linux cannot see into the
/// latter and reports false races. Hold it for a few instructions only, and never across a call that can block.
///
/// The methods are inlinable because other modules would otherwise call the generic versions. This needs
/// `@usableFromInline` on the class too; without it the compiler silently ignores `@inlinable`.
@usableFromInline @safe package final class Monitor<State>: @unchecked Sendable {
    // `@unchecked Sendable`: the mutex makes access to `state` safe.

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    // Exclusivity checks are off because the lock makes accesses exclusive. Locking twice on one thread deadlocks.
    @exclusivity(unchecked) @usableFromInline var state: State

    /// Creates a monitor of `state`.
    package init(_ state: sending State) {
        unsafe self.state = state
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Runs `body` on the state with exclusive access.
    @inlinable package func withLock<Result, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock()
        defer { unlock() }
        return try unsafe body(&state)
    }

    /// Does what `withLock` does, then wakes all threads that wait for a change.
    @inlinable package func change<Result, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock()
        defer {
            // Unlock first. A thread that was woken before would wait for the lock at once.
            unlock()
            wakeWaiters()
        }
        return try unsafe body(&state)
    }

    /// Waits until `body` returns a value; `body` runs at once, and again after each `change`.
    ///
    /// - Returns: The value from `body`, or `nil` once `deadline` has passed.
    @inlinable package func wait<Result>(
        until deadline: MonotonicInstant? = nil,
        for body: (inout sending State) -> sending Result?
    ) -> sending Result? {
        lock()
        defer { unlock() }
        while true {
            if let result = unsafe body(&state) { return result }
            if !waitForChange(until: deadline) { return unsafe body(&state) }
        }
    }

    @usableFromInline func lock() {
        unsafe pthread_mutex_lock(mutex)
    }

    @usableFromInline func unlock() {
        unsafe pthread_mutex_unlock(mutex)
    }

    @usableFromInline func wakeWaiters() {
        unsafe pthread_cond_broadcast(condition)
    }

    /// Releases the lock until another thread changes the state.
    ///
    /// - Returns: `false` once `deadline` has passed.
    @usableFromInline func waitForChange(until deadline: MonotonicInstant?) -> Bool {
        guard let deadline else { return unsafe pthread_cond_wait(condition, mutex) == 0 }
        var time = timespec(
            tv_sec: Int(deadline.nanoseconds / 1_000_000_000),
            tv_nsec: Int(deadline.nanoseconds % 1_000_000_000)
        )
        return unsafe pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
    }
}
