/// A point on this machine's `CLOCK_MONOTONIC`, the clock that V4L2 stamps frames with.
///
/// The standard library's `ContinuousClock` is another clock on Linux (`CLOCK_BOOTTIME`); never mix the two. `now` of
/// RoomKit reads this one.
public struct MonotonicInstant: Hashable, Sendable {
    /// Nanoseconds since the clock's origin, usually the machine's start.
    public var nanoseconds: Int64

    /// The instant `nanoseconds` after the clock's origin.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The instant `microseconds` after the clock's origin.
    public init(microseconds: Int64) {
        self.nanoseconds = microseconds &* 1000
    }

    /// Whole microseconds since the clock's origin, rounded towards it.
    public var microseconds: Int64 { nanoseconds / 1000 }

    /// The time from `earlier` to this instant; negative if `earlier` is later.
    public func duration(since earlier: MonotonicInstant) -> Duration {
        .nanoseconds(nanoseconds &- earlier.nanoseconds)
    }

    /// The instant `duration` after `instant`.
    public static func + (instant: MonotonicInstant, duration: Duration) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: instant.nanoseconds &+ duration.wholeNanoseconds)
    }

    /// The instant `duration` before `instant`.
    public static func - (instant: MonotonicInstant, duration: Duration) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: instant.nanoseconds &- duration.wholeNanoseconds)
    }

    /// Moves `instant` on by `duration`.
    public static func += (instant: inout MonotonicInstant, duration: Duration) {
        instant = instant + duration
    }
}

extension MonotonicInstant: Comparable {
    /// Whether `lhs` comes before `rhs`.
    public static func < (lhs: MonotonicInstant, rhs: MonotonicInstant) -> Bool {
        lhs.nanoseconds < rhs.nanoseconds
    }
}

extension Duration {
    /// This duration in nanoseconds, rounded towards zero; wraps beyond ±292 years.
    public var wholeNanoseconds: Int64 {
        let parts = components
        return parts.seconds &* 1_000_000_000 &+ parts.attoseconds / 1_000_000_000
    }

    /// This duration in microseconds, rounded towards zero.
    public var wholeMicroseconds: Int64 { wholeNanoseconds / 1000 }

    /// This duration in milliseconds.
    public var milliseconds: Double { Double(wholeNanoseconds) / 1e6 }

    /// This duration in seconds.
    public var seconds: Double { Double(wholeNanoseconds) / 1e9 }
}
