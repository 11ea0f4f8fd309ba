package import MediaCore
package import RoomProtocol

/// Decides when a receiver of media acknowledges, and what it says: `docs/protocol.md`, "Acknowledgements".
///
/// A pure value, one for each connection: what arrives goes in, acknowledgements come out. While something is delayed,
/// one is due at the end of each frame, and every 10 ms while the bytes of a frame arrive. While nothing is delayed
/// they become fewer step by step, so that a sender that waits for the next one is never surprised by a silence; the
/// first delayed frame brings them all back at once.
package struct AcknowledgementSchedule: Hashable, Sendable {
    /// The settings; all in microseconds.
    package struct Settings: Hashable, Sendable {
        /// How often bytes are acknowledged while they arrive.
        package var shortestInterval: Int64 = 10_000
        /// The longest time between two acknowledgements, reached while nothing is delayed.
        ///
        /// A server that receives from a publisher takes less, because the publisher learns of an outage that much
        /// later.
        package var longestInterval: Int64 = 500_000
        /// Frames whose delay is at most this far above the smallest one are not delayed.
        package var delayTolerance: Int64 = 5_000
        /// How long the smallest delay counts.
        package var delayWindow: Int64 = 10_000_000
        /// How long nothing must have been delayed before acknowledgements become fewer.
        package var patience: Int64 = 1_000_000
        /// A frame that is longer than this on its way in may be delayed.
        package var slowArrival: Int64 = 20_000
        /// The shortest time between two acknowledgements, however many frames end.
        package var coalescing: Int64 = 5_000

        package init() {}
    }

    /// The properties of a received chunk that acknowledgements depend on.
    package struct Chunk: Hashable, Sendable {
        /// The track's alias on the connection.
        package var trackAlias: UInt32
        /// The encoding of the track whose frames come one after the other.
        ///
        /// Publishers send the encodings of a track by turns, so servers pass the simulcast layer. Subscribers pass 0:
        /// they get one encoding at a time, and the frame that the server abandons when it changes would count as on
        /// its way.
        package var simulcastLayer: UInt8
        /// The frame's number.
        package var frameNumber: UInt32
        /// Whether it is the frame's first chunk.
        package var isFirst: Bool
        /// Whether it is the frame's last chunk.
        package var isLast: Bool
        /// When the chunk was sent, in microseconds of any clock that goes evenly; `nil` if unknown.
        ///
        /// Subscribers pass the relay time, servers the capture time plus the encode delay.
        package var sentTime: Int64?

        package init(
            trackAlias: UInt32,
            simulcastLayer: UInt8 = 0,
            frameNumber: UInt32,
            isFirst: Bool,
            isLast: Bool,
            sentTime: Int64?
        ) {
            self.trackAlias = trackAlias
            self.simulcastLayer = simulcastLayer
            self.frameNumber = frameNumber
            self.isFirst = isFirst
            self.isLast = isLast
            self.sentTime = sentTime
        }
    }

    private struct Arrival: Hashable, Sendable {
        var trackAlias: UInt32
        var simulcastLayer: UInt8
        var frameNumber: UInt32
        var firstByte: Int64
    }

    /// More frames than this are not on their way in at a time, whatever a peer begins.
    private static let mostArrivals = 64
    /// Bytes of nothing but acknowledgements that are acknowledged all the same, so that both ends' acknowledgements do
    /// not answer each other for ever.
    private static let mostSilentBytes: UInt64 = 1000

    /// A frame that takes longer was abandoned; in microseconds.
    private static let longestArrival: Int64 = 10_000_000

    private let settings: Settings
    private var receivedBytes: UInt64 = 0
    private var acknowledgedBytes: UInt64 = 0
    private var lastByte: Int64 = 0
    private var messageBytes = 0
    private var messageBegan: Int64?
    private var arrivals: [Arrival] = []
    private var newest: Arrival?
    private var newestLastByte: Int64?
    private var smallestDelay: SlidingExtremum
    /// When something was delayed last; at first when the first delay was known.
    private var lastDelay: Int64?
    private var lastSent: Int64?
    private var interval: Int64 = 0
    /// Whether there is more to acknowledge than acknowledgements.
    private var isOwing = false
    /// Whether a frame ended since the last acknowledgement.
    private var hasEnded = false

    /// A schedule for a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        smallestDelay = .minimum(over: settings.delayWindow)
    }

    /// Notes that bytes of a message came, the whole message or a part of it, before anything looks at them.
    package mutating func received(_ bytes: Int, at now: MonotonicInstant) {
        guard bytes > 0 else { return }
        let time = max(lastByte, now.microseconds)
        receivedBytes += UInt64(bytes)
        lastByte = time
        if messageBegan == nil { messageBegan = time }
        messageBytes += bytes
        if messageBytes > MediaAcknowledgement.length { isOwing = true }
    }

    /// Notes that the message whose bytes came last is whole, and no chunk of a frame.
    package mutating func messageEnded(isAcknowledgement: Bool) {
        if !isAcknowledgement { isOwing = true }
        if receivedBytes - acknowledgedBytes > Self.mostSilentBytes { isOwing = true }
        messageBegan = nil
        messageBytes = 0
    }

    /// Notes that the message whose bytes came last is whole, and a chunk of a frame.
    package mutating func chunkEnded(_ chunk: Chunk) {
        let began = messageBegan ?? lastByte
        messageBegan = nil
        messageBytes = 0
        isOwing = true
        let known = arrivals.firstIndex {
            $0.trackAlias == chunk.trackAlias && $0.simulcastLayer == chunk.simulcastLayer
        }
        if let index = known {
            if arrivals[index].frameNumber != chunk.frameNumber {
                arrivals[index].frameNumber = chunk.frameNumber
                arrivals[index].firstByte = began
            }
            if chunk.isLast { frameEnded(arrivals.remove(at: index)) }
        } else {
            let arrival = Arrival(
                trackAlias: chunk.trackAlias,
                simulcastLayer: chunk.simulcastLayer,
                frameNumber: chunk.frameNumber,
                firstByte: began
            )
            if chunk.isLast {
                frameEnded(arrival)
            } else {
                if arrivals.count == Self.mostArrivals { arrivals.removeFirst() }
                arrivals.append(arrival)
            }
        }
        if let sent = chunk.sentTime { note(delay: lastByte &- sent) }
    }

    /// The acknowledgement that is due at `now`; `nil` if none is.
    ///
    /// Ask for it after each of the methods above, and at `nextDeadline`.
    package mutating func acknowledgement(at now: MonotonicInstant) -> MediaAcknowledgement? {
        let time = now.microseconds
        guard let deadline, time >= deadline else { return nil }
        lastSent = time
        acknowledgedBytes = receivedBytes
        isOwing = false
        hasEnded = false
        lengthenInterval(at: time)
        return MediaAcknowledgement(
            cumulativeBytes: receivedBytes,
            receiveTime: Self.time(lastByte),
            trackAlias: newest?.trackAlias ?? 0,
            frameNumber: newest?.frameNumber ?? 0,
            firstByteTime: (newest?.firstByte).map(Self.time),
            lastByteTime: newestLastByte.map(Self.time)
        )
    }

    /// When to ask for an acknowledgement if nothing arrives before; `nil` if there is nothing to acknowledge.
    package var nextDeadline: MonotonicInstant? { deadline.map(MonotonicInstant.init(microseconds:)) }

    /// Whether there is an acknowledgement at `now`.
    ///
    /// It is mutating because the schedule is then lent, and not copied for each packet.
    package mutating func isDue(at now: MonotonicInstant) -> Bool {
        guard let deadline else { return false }
        return deadline <= now.microseconds
    }

    /// Whether there is an acknowledgement at `now` in the middle of a frame, because its bytes come slowly.
    ///
    /// The beginning of a frame that comes at once tells nothing of the frame before, which came long before it.
    package mutating func isDueWithinFrame(at now: MonotonicInstant) -> Bool {
        guard let time = arrivalTime, time >= settings.shortestInterval else { return false }
        return isDue(at: now)
    }

    private var deadline: Int64? {
        guard isOwing else { return nil }
        guard let lastSent else { return lastByte }
        if isArrivingSlowly { return lastSent + settings.shortestInterval }
        return lastSent + (hasEnded && interval == 0 ? settings.coalescing : max(interval, settings.shortestInterval))
    }

    /// Whether bytes of a frame have been arriving for long.
    private var isArrivingSlowly: Bool { arrivalTime.map { $0 > settings.slowArrival } ?? false }

    /// For how long bytes of a message or frame have been arriving that is not whole; `nil` if all are whole.
    private var arrivalTime: Int64? {
        guard !arrivals.isEmpty || messageBegan != nil else { return nil }
        var first = messageBegan ?? lastByte
        for arrival in arrivals where lastByte - arrival.firstByte < Self.longestArrival {
            first = min(first, arrival.firstByte)
        }
        return lastByte - first
    }

    private mutating func frameEnded(_ arrival: Arrival) {
        newest = arrival
        newestLastByte = lastByte
        hasEnded = true
    }

    private mutating func note(delay: Int64) {
        // A receiver that never thins need not know what is delayed.
        guard settings.longestInterval > 0 else { return }
        let smallest = smallestDelay.add(Double(delay), at: lastByte)
        if lastDelay == nil { lastDelay = lastByte }
        guard Double(delay) - smallest > Double(settings.delayTolerance) else { return }
        lastDelay = lastByte
        interval = 0
    }

    private mutating func lengthenInterval(at time: Int64) {
        guard let lastDelay, time - lastDelay > settings.patience else { return }
        interval = min(settings.longestInterval, max(2 * settings.shortestInterval, 2 * interval))
    }

    private static func time(_ microseconds: Int64) -> MediaAcknowledgement.ReceiverTime {
        // 0 stands for an unknown time on the wire.
        MediaAcknowledgement.ReceiverTime(microseconds: UInt64(max(1, microseconds)))
    }
}
