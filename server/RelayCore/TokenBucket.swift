import MediaCore
import RoomProtocol

/// How much of something a peer may use: a rate in the long run, and more at once after a quiet time.
struct Allowance: Sendable {
    fileprivate let nanosecondsPerUnit: Double
    fileprivate let burstNanoseconds: Int64

    /// An allowance of `perSecond` units a second, and of `burst` units at once.
    init(perSecond: Int, burst: Int) {
        nanosecondsPerUnit = 1e9 / Double(max(perSecond, 1))
        // 1e18 ns are 31 years; the sum with any instant of a running machine fits 64 bits.
        burstNanoseconds = Int64(min(Double(max(burst, 1)) * nanosecondsPerUnit, 1e18))
    }
}

/// A token bucket: what has been used of an allowance.
struct TokenBucket: Sendable {
    /// When the bucket will be full again; in the past for a full one.
    private var fullAt: MonotonicInstant

    /// A bucket that is full at `now`.
    init(fullAt now: MonotonicInstant) { fullAt = now }

    /// Takes `units` out of the bucket if it holds as many.
    ///
    /// - Returns: Whether it did; if not, nothing was taken.
    mutating func take(_ units: Int, of allowance: Allowance, at now: MonotonicInstant) -> Bool {
        let cost = Int64(min(Double(units) * allowance.nanosecondsPerUnit, 1e18))
        let next = max(fullAt.nanoseconds, now.nanoseconds) &+ cost
        guard next &- now.nanoseconds <= allowance.burstNanoseconds else { return false }
        fullAt = MonotonicInstant(nanoseconds: next)
        return true
    }
}

/// What has been sent of the packets and bytes that a participant, or one of its tracks, may send.
struct MediaBudget: Sendable {
    /// What may be sent.
    struct Limits: Sendable {
        fileprivate let packets: Allowance
        fileprivate let bytes: Allowance

        /// Limits for a sender of `rate` and of `packets` a second.
        init(rate: Bitrate, packets: Int, _ settings: MediaSettings) {
            let burstTime = settings.burstTime.seconds
            let bytesPerSecond = rate.bitsPerSecond / 8
            let burstBytes = settings.burstBytes.bytes
            self.bytes = Allowance(
                perSecond: bytesPerSecond,
                burst: burstBytes + Int(Double(bytesPerSecond) * burstTime)
            )
            // A backlog of the shortest chunks that are allowed passes, too.
            self.packets = Allowance(
                perSecond: packets,
                burst: burstBytes / WireFormat.minimumChunk.bytes + Int(Double(packets) * burstTime)
            )
        }
    }

    /// What was exceeded.
    enum Excess: Sendable {
        case packets, bytes
    }

    /// The budget of nobody.
    static let unused = MediaBudget(fullAt: MonotonicInstant(nanoseconds: 0))

    private var packets: TokenBucket
    private var bytes: TokenBucket

    /// A budget of which nothing is used at `now`.
    init(fullAt now: MonotonicInstant) {
        packets = TokenBucket(fullAt: now)
        bytes = TokenBucket(fullAt: now)
    }

    /// Charges one packet of `count` bytes.
    ///
    /// - Returns: What the packet exceeds; `nil` if it is within the limits.
    mutating func charge(_ count: Int, to limits: Limits, at now: MonotonicInstant) -> Excess? {
        guard packets.take(1, of: limits.packets, at: now) else { return .packets }
        return bytes.take(count, of: limits.bytes, at: now) ? nil : .bytes
    }
}

/// What a connection's messages have used: of messages that the server reads, and of those that others are sent for it.
struct SignalingBudget: Sendable {
    /// What may be used.
    struct Limits: Sendable {
        fileprivate let messages: Allowance
        fileprivate let deliveries: Allowance

        /// The limits that `settings` name.
        init(_ settings: RelaySettings) {
            let perSecond = 1e9 / Double(max(settings.messageInterval.wholeNanoseconds, 1))
            messages = Allowance(perSecond: Int(min(perSecond, 1e9)), burst: settings.messageBurst)
            deliveries = Allowance(perSecond: settings.deliveriesPerSecond, burst: settings.deliveryBurst)
        }
    }

    private var messages: TokenBucket
    private var deliveries: TokenBucket

    /// A budget of which nothing is used at `now`.
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

    /// Charges `count` messages that others are sent.
    ///
    /// - Returns: Whether they are within the limits.
    mutating func chargeDeliveries(_ count: Int, to limits: Limits, at now: MonotonicInstant) -> Bool {
        count == 0 || deliveries.take(count, of: limits.deliveries, at: now)
    }
}
