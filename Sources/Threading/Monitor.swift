package import Glibc
package import MediaCore

/// State behind a lock, with waiting for it to change.
///
/// A `pthread_mutex_t` rather than `Synchronization.Mutex`: ThreadSanitizer on Linux cannot see into the latter and
/// reports races that are none. Hold it for a few instructions only, and never across a call that can block. Its methods are
/// inlinable, because other modules would call the generic versions otherwise: with `PacketBuffer`'s, these took a relay a
/// tenth to a quarter of its time from a packet's arrival to the first sending (measured).
@safe package final class Monitor<State>: @unchecked Sendable {
    // `@unchecked Sendable`: the mutex is what makes access to `state` safe.

    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
    @usableFromInline let condition: UnsafeMutablePointer<pthread_cond_t>
    @usableFromInline var state: State

    /// A monitor over `state`.
    package init(_ state: sending State) {
        self.state = state
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

    /// Runs `body` on the state, alone.
    @inlinable package func withLock<Result, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&state)
    }

    /// As `withLock`, and wakes those who wait for a change.
    @inlinable package func change<Result, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer {
            // In this order, or who wakes would wait for the lock at once.
            unsafe pthread_mutex_unlock(mutex)
            unsafe pthread_cond_broadcast(condition)
        }
        return try body(&state)
    }

    /// Waits until `body` returns a value; it is run at once, and again after each `change`.
    ///
    /// - Returns: What `body` returned, or `nil` once `deadline` has passed.
    @inlinable package func wait<Result>(
        until deadline: MonotonicInstant? = nil,
        for body: (inout sending State) -> sending Result?
    ) -> sending Result? {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&state) { return result }
            guard let deadline else {
                unsafe pthread_cond_wait(condition, mutex)
                continue
            }
            var time = timespec(
                tv_sec: Int(deadline.nanoseconds / 1_000_000_000),
                tv_nsec: Int(deadline.nanoseconds % 1_000_000_000)
            )
            if unsafe pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT {
                return body(&state)
            }
        }
    }
}
