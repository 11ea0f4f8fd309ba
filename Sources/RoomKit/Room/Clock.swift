public import MediaCore
import Threading

extension MonotonicInstant {
    /// The current time of the clock that frames are stamped with (`CLOCK_MONOTONIC`); call it on any thread.
    public static var now: MonotonicInstant { MonotonicClock.now }
}
