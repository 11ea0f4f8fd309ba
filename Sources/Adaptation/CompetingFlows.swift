/// Tells whether others fill the queue of the path, as a download over TCP does.
///
/// A law that yields to a queue gives such a sender everything. The sign of one is that our own cuts have no effect:
/// the queue stands, although less and less of ours is delivered. A queue of ours would drain then, because a link that
/// has a queue goes on delivering what it can.
///
/// While others compete, the rate goes up to a part of what was delivered before they came, whatever the queue. The
/// state ends if the queue is gone; if it becomes longer than it was, because it is ours then; and if it hardly varies,
/// because the path has then become longer for good.
///
/// A pure value. Times in microseconds, rates in bits per second.
package struct CompetingFlows: Hashable, Sendable {
    /// The settings.
    package struct Settings: Hashable, Sendable {
        /// The standing queue from which others may be at fault; 0 for never.
        package var standingQueue = 100_000.0
        /// The longest queue in which a share is worth having: pictures behind it would be stale.
        package var longestQueue = 500_000.0
        /// How long it must stand.
        package var patience: Int64 = 4_000_000
        /// When what was delivered at the beginning of the queue counts: its rates have a window.
        package var firstDelivery: Int64 = 400_000
        /// See `firstDelivery`.
        package var lastDelivery: Int64 = 1_000_000
        /// The part of this first delivery that is delivered in the end, at most.
        package var yielded = 0.5
        /// The part of the delivery before the queue that is delivered in the end, at most, if the delivery may fall at
        /// once; 0 if it may not.
        package var collapsed = 0.0
        /// How long a delivery counts as the delivery before the queue.
        package var deliveryMemory: Int64 = 20_000_000
        /// The part of the delivery before the queue to which the rate returns.
        package var part = 0.5
        /// How fast the rate returns, in bits per second each second, at 1 Mbit/s; `RateController` has it from here.
        package var increase = 500_000.0
        /// A queue that is longer by this than before is ours.
        package var growth = 150_000.0
        /// How long it must be that long: a lost packet delays what comes behind it for about a round trip.
        package var growthPatience: Int64 = 500_000
        /// A queue that varies less than this is none.
        package var leastSpread = 40_000.0
        /// After an error, nothing is tried for this time.
        package var pause: Int64 = 30_000_000

        package init() {}
    }

    /// What the last sample changed.
    enum Change: Hashable, Sendable {
        case none, began, ended
        /// The queue is ours: the rate must fall.
        case refuted
    }

    private static let memory: Int64 = 10_000_000

    private let settings: Settings
    private var delivered: SlidingExtremum
    private var queues: SlidingExtremum
    /// Since when a queue has stood; `nil` if none does.
    private var since: Int64?
    private var deliveredBefore = 0.0
    private var deliveredFirst = 0.0
    private var emptySince: Int64?
    private var grownSince: Int64?
    private var pausedUntil: Int64 = 0

    /// Since when others compete; `nil` while they do not.
    private(set) var begun: Int64?
    /// The longest queue before our rate went up again.
    private(set) var queue = 0.0
    /// The rate that is taken back.
    private(set) var rate = 0.0

    init(_ settings: Settings) {
        self.settings = settings
        delivered = .maximum(over: settings.deliveryMemory)
        queues = .maximum(over: Self.memory)
    }

    /// Notes what was delivered before the first `update`, at `now`.
    mutating func note(delivered rate: Double, at now: Int64) { delivered.add(rate, at: now) }

    /// Takes in the queue that stands, over the delay that the path had before it, and what is delivered.
    ///
    /// `least` is the smallest queue of the last 10 s, and `low` the one that counts as none.
    mutating func update(
        queue standing: Double,
        least: Double,
        low: Double,
        delivered rate: Double,
        at now: Int64
    )
        -> Change
    {
        guard settings.standingQueue > 0 else { return .none }
        let before = delivered.add(rate, at: now)
        let longest = queues.add(standing, at: now)
        if let begun {
            return check(standing, spread: longest - least, low: low, lasting: now - begun, at: now)
        }
        guard standing > settings.standingQueue, now >= pausedUntil else {
            since = nil
            return .none
        }
        let start = since ?? now
        if since == nil { (deliveredBefore, deliveredFirst, queue) = (before, 0, 0) }
        since = start
        queue = max(queue, standing)
        if now - start <= settings.firstDelivery { return .none }
        if now - start <= settings.lastDelivery { deliveredFirst = max(deliveredFirst, rate) }
        let little = max(settings.yielded * deliveredFirst, settings.collapsed * deliveredBefore)
        guard now - start >= settings.patience, rate < little, queue <= settings.longestQueue else { return .none }
        begun = now
        (emptySince, grownSince) = (nil, nil)
        self.rate = settings.part * deliveredBefore
        return .began
    }

    private mutating func check(
        _ standing: Double,
        spread: Double,
        low: Double,
        lasting: Int64,
        at now: Int64
    ) -> Change {
        grownSince = standing > queue + settings.growth ? grownSince ?? now : nil
        if let grownSince, now - grownSince >= settings.growthPatience {
            end(pausedUntil: now + settings.pause)
            return .refuted
        }
        emptySince = standing < low ? emptySince ?? now : nil
        let isEmpty = emptySince.map { now - $0 > 500_000 } ?? false
        let isLonger = lasting > Self.memory && spread < settings.leastSpread
        guard isEmpty || isLonger else { return .none }
        end(pausedUntil: isLonger ? now + settings.pause : 0)
        return .ended
    }

    private mutating func end(pausedUntil time: Int64) {
        begun = nil
        since = nil
        pausedUntil = time
    }
}
