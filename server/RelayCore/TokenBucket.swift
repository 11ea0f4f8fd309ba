import MediaCore
import RoomProtocol

/// The amount that a peer may use: a rate in the long run, and more at once after a quiet time.
struct Allowance: Sendable {
    fileprivate let nanosecondsPerUnit: Double
    fileprivate let burstNanoseconds: Int64

    /// Creates an allowance of `perSecond` units a second and `burst` units at once.
    init(perSecond: Int, burst: Int) {
        self.init(nanosecondsPerUnit: 1e9 / Double(max(perSecond, 1)), burst: burst)
    }

    /// Creates an allowance of `one` unit in each `interval` and `burst` units at once.
    init(one interval: Duration, burst: Int) {
        self.init(nanosecondsPerUnit: Double(max(interval.wholeNanoseconds, 1)), burst: burst)
    }

    private init(nanosecondsPerUnit: Double, burst: Int) {
        self.nanosecondsPerUnit = nanosecondsPerUnit
        // 1e18 ns are 31 years; the sum with any instant of a running machine fits into 64 bits.
        burstNanoseconds = Int64(min(Double(max(burst, 1)) * nanosecondsPerUnit, 1e18))
    }
}

/// A token bucket: the used part of an allowance.
struct TokenBucket: Sendable {
    /// When the bucket will be full again; in the past if it is full.
    private var fullAt: MonotonicInstant

    /// Creates a bucket that is full at `now`.
    init(fullAt now: MonotonicInstant) { fullAt = now }

    /// Takes `units` out of the bucket if it holds that many.
    ///
    /// - Returns: Whether it did; if not, nothing was taken.
    mutating func take(_ units: Int, of allowance: Allowance, at now: MonotonicInstant) -> Bool {
        let cost = Int64(min(Double(units) * allowance.nanosecondsPerUnit, 1e18))
        let next = max(fullAt.nanoseconds, now.nanoseconds) &+ cost
        guard next &- now.nanoseconds <= allowance.burstNanoseconds else { return false }
        fullAt = MonotonicInstant(nanoseconds: next)
        return true
    }

    /// Takes `units` out of the bucket even if it does not hold that many; it then owes at most `units`, or what it
    /// owed.
    mutating func overdraw(_ units: Int, of allowance: Allowance, at now: MonotonicInstant) {
        let cost = Int64(min(Double(units) * allowance.nanosecondsPerUnit, 1e18))
        let next = max(fullAt.nanoseconds, now.nanoseconds) &+ cost
        let most = max(fullAt.nanoseconds, now.nanoseconds &+ allowance.burstNanoseconds &+ cost)
        fullAt = MonotonicInstant(nanoseconds: min(next, most))
    }

    /// The whole units that have been taken out of the bucket and not come back yet.
    func used(of allowance: Allowance, at now: MonotonicInstant) -> Int {
        Int(Double(max(fullAt.nanoseconds &- now.nanoseconds, 0)) / allowance.nanosecondsPerUnit)
    }
}

/// The usage of the packets and bytes that a participant, or one of its tracks, may send.
struct MediaBudget: Sendable {
    /// The packets and bytes that may be sent.
    struct Limits: Sendable {
        fileprivate let packets: Allowance
        fileprivate let bytes: Allowance
        fileprivate let acknowledgements: Allowance

        /// Creates limits for a sender of `rate` and `packets` a second.
        init(rate: Bitrate, packets: Int, _ settings: MediaSettings) {
            let burstTime = settings.burstTime.seconds
            let bytesPerSecond = rate.bitsPerSecond / 8
            let burstBytes = settings.burstBytes.bytes
            self.bytes = Allowance(
                perSecond: bytesPerSecond,
                burst: burstBytes + Int(Double(bytesPerSecond) * burstTime)
            )
            acknowledgements = Allowance(
                perSecond: settings.participantAcknowledgements,
                burst: Int(Double(settings.participantAcknowledgements) * burstTime)
            )
            // This also lets a backlog of the shortest allowed chunks pass.
            self.packets = Allowance(
                perSecond: packets,
                burst: burstBytes / WireFormat.minimumChunk.bytes + Int(Double(packets) * burstTime)
            )
        }
    }

    /// The limit that was exceeded.
    enum Excess: Sendable {
        case packets, bytes, acknowledgements
    }

    /// A budget that no sender uses.
    static let unused = MediaBudget(fullAt: MonotonicInstant(nanoseconds: 0))

    private var packets: TokenBucket
    private var bytes: TokenBucket
    private var acknowledgements: TokenBucket

    /// Creates a budget that is unused at `now`.
    init(fullAt now: MonotonicInstant) {
        packets = TokenBucket(fullAt: now)
        bytes = TokenBucket(fullAt: now)
        acknowledgements = TokenBucket(fullAt: now)
    }

    /// Charges one packet of `count` bytes.
    ///
    /// - Returns: The limit that the packet exceeds; `nil` if it is within the limits.
    mutating func charge(_ count: Int, to limits: Limits, at now: MonotonicInstant) -> Excess? {
        guard packets.take(1, of: limits.packets, at: now) else { return .packets }
        return bytes.take(count, of: limits.bytes, at: now) ? nil : .bytes
    }

    /// Charges an acknowledgement of `count` bytes.
    ///
    /// It does not count as a packet, so that a participant can acknowledge many tracks and publish as many as it may.
    ///
    /// - Returns: The limit that it exceeds; `nil` if it is within the limits.
    mutating func chargeAcknowledgement(_ count: Int, to limits: Limits, at now: MonotonicInstant) -> Excess? {
        guard acknowledgements.take(1, of: limits.acknowledgements, at: now) else { return .acknowledgements }
        return bytes.take(count, of: limits.bytes, at: now) ? nil : .bytes
    }
}

/// A connection's usage: the messages that the server reads, and the messages that it causes for others.
struct SignalingBudget: Sendable {
    /// The allowances of a connection.
    struct Limits: Sendable {
        fileprivate let messages: Allowance
        fileprivate let deliveries: Allowance

        /// Creates the limits that `settings` state.
        init(_ settings: RelaySettings) {
            messages = Allowance(one: settings.messageInterval, burst: settings.messageBurst)
            deliveries = Allowance(perSecond: settings.deliveriesPerSecond, burst: settings.deliveryBurst)
        }
    }

    private var messages: TokenBucket
    private var deliveries: TokenBucket

    /// Creates a budget that is unused at `now`.
    init(fullAt now: MonotonicInstant) {
        messages = TokenBucket(fullAt: now)
        deliveries = TokenBucket(fullAt: now)
    }

    /// Charges a message of `count` bytes: one, and one more for each whole KiB.
    ///
    /// - Returns: Whether it is within the limits.
    mutating func chargeMessage(of count: Int, to limits: Limits, at now: MonotonicInstant) -> Bool {
        messages.take(1 + count / 1024, of: limits.messages, at: now)
    }

    /// Charges `count` messages to others.
    ///
    /// - Returns: Whether they are within the limits.
    mutating func chargeDeliveries(_ count: Int, to limits: Limits, at now: MonotonicInstant) -> Bool {
        count == 0 || deliveries.take(count, of: limits.deliveries, at: now)
    }

    /// The messages to others that have not been made good by a quiet time.
    func usedDeliveries(of limits: Limits, at now: MonotonicInstant) -> Int {
        deliveries.used(of: limits.deliveries, at: now)
    }
}
