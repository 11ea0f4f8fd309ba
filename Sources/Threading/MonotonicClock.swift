import Glibc
package import MediaCore

/// The one place that reads the clock.
package enum MonotonicClock {
    /// The present instant on `CLOCK_MONOTONIC`.
    package static var now: MonotonicInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// CPU time that the calling thread has used.
    package static var threadCPUTime: Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }
}
