/// Chooses the rate of a connection from what its acknowledgements tell, so that a queue never stands for long.
///
/// The law is described in `docs/adaptation.md`. All arithmetic is IEEE addition, multiplication, division and square
/// root, which every machine rounds alike, so that a recorded run replays to the same decisions bit for bit.
package struct RateController: Hashable, Sendable {
    /// The settings; rates in bits per second, times in seconds unless the comment says otherwise.
    package struct Settings: Hashable, Sendable {
        /// The rate never goes below this: on a path that carries less, the queue would grow for ever.
        package var lowestRate = 10_000.0
        /// The rate never goes above this.
        package var highestRate = 2_500_000.0
        /// The rate before anything is known of the path.
        package var startRate = 600_000.0
        /// The queue above which the rate is cut at once, in microseconds.
        package var targetQueue = 50_000.0
        /// The queue below which the path has room, in microseconds.
        package var lowQueue = 30_000.0
        /// The part of the rate that the path delivers to which a cut sets the rate.
        package var cutFactor = 0.95
        /// A queue that stays above the allowed one for this long shows what the path carries with all its silences.
        ///
        /// On a thin link with a short queue, a lost packet holds up those behind it, which then come at once, and the
        /// rate while the path delivers is up to three times what it carries.
        package var persistence = 2.0
        /// Additive increase, in bits per second each second, at 1 Mbit/s.
        package var additiveIncrease = 250_000.0
        /// The most that this may be on a thin path, as a part of the rate each second.
        ///
        /// There a queue shows only after some messages of 50 to 100 ms each, and the rate would have doubled
        /// meanwhile.
        package var thinIncrease = 0.7
        /// How long the path must have had room before the increase becomes multiplicative.
        package var patience = 1.0
        /// How long the multiplicative increase then takes to reach its full strength.
        package var rampTime = 0.8
        /// The multiplicative increase, each second.
        package var multiplicativeIncrease = 1.0
        /// The multiplicative increase below the last good rate, each second.
        package var recoveryIncrease = 1.5
        /// The round trip beyond which the rate grows more slowly, in inverse proportion, in microseconds.
        ///
        /// What an acknowledgement tells is a round trip old: the rate has grown meanwhile, and goes on to be sent for
        /// another one.
        package var pacedRoundTrip = 200_000.0
        /// The part of the last good rate up to which the recovery is fast.
        package var recoveryLimit = 0.8
        /// How fast the last good rate is forgotten, each second.
        package var memoryDecay = 0.15
        /// The frame interval that the allowed queue suits, in microseconds.
        package var frameInterval = 33_334.0
        /// By how much the allowed queue grows with longer frame intervals.
        package var frameGain = 0.8
        /// The most that frame intervals raise the allowed queue, in microseconds.
        package var frameLimit = 100_000.0
        /// The multiplicative increase before the path has shown its first queue, each second.
        package var startIncrease = 1.5
        /// The same where the frames' trains show that the path carries much more.
        package var trainIncrease = 4.0
        /// A train counts as showing that if its rate is this many times the present one.
        package var trainMargin = 2.0
        /// Before the first queue, the rate does not grow beyond this part of what the slowest of the last trains
        /// shows.
        package var trainLimit = 0.9
        /// How long a train's rate counts, in microseconds.
        package var trainWindow: Int64 = 1_000_000
        /// By how much the allowed queue grows with the jitter.
        package var jitterGain = 1.0
        /// The jitter that counts as none, in microseconds.
        package var jitterFloor = 16_000.0
        /// The most that jitter raises the allowed queue, in microseconds.
        package var jitterLimit = 40_000.0
        /// Bytes that were alone on the path say nothing of the rate if they were less than this part of it: a screen
        /// that stands still sends some hundred bytes a second.
        package var loneShare = 0.1
        /// What their being late leaves of the rate.
        package var loneFactor = 0.9
        /// How others that fill the queue are told.
        package var competing = CompetingFlows.Settings()

        package init() {}
    }

    private struct Overfull: Hashable, Sendable {
        var since: Int64
        var bytes: Int64
    }

    private var settings: Settings
    private var capacity: Double?
    private var lastGoodRate = 0.0
    private var isRecovering = false
    private var lastSample: Int64?
    private var lastCut: Int64?
    private var lastFull: Int64?
    /// Since when the queue has been above the allowed one, and what the receiver had had by then.
    private var overfull: Overfull?
    /// What messages that come after gaps tell.
    private var slowness = Slowness()
    private var meanQueue = 0.0
    private var jitter = 0.0
    private var recentDelivery = SlidingExtremum.maximum(over: 2_000_000)
    private var slowestTrain: SlidingExtremum
    private var lastTrain: Int64?
    private var isStarting = true
    /// Whether the path has ever shown that it carries less than the rate; before that, the rate only has not risen
    /// yet.
    package private(set) var hasFoundLimit = false
    private var competing: CompetingFlows

    /// The rate to send at, in bits per second.
    package private(set) var rate: Double
    /// Why it is what it is.
    package private(set) var reason = RateReason.start
    /// The estimated rate that the path carries, in bits per second.
    package var capacityEstimate: Double { capacity ?? rate }
    /// By how much jitter raises the allowed queue, in microseconds.
    package private(set) var jitterAllowance = 0.0
    /// By how much long frame intervals raise the allowed queue, in microseconds.
    package private(set) var frameAllowance = 0.0

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        slowestTrain = .minimum(over: settings.trainWindow)
        competing = CompetingFlows(settings.competing)
        rate = settings.startRate
    }

    /// The queue above which the rate is cut, in microseconds.
    package var targetQueue: Double {
        settings.targetQueue + jitterAllowance + frameAllowance + competingQueue
    }

    /// Whether others fill the queue, so that it says nothing of our rate.
    package var isCompeting: Bool { competing.begun != nil }

    /// The queue of others, which is put up with; in microseconds.
    package var competingQueue: Double { isCompeting ? competing.queue : 0 }

    /// Notes the time from one frame to the next, in microseconds.
    ///
    /// A frame waits for its own first bytes: at few frames a second, each is large and seems to find a queue.
    package mutating func setFrameInterval(_ interval: Int64) {
        let excess = Double(interval) - settings.frameInterval
        frameAllowance = min(settings.frameLimit, max(0, settings.frameGain * excess))
    }

    /// A longer time between two acknowledgements counts as this; in seconds.
    private static let longestStep = 0.6

    /// The rate that it never exceeds, in bits per second.
    package var highestRate: Double { settings.highestRate }

    /// Limits the rate from now on, to what there is to send, in bits per second.
    ///
    /// The estimate of the path stays: when the limit rises again, the rate soon is what it was.
    package mutating func setHighestRate(_ highest: Double) {
        settings.highestRate = max(settings.lowestRate, highest)
        if rate > settings.highestRate { (rate, reason) = (settings.highestRate, .highestRate) }
    }

    /// Notes what was delivered before the first acknowledgement that is taken in, in bits per second.
    package mutating func note(delivered rate: Double, at now: Int64) { competing.note(delivered: rate, at: now) }

    /// Takes in a large frame that came as a train; before `update` with the same acknowledgement.
    package mutating func note(_ train: PathEstimator.Train, at now: Int64) {
        slowestTrain.add(train.rate, at: now)
        lastTrain = now
    }

    /// Grows by what a train shows, before the first queue; after `note`, and before `update`.
    ///
    /// The bytes of a frame that is large for the rate tell as much as the time in which the rate carries so many: on a
    /// path that is idle after it, as while the encoder makes up for its size, nothing else is told for seconds.
    package mutating func grow(by train: PathEstimator.Train, at now: Int64) {
        guard isStarting, train.rate > settings.trainMargin * rate, let slowest = slowestTrain.value else { return }
        let time = min(Self.longestStep, Double(train.bytes) * 8 / rate)
        // `update` adds this part of the growth.
        let elapsed = Double(now - (lastSample ?? now)) / 1e6
        let grown = rate * (1 + settings.trainIncrease * max(0, time - elapsed))
        rate = max(rate, min(grown, settings.trainLimit * slowest, settings.highestRate))
    }

    /// Takes in what an acknowledgement told, at `now` in microseconds.
    package mutating func update(_ sample: PathEstimator.Sample, roundTrip: Int64, at now: Int64) {
        let silence = Double(now - (lastSample ?? now)) / 1e6
        let elapsed = min(Self.longestStep, silence)
        // A longer silence is no time in which a queue stayed: nothing was known of it.
        if silence > elapsed { overfull?.since += Int64((silence - elapsed) * 1e6) }
        lastSample = now
        if lastFull == nil { lastFull = now }
        let isAlone = sample.loneRate.map { $0 < settings.loneShare * rate } ?? false
        slowness.note(isAlone ? nil : sample.gap, at: now)
        if sample.isAfterStall { return isAlone ? ease(at: now) : updateAfterStall(sample, at: now) }
        observeJitter(Double(sample.queue), min(0.3, elapsed))
        if !isAlone { observeCapacity(sample, min(0.3, elapsed), at: now) }
        let low = settings.lowQueue + jitterAllowance + frameAllowance
        let queue = Double(sample.standingQueue)
        let change = competing.update(
            queue: queue + Double(sample.baseRise),
            least: Double(sample.baseRise),
            low: low,
            delivered: sample.deliveryRate,
            at: now
        )
        if change == .refuted { rate = min(rate, 0.5 * sample.deliveryRate) }
        if isCompeting {
            reason = .competition
            lastFull = now
            overfull = nil
            (isStarting, isRecovering, hasFoundLimit) = (false, false, true)
            compete(sample, elapsed)
        } else if queue < low {
            overfull = nil
            increase(room: 1 - queue / low, sample, roundTrip: roundTrip, elapsed, at: now)
        } else if isAlone {
            lastFull = now
            overfull = nil
            if queue > targetQueue { ease(at: now) }
        } else {
            decrease(queue: queue, low: low, sample, roundTrip: roundTrip, min(0.3, elapsed), at: now)
        }
        if change == .refuted { reason = .queue }
        let isLimited = rate >= settings.highestRate
        if isLimited { reason = .highestRate }
        rate = min(settings.highestRate, max(settings.lowestRate, rate))
        // While the limit holds the rate down, nothing is learned of the path, so the last good rate does not fade.
        lastGoodRate = max(rate, isLimited ? lastGoodRate : lastGoodRate * (1 - settings.memoryDecay * min(1, elapsed)))
    }

    /// Goes up to the rate that is taken back.
    private mutating func compete(_ sample: PathEstimator.Sample, _ elapsed: Double) {
        let limit = min(competing.rate, 1.5 * max(sample.activeRate, 0.5 * capacityEstimate) + 50_000)
        guard rate < limit else { return }
        rate = min(limit, rate + settings.competing.increase * min(2, 1e6 / rate).squareRoot() * elapsed)
    }

    /// Bytes that waited for the end of a stall arrive at the rate of the link, so their delay shows no queue.
    private mutating func updateAfterStall(_ sample: PathEstimator.Sample, at now: Int64) {
        lastFull = now
        if isCompeting {
            // A packet of ours was lost; TCP halves what may be on its way about as far.
            guard now - (lastCut ?? .min / 2) > 500_000 else { return }
            lastCut = now
            reason = .stall
            return rate = max(settings.lowestRate, 0.7 * rate)
        }
        // Where a message takes longer than a silence may, as with few frames a second on a thin path, each looks like a
        // stall, of which the active rate leaves most out.
        let slowRate = slowness.rate
        let delivered = min(sample.activeRate, slowRate ?? .infinity)
        guard rate > settings.cutFactor * delivered else { return }
        if slowRate == delivered { slowness.wasHeeded(at: now) }
        reason = .stall
        hasFoundLimit = true
        rate = max(settings.lowestRate, settings.cutFactor * delivered)
    }

    /// Goes down a little, because bytes that were alone on the path were late: the queue is not ours, and what was
    /// delivered is not what the path carries, but more may be too much.
    private mutating func ease(at now: Int64) {
        guard now - (lastCut ?? .min / 2) > 500_000 else { return }
        lastCut = now
        reason = .lateWrite
        rate = max(settings.lowestRate, settings.loneFactor * rate)
    }

    private mutating func observeJitter(_ queue: Double, _ elapsed: Double) {
        meanQueue += (min(queue, 300_000) - meanQueue) * min(1, elapsed)
        let deviation = queue < meanQueue ? meanQueue - queue : queue - meanQueue
        jitter += (min(deviation, 60_000) - jitter) * min(1, elapsed / 3)
        jitterAllowance = min(settings.jitterLimit, max(0, settings.jitterGain * (jitter - settings.jitterFloor)))
    }

    private mutating func observeCapacity(_ sample: PathEstimator.Sample, _ elapsed: Double, at now: Int64) {
        let best = recentDelivery.add(sample.deliveryRate, at: now)
        var estimate = capacity ?? max(best, rate)
        if sample.standingQueue > 20_000 {
            estimate += Self.weight(elapsed, 0.15) * (sample.activeRate - estimate)
        } else {
            estimate = max(estimate + Self.weight(elapsed, 1) * (best - estimate), sample.deliveryRate)
        }
        capacity = estimate
    }

    private mutating func increase(
        room: Double,
        _ sample: PathEstimator.Sample,
        roundTrip: Int64,
        _ elapsed: Double,
        at now: Int64
    ) {
        let clearFor = Double(now - (lastFull ?? now)) / 1e6
        reason = .growth
        var growth = 0.0
        if clearFor > settings.patience {
            growth = settings.multiplicativeIncrease * min(1, (clearFor - settings.patience) / settings.rampTime)
        }
        if rate < settings.recoveryLimit * lastGoodRate {
            growth = max(growth, settings.recoveryIncrease)
            isRecovering = true
            reason = .recovery
        }
        if isStarting, rate < settings.highestRate { growth = max(growth, startGrowth(at: now)) }
        let limit = 1.5 * max(sample.activeRate, 0.5 * capacityEstimate) + 50_000
        guard rate < limit else { return reason = .unused }
        let pace = min(1, settings.pacedRoundTrip / Double(max(1, roundTrip)))
        var additive = settings.additiveIncrease * min(2, 1e6 / rate).squareRoot()
        if sample.isThin { additive = min(additive, settings.thinIncrease * rate) }
        rate = min(limit, rate + (additive + rate * growth) * pace * room * elapsed)
    }

    /// The growth before the first queue: fast, unless the trains show that the path carries less.
    private func startGrowth(at now: Int64) -> Double {
        guard let lastTrain, now - lastTrain < settings.trainWindow, let train = slowestTrain.value else {
            return settings.startIncrease
        }
        if train > settings.trainMargin * rate { return settings.trainIncrease }
        return train * settings.trainLimit > rate ? settings.startIncrease : 0
    }

    private mutating func decrease(
        queue: Double,
        low: Double,
        _ sample: PathEstimator.Sample,
        roundTrip: Int64,
        _ elapsed: Double,
        at now: Int64
    ) {
        lastFull = now
        reason = .queue
        (isStarting, hasFoundLimit) = (false, true)
        cutPersistentQueue(queue, sample, at: now)
        // Below what the path delivers the queue drains already.
        let drained = settings.cutFactor * sample.activeRate
        guard rate > drained else { return }
        if isRecovering {
            // The last good rate led into a queue: the path has changed.
            lastGoodRate = rate
            isRecovering = false
        }
        rate *= 1 - min(1, (queue - low) / max(1, targetQueue - low)) * elapsed
        let cutInterval = max(50_000, min(250_000, roundTrip))
        if queue > targetQueue, now - (lastCut ?? .min / 2) > cutInterval {
            rate = min(rate, drained)
            lastCut = now
        }
    }

    /// Goes below what was delivered while the queue stayed above the allowed one, if that was for long.
    private mutating func cutPersistentQueue(_ queue: Double, _ sample: PathEstimator.Sample, at now: Int64) {
        guard queue > targetQueue else { return overfull = nil }
        guard let began = overfull else { return overfull = Overfull(since: now, bytes: sample.bytes) }
        let elapsed = Double(now - began.since) / 1e6
        guard settings.persistence > 0, elapsed > settings.persistence else { return }
        overfull = Overfull(since: now, bytes: sample.bytes)
        let delivered = Double(sample.bytes - began.bytes) * 8 / elapsed
        guard rate > settings.cutFactor * delivered else { return }
        rate = settings.cutFactor * delivered
        capacity = min(capacity ?? delivered, delivered)
        lastGoodRate = rate
        isRecovering = false
    }

    /// The weight of a new value in an average with the time constant `constant`, both in seconds.
    private static func weight(_ elapsed: Double, _ constant: Double) -> Double { elapsed / (elapsed + constant) }
}
