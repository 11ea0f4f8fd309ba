public import MediaCore
import Threading

extension MonotonicInstant {
    /// The present instant, by the clock that frames are stamped with (`CLOCK_MONOTONIC`); any thread.
    public static var now: MonotonicInstant { MonotonicClock.now }
}
