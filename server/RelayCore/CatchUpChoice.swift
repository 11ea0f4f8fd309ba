import MediaCore
package import RoomProtocol

/// Whether a late joiner goes on with the cached frames, or sees the live picture sooner from a new keyframe.
///
/// On a fast path the cache is there at once. On a path that carries little more than the track, the lag of the cached
/// frames would take many times their age to shrink. The path is unknown at the join, so the choice is made as soon as
/// acknowledgements tell what it delivers, and a new keyframe is chosen at most once.
package struct CatchUpChoice: Sendable {
    /// What stands between a subscriber and the live picture.
    package struct Load: Sendable {
        /// Bytes that wait at the relay.
        package var waiting: Int
        /// Bytes that were handed to the socket and have not been acknowledged.
        package var underway: Int
        /// The time from handing bytes to the socket to their acknowledgement where nothing waits, in seconds.
        package var roundTrip: Double
        /// The size of the last keyframe, in bytes; a new one is about as large.
        package var keyframe: Int
        /// What is added all the time, in bits per second.
        package var production: Double
        /// The time until the publisher may be asked for a keyframe.
        package var pause: Duration

        package init(
            waiting: Int,
            underway: Int,
            roundTrip: Double,
            keyframe: Int,
            production: Double,
            pause: Duration
        ) {
            self.waiting = waiting
            self.underway = underway
            self.roundTrip = roundTrip
            self.keyframe = keyframe
            self.production = production
            self.pause = pause
        }
    }

    /// The shortest time over which a delivery rate means something; a shorter one may be a single burst.
    private static let shortestSpan = 0.05
    /// The time from a request to the keyframe's arrival at the relay: a round trip to the publisher and a frame.
    private static let requestTime = 0.1
    /// A picture that is late by this much counts as live.
    private static let liveLag = 0.1
    /// The keyframe must be sooner by this much, because all subscribers pay for it.
    private static let margin = 0.2

    /// Whether the choice is still to be made.
    package private(set) var isOpen: Bool
    /// Whether a keyframe was chosen, and has not come yet.
    package private(set) var isWaiting = false
    /// From when on the others may be made to pay for that keyframe.
    var granted: MonotonicInstant?
    /// The first acknowledgement after the join: its bytes, and its time on the subscriber's clock in seconds.
    private var origin: (bytes: Int64, time: Double)?

    /// The choice of a subscriber that begins, with cached frames or without.
    package init(fromCache isOpen: Bool) { self.isOpen = isOpen }

    /// The subscriber has caught up, or was sent another keyframe.
    package mutating func close() { (isOpen, isWaiting) = (false, false) }

    /// Takes an acknowledgement, which may have any content.
    ///
    /// After a keyframe was chosen, further acknowledgements tell better when it is needed: on a thin path, the first
    /// ones tell little of the rate, because TCP repeats lost packets meanwhile.
    ///
    /// - Parameters:
    ///   - bytes: The bytes that have been acknowledged.
    ///   - time: When they arrived, on the subscriber's clock.
    ///   - load: What stands between the subscriber and the live picture.
    /// - Returns: The time until a keyframe is needed, so that it arrives when the path is empty; `nil` to go on with
    ///   the cached frames.
    package mutating func delayOfKeyframe(
        acknowledged bytes: Int64,
        at time: MediaAcknowledgement.ReceiverTime,
        _ load: Load
    ) -> Duration? {
        let seconds = Double(time.microseconds) / 1e6
        guard isOpen || isWaiting else { return nil }
        guard let origin, bytes >= origin.bytes else {
            origin = (bytes, seconds)
            return nil
        }
        let span = seconds - origin.time
        guard span >= Self.shortestSpan else { return nil }
        let delivery = max(1, Double(bytes - origin.bytes) * 8 / span)
        // In a round trip, what the path delivers is on its way without waiting.
        let underway = max(0, Double(load.underway) * 8 / delivery - load.roundTrip)
        if isOpen {
            guard isKeyframeSooner(load, delivery: delivery, underway: underway) else { return nil }
            (isOpen, isWaiting) = (false, true)
        }
        return .microseconds(Int64(min(5, max(0, underway - Self.requestTime)) * 1e6))
    }

    /// Whether a path that delivers so many bits per second, and needs `underway` seconds for what is on its way,
    /// brings the live picture sooner from a new keyframe.
    private func isKeyframeSooner(_ load: Load, delivery: Double, underway: Double) -> Bool {
        let left = Double(load.waiting) * 8 + underway * delivery - load.production * Self.liveLag
        guard left > 0 else { return false }
        let surplus = delivery - load.production
        let byCache = surplus > 0 ? left / surplus : .infinity
        let byKeyframe =
            max(load.pause.seconds + Self.requestTime, underway) + Double(load.keyframe) * 8 / delivery
        return byCache > byKeyframe + Self.margin
    }
}
