extension PathEstimator {
    /// The result of an acknowledgement.
    package struct Sample: Hashable, Sendable {
        /// The queueing delay of the newest acknowledged bytes, in microseconds.
        package var queue: Int64
        /// When these bytes were written, in microseconds of the local clock.
        package var written: Int64 = 0
        /// The smallest queueing delay of the last `standingWindow`.
        package var standingQueue: Int64
        /// The same, with the time that the newest write itself took beyond the beginning of the fastest.
        package var standingDelay: Int64 = 0
        /// The bytes that the receiver has had in all.
        package var bytes: Int64 = 0
        /// By how much the base delay is longer than the one of the last `referenceWindow`, in microseconds.
        package var baseRise: Int64 = 0
        /// Bits per second over the last `rateWindow`.
        package var deliveryRate: Double
        /// Bits per second over the last `rateWindow`, silences of the link left out.
        package var activeRate: Double
        /// Whether the newest byte was written before the link came back from a stall.
        package var isAfterStall = false
        /// Whether the path has delivered little for `thinWindow`.
        package var isThin = false
        /// What was sent, in bits per second, if that were a few bytes at a time over an empty path (`loneBytes`).
        package var loneRate: Double?
        /// The gap before these bytes, if it was no mere time between packets (`shortestGap`).
        package var gap: Gap?
    }

    /// A time in which bytes were on their way and none came.
    package struct Gap: Hashable, Sendable {
        /// Microseconds.
        package var time: Int64
        /// The bytes that came after it, at once.
        package var bytes: Int64
        /// Whether it is as long as the gaps that show a slow path (`slowGap`).
        package var isLong: Bool

        /// Bits per second.
        var rate: Double { Double(bytes) * 8e6 / Double(time) }
    }

    /// A large frame whose bytes came one after another.
    package struct Train: Hashable, Sendable {
        /// Bits per second, from the frame's first byte to its last.
        package var rate: Double
        /// The bytes of the frame.
        package var bytes: Int64
    }
}
