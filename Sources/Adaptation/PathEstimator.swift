/// Estimates a connection's delay, queue and rate from what was written and what the receiver acknowledged.
///
/// A pure value: times and bytes come in, estimates go out. The receiver's clock may have any origin, because only
/// differences of its times are used. What a receiver says is bounded: acknowledgements that go backwards, or beyond
/// what was written, are disregarded and counted.
package struct PathEstimator: Hashable, Sendable {
    /// The settings; all lengths of time in microseconds.
    package struct Settings: Hashable, Sendable {
        /// How long the smallest one-way delay counts as that of the empty path.
        package var baseWindow: Int64 = 10_000_000
        /// The queue that stands is the smallest one of this time: shorter ones are bursts, which drain by themselves.
        ///
        /// Simulated on 40 links: from 80 to 180 ms the rate on bursty cellular links rises by 15 to 80 %, and the 95th
        /// percentile of the delay by 6 to 20 %.
        package var standingWindow: Int64 = 180_000
        /// The window of the delivery rates.
        package var rateWindow: Int64 = 400_000
        /// A silence of the link counts at most this long in the rate while it delivers.
        package var longestGap: Int64 = 80_000

        package init() {}
    }

    /// What an acknowledgement told.
    package struct Sample: Hashable, Sendable {
        /// The queueing delay of the newest acknowledged byte, in microseconds.
        package var queue: Int64
        /// The smallest queueing delay of the last `standingWindow`.
        package var standingQueue: Int64
        /// Bits per second over the last `rateWindow`.
        package var deliveryRate: Double
        /// Bits per second over the last `rateWindow`, silences of the link left out.
        package var activeRate: Double
    }

    private struct Write: Hashable, Sendable {
        /// Bytes written up to the end of this write.
        var end: Int64
        var time: Int64
    }

    private let settings: Settings
    private var writes: [Write] = []
    private var firstWrite = 0
    private var baseDelay: SlidingExtremum
    private var standing: SlidingExtremum
    private var wallRate: DeliveryRate
    private var activeRate: DeliveryRate
    private var activeTime: Int64 = 0
    private var lastReceiveTime: Int64?

    /// Bytes written since the connection opened.
    package private(set) var writtenBytes: Int64 = 0
    /// Bytes of these that the receiver has.
    package private(set) var acknowledgedBytes: Int64 = 0
    /// The shortest time from a write to its acknowledgement, in microseconds; `nil` before the first.
    package private(set) var shortestRoundTrip: Int64?
    /// When the last acknowledgement came, in microseconds of the local clock.
    package private(set) var lastAcknowledgement: Int64?
    /// Acknowledgements that could not be true.
    package private(set) var disregarded = 0

    /// An estimator of a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        baseDelay = .minimum(over: settings.baseWindow)
        standing = .minimum(over: settings.standingWindow)
        wallRate = DeliveryRate(window: settings.rateWindow)
        activeRate = DeliveryRate(window: settings.rateWindow)
        writes.reserveCapacity(256)
    }

    /// Bytes that are on their way.
    package var unacknowledgedBytes: Int64 { writtenBytes - acknowledgedBytes }

    /// When the oldest byte that is on its way was written; `nil` if none is.
    package var oldestUnacknowledgedWrite: Int64? {
        firstWrite < writes.count ? writes[firstWrite].time : nil
    }

    /// Notes that the socket took `bytes` more at `now`.
    package mutating func wrote(_ bytes: Int, at now: Int64) {
        guard bytes > 0 else { return }
        writtenBytes += Int64(bytes)
        if let last = writes.last, firstWrite < writes.count, last.time == now {
            writes[writes.count - 1].end = writtenBytes
        } else {
            writes.append(Write(end: writtenBytes, time: now))
        }
    }

    /// Takes an acknowledgement in: the receiver had `bytes` at `receiveTime` of its clock.
    ///
    /// - Returns: What it told; `nil` while there is too little to tell, for one that acknowledges nothing new, and for
    ///   one that cannot be true.
    package mutating func acknowledged(_ bytes: UInt64, receiveTime: UInt64, at now: Int64) -> Sample? {
        guard let bytes = Int64(exactly: bytes), let received = Int64(exactly: receiveTime),
            bytes <= writtenBytes, bytes >= acknowledgedBytes, received >= lastReceiveTime ?? received
        else {
            disregarded += 1
            return nil
        }
        lastAcknowledgement = now
        var writeTime: Int64?
        while firstWrite < writes.count, writes[firstWrite].end <= bytes {
            writeTime = writes[firstWrite].time
            firstWrite += 1
        }
        if firstWrite > 256, firstWrite * 2 > writes.count {
            writes.removeSubrange(..<firstWrite)
            firstWrite = 0
        }
        acknowledgedBytes = bytes
        wallRate.add(bytes: bytes, at: received)
        guard let writeTime else {
            advance(to: received, bytes)
            return nil
        }
        advance(to: received, bytes)
        let delay = Double(received - writeTime)
        let queue = delay - baseDelay.add(delay, at: now)
        shortestRoundTrip = min(shortestRoundTrip ?? .max, now - writeTime)
        let standingQueue = standing.add(queue, at: now)
        guard let wall = wallRate.bitsPerSecond, let active = activeRate.bitsPerSecond else { return nil }
        return Sample(
            queue: Int64(queue),
            standingQueue: Int64(standingQueue),
            deliveryRate: wall,
            activeRate: active
        )
    }

    private mutating func advance(to received: Int64, _ bytes: Int64) {
        if let last = lastReceiveTime { activeTime += min(received - last, settings.longestGap) }
        lastReceiveTime = received
        activeRate.add(bytes: bytes, at: activeTime)
    }
}
