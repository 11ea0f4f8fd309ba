import Adaptation
package import MediaCore
package import RoomProtocol

/// The path from the relay to one peer: the bytes that were handed to its socket and acknowledged, and an estimate of
/// its rate.
///
/// A peer that never acknowledges has no estimate. Its frames are left out by their lag alone. For a peer that
/// acknowledges there are two states. While nothing is delayed, its path has no known limit. From the first queue on,
/// the rate law gives a rate, and frames begin only while the path has room for them.
package struct SubscriberPath: Sendable {
    /// The kinds of message that the estimate distinguishes.
    package enum Message: Sendable {
        case text, media, acknowledgement
    }

    // What each message needs comes first, so that it shares a cache line. What is asked for each packet is mutating,
    // although it changes nothing: a path that is only read would be copied to the stack, with its estimate.

    /// Bytes handed to the socket since the connection opened.
    private var written: UInt64 = 0
    /// Whether `estimator` knows of what is written.
    private var isEstimated = false
    /// Whether so much was left unacknowledged that no estimate is kept until the next acknowledgement.
    private var isGivenUp = false
    /// Whether the peer acknowledges what it receives.
    package private(set) var isAcknowledged = false
    /// Whether a limit of the path is known.
    package private(set) var isLimited = false
    /// Whether `firstDelivery` still looks for a rate, beside the other flags.
    private var isBeginning = true
    /// Whether the path is tested: whether `probe` runs, beside the other flags.
    package private(set) var isTested = false
    /// Whether the media that are written next are of the track for which the path is tested.
    package var servesTestedTrack = true
    /// Whether the media packet that is written next, or was written last, is the last one of its frame.
    package var endsFrame = true
    private var writesSinceAcknowledgement: Int32 = 0
    private var nextProbe: Int64?
    private var thinning = Thinning()
    /// The bytes on their way down to which the first frame after an outage waits; `nil` once it was sent.
    private var recoveryWindow: Int64?
    private var lastAcknowledgement: Int64 = 0
    /// Bytes of our own acknowledgements after the last other message.
    ///
    /// The peer acknowledges them with the next message only, so they must not count as old.
    private var unaged = 0
    private var sent = SentRate()
    /// The estimate; without content unless `isEstimated`.
    ///
    /// It is not optional, because a comparison with `nil` copies it, with all its arrays. Its own first fields belong
    /// to what each message needs.
    private var estimator = PathEstimator(Self.estimation)
    /// The test whether the path carries more.
    package private(set) var probe = PathProbe() {
        didSet { isTested = probe.isRunning }
    }
    /// Browsers count whole messages, and those of a camera at its full rate are large.
    private static let estimation = {
        var settings = PathEstimator.Settings()
        settings.slowMargin = 1.5
        // With that margin, the rate of a thin path is known.
        settings.thinRate = 0
        return settings
    }()
    /// The round trip of a peer that counts whole messages has the time in it that a message takes, so it does not show
    /// how long the way is: neither gate nor law has rules for long ones here.
    private static let admission = {
        var settings = SendGate.Settings()
        settings.agedClosing = .infinity
        return settings
    }()
    private let settings: Settings
    private var controller: RateController? {
        didSet { isLimited = controller != nil }
    }
    private let gate = SendGate(Self.admission)
    private var spacing = FrameSpacing()
    private var firstDelivery = FirstDelivery() {
        didSet { isBeginning = firstDelivery.isOpen }
    }
    /// The bytes that were handed over before the estimate began.
    private var origin: UInt64 = 0
    /// When the last of them was sent, in microseconds.
    private var unagedTime: Int64 = 0
    /// When the path last was the limit.
    private var lastLimited: Int64 = 0
    private var probeInterval: Int64 = 0
    /// Whether the latest acknowledgement ended an outage: the path had delivered nothing of what was on its way.
    package private(set) var endsOutage = false
    /// When TCP last held back what is sent; `nil` once the queue of that time is gone.
    private var lastHold: Int64?
    /// The most that is used of the rate until then, in bits per second.
    private var heldRate: Double?
    /// Whether the next frame, if it is sent now, begins although the peer may say nothing of the end of what was written
    /// before until it gets more.
    private var wouldFollowUnsaid = false
    /// When a frame began like that, since the last acknowledgement: nothing before was waited for.
    private var unsaidUntil: Int64?
    /// The end of the last media that were written, of what the estimate counts.
    private var mediaEnd: Int64 = 0
    /// When a queue last stood.
    private var lastQueueing: Int64 = 0
    /// The rate of what was sent when no queue stood last, in bits per second.
    private var rateBeforeQueue = 0.0

    /// Acknowledgements that could not be true.
    package private(set) var disregarded = 0

    /// The cache lines at the beginning of a path that each message needs, up to the first fields of `estimator`.
    static let hotLines = 4

    /// Where the estimate notes the next message, without touching that memory; for the processor's prefetching.
    @inline(__always)
    mutating func addressOfWrites() -> UnsafeRawPointer? { unsafe estimator.addressOfWrites() }

    /// Creates the path of a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// The rate that the path carries, in bits per second; `nil` while no limit is known.
    package var rate: Double? { controller.map { min($0.rate, heldRate ?? .infinity) } }

    /// The bytes that are on their way: written and not acknowledged yet.
    package var unacknowledgedBytes: Int64 { estimator.unacknowledgedBytes }

    /// The shortest round trip; zero before one is known.
    package var shortestRoundTrip: Duration { .microseconds(estimator.shortestRoundTrip ?? 0) }

    /// Bytes that the peer has acknowledged since the estimate began.
    package var acknowledgedBytes: Int64 { estimator.acknowledgedBytes }

    // MARK: Events

    /// Notes that TCP holds back what is sent, to measure the round trip: the queue does not show what the path
    /// carries.
    package mutating func noteHold(at now: MonotonicInstant) {
        lastHold = now.microseconds
        if heldRate == nil { heldRate = controller.map { settings.heldPart * $0.rate } }
    }

    /// Notes that the socket was handed a message of `bytes` bytes.
    package mutating func wrote(_ bytes: Int, _ message: Message, at now: MonotonicInstant) {
        if !isEstimated, message == .media, !isGivenUp { begin(at: now) }
        written &+= UInt64(bytes)
        guard isEstimated else { return }
        if message == .acknowledgement {
            unaged += bytes
            unagedTime = now.microseconds
            return
        }
        let time = now.microseconds
        if message == .media, recoveryWindow != nil { recoveryWindow = nil }
        if message == .media, let probe = nextProbe, time >= probe {
            probeInterval *= 2
            nextProbe = time + probeInterval
        }
        estimator.wroteSilently(unaged)
        estimator.wrote(bytes, at: time)
        unaged = 0
        if message == .media {
            mediaEnd = estimator.writtenBytes
            if wouldFollowUnsaid { (wouldFollowUnsaid, unsaidUntil) = (false, unsaidUntil ?? time) }
        }
        if isTested, message == .media {
            probe.wrote(end: written, isOfTestedTrack: servesTestedTrack, endsFrame: endsFrame, at: time)
        }
        sent.add(bytes, at: time)
        if isAcknowledged { thinning.wrote(at: time, silence: time - lastAcknowledgement, settings) }
        writesSinceAcknowledgement += 1
        let most = isAcknowledged ? settings.mostWrites : settings.mostFirstWrites
        if writesSinceAcknowledgement > most, remembersTooLong(at: time) { forget() }
    }

    /// Notes, when a frame is sent, that its track has published `frames` since the one before.
    package mutating func noteFrames(_ frames: Int, at now: MonotonicInstant) {
        spacing.add(frames, at: now.microseconds)
        guard isLimited else { return }
        let interval = spacing.interval
        controller?.setFrameInterval(interval)
    }

    /// Takes an acknowledgement, which may have any content.
    package mutating func acknowledged(_ acknowledgement: MediaAcknowledgement, at now: MonotonicInstant) {
        endsOutage = false
        let bytes = acknowledgement.cumulativeBytes
        guard bytes <= written else {
            disregarded += 1
            return
        }
        guard isEstimated else {
            isGivenUp = false
            return begin(at: now)
        }
        let time = now.microseconds
        guard bytes >= origin else {
            // On a long way, the acknowledgements of what was written since are still to come.
            (writesSinceAcknowledgement, lastAcknowledgement) = (0, time)
            return
        }
        let relative = bytes - origin
        if relative > UInt64(clamping: estimator.writtenBytes) {
            estimator.wrote(unaged, at: unagedTime)
            unaged = 0
        }
        let before = estimator.disregarded
        let oldest = estimator.oldestUnacknowledgedWrite
        let silence = oldest.map { time - max($0, lastAcknowledgement, unsaidUntil ?? $0) } ?? 0
        var told = acknowledgement
        told.cumulativeBytes = relative
        let outstanding = estimator.unacknowledgedBytes
        let isThinned =
            unsaidUntil.map { time - $0 <= roundTrip + settings.outage } ?? false
            || thinning.isAnswerAfterPause(at: time, longestAnswer: longestAnswer)
        let sample = estimator.acknowledged(told, isThinned: isThinned, at: time)
        guard estimator.disregarded == before else {
            disregarded += 1
            if estimator.unacknowledgedBytes < outstanding { heard(at: time) }
            return
        }
        endsOutage = isAcknowledged && !isThinned && silence > roundTrip + settings.outage
        (wouldFollowUnsaid, unsaidUntil) = (false, nil)
        if endsOutage { recoveryWindow = Int64(settings.recoveryPart * Double(outstanding)) }
        heard(at: time)
        thinning.acknowledged()
        guard let sample else { return }
        probe.acknowledged(bytes: bytes, written: sample.written, queue: sample.queue, at: time)
        let waited = oldest.map { time - $0 } ?? 0
        let wasLate = waited > roundTrip + sample.queue + settings.hearing
        thinning.note(queue: sample.queue, wasLate: wasLate, at: time, settings)
        learn(from: sample, at: time)
    }

    /// Notes that the peer has acknowledged something.
    private mutating func heard(at time: Int64) {
        isAcknowledged = true
        lastAcknowledgement = time
        writesSinceAcknowledgement = 0
        nextProbe = nil
    }

    /// Begins the estimate: what is written from now on counts.
    private mutating func begin(at now: MonotonicInstant) {
        estimator = PathEstimator(Self.estimation)
        isEstimated = true
        origin = written
        unaged = 0
        mediaEnd = 0
        (wouldFollowUnsaid, unsaidUntil) = (false, nil)
        thinning.forget()
        writesSinceAcknowledgement = 0
        lastAcknowledgement = now.microseconds
        nextProbe = nil
        sent = SentRate()
        firstDelivery = FirstDelivery()
    }

    /// Whether more than a few writes wait for an acknowledgement that will not come.
    private func remembersTooLong(at time: Int64) -> Bool {
        isAcknowledged || writesSinceAcknowledgement > settings.mostWrites
            || time - lastAcknowledgement > settings.firstPatience
    }

    @inline(never)  // It is rare, and would make `wrote` long.
    private mutating func forget() {
        estimator = PathEstimator(Self.estimation)
        isEstimated = false
        controller = nil
        isAcknowledged = false
        isGivenUp = true
    }

    private mutating func learn(from sample: PathEstimator.Sample, at now: Int64) {
        // A few bytes that come late alone, as a still picture's to a radio that sleeps, show no queue.
        let isQueueing = sample.standingQueue > settings.limitingQueue && sample.loneRate == nil
        if let hold = lastHold {
            guard now - hold > settings.holdTime else { return }
            if !isQueueing || now - hold > settings.holdQueueTime { (lastHold, heldRate) = (nil, nil) }
        }
        if isQueueing { lastQueueing = now } else { rateBeforeQueue = sent.bitsPerSecond(at: now) }
        if controller == nil {
            guard isQueueing, !sample.isAfterStall else { return }
            beginLaw(at: max(sample.activeRate, settings.lowestRate), now)
        }
        let roundTrip = estimator.shortestRoundTrip ?? 0
        // The law allows for the time that a frame itself takes, which differs with the time between frames.
        var told = sample
        told.standingQueue = sample.standingDelay
        if let train = estimator.train, !sample.isAfterStall { controller?.note(train, at: now) }
        controller?.update(told, roundTrip: roundTrip, at: now)
        estimator.holdReference(controller?.isCompeting ?? false)
        if isQueueing || sent.bitsPerSecond(at: now) > 0.7 * (controller?.rate ?? 0) { lastLimited = now }
        if now - lastLimited > settings.limitMemory {
            controller = nil
            estimator.holdReference(false)
        }
    }

    /// Lets the rate law give the rate from now on, beginning at `rate`.
    ///
    /// Others that fill the queue, if there are any, have taken a part of what was sent before.
    private mutating func beginLaw(at rate: Double, _ now: Int64) {
        var law = RateController.Settings()
        law.lowestRate = settings.lowestRate
        law.highestRate = settings.highestRate
        law.startRate = rate
        law.additiveIncrease = settings.additiveIncrease
        law.patience = settings.lawPatience
        law.pacedRoundTrip = .infinity
        // Frames of the old rate do not fit, and are left out: what is delivered breaks down at once. A path that has
        // become this thin looks the same, but there the queue grows, and the attempt ends.
        law.competing.collapsed = 0.2
        law.competing.deliveryMemory = 40_000_000
        var controller = RateController(law)
        controller.setFrameInterval(spacing.interval)
        controller.note(delivered: rateBeforeQueue, at: now)
        self.controller = controller
    }

    /// Notes that the path is too slow for what is sent, although no queue shows it.
    ///
    /// A peer that acknowledges whole messages knows of none while the socket takes one message after the other.
    package mutating func noteTooSlow(at now: MonotonicInstant) {
        guard isAcknowledged, !isLimited, !endsOutage else { return }
        lastLimited = now.microseconds
        beginLaw(at: max(estimator.deliveryRate ?? 0, settings.lowestRate), now.microseconds)
    }

    /// Whether `noteFirstDelivery` is to be called after an acknowledgement.
    package var isFirstDeliveryOpen: Bool { isEstimated && isBeginning && !isLimited }

    /// Notes, after an acknowledgement, whether more waits for the path than its socket takes.
    ///
    /// If the path has been fully used for long enough since the connection opened, its limit is known then.
    package mutating func noteFirstDelivery(isFull: Bool, at now: MonotonicInstant) {
        let time = now.microseconds
        guard lastHold == nil, !endsOutage,
            let rate = firstDelivery.acknowledged(estimator.acknowledgedBytes, isFull: isFull, at: time)
        else { return }
        lastLimited = time
        beginLaw(at: max(rate, settings.lowestRate), time)
    }

    // MARK: Decisions

    /// Whether a frame may begin now; the rest of a frame that has begun always may follow.
    package mutating func mayBegin(at now: MonotonicInstant) -> Bool {
        wouldFollowUnsaid = false
        guard isAcknowledged else { return true }
        if thinning.explainsAll(at: now.microseconds) {
            return !isLimited || thinnedOpening(at: now) <= now.microseconds
        }
        return mayBeginDespiteDoubt(at: now)
    }

    /// When the gate opens for a frame if the peer acknowledges nothing before.
    ///
    /// It is `nil` if only an acknowledgement opens it, or if it is open: then the frame waits for something else.
    package mutating func opening(at now: MonotonicInstant) -> MonotonicInstant? {
        let explainsAll = thinning.explainsAll(at: now.microseconds)
        guard explainsAll ? isLimited : mayLeaveUnsaid(at: now.microseconds) else { return nil }
        let opening = explainsAll ? thinnedOpening(at: now) : unsaidOpening
        return opening > now.microseconds ? MonotonicInstant(microseconds: opening) : nil
    }

    /// Whether the peer may say nothing, before it gets more, of what was written last.
    ///
    /// It acknowledges the end of a frame, and before that every 10 ms what arrives: of the last bytes of an unfinished
    /// frame it may say nothing, up to 64 kB, if TCP had to repeat a packet before them. A peer that thinned when it
    /// spoke last may have seen nothing of the delay that we saw, and go on thinning.
    private func mayLeaveUnsaid(at time: Int64) -> Bool {
        !endsFrame || thinning.mayGoOn(at: time, longestAnswer: longestAnswer)
    }

    /// When a frame may begin behind what the peer may say nothing of, in microseconds: a path without an outage has
    /// carried that by then.
    private var unsaidOpening: Int64 {
        let rate = max(controller?.rate ?? estimator.deliveryRate ?? 0, settings.lowestRate)
        let carrying = Double(estimator.unacknowledgedBytes) * 8e6 / rate
        return thinning.lastWrite + roundTrip + min(Int64(carrying), settings.longestUnsaid)
    }

    /// When a frame may begin on a path with a limit whose peer may be thinning its acknowledgements, in microseconds.
    ///
    /// The peer may say nothing until it gets the next frame, so that frame must not wait for an acknowledgement. The
    /// path is taken to carry its rate meanwhile. If it does not, the peer sees the delay, and acknowledges everything.
    @inline(never)  // Inlined, it would copy the estimate and the law for each packet, also where no limit is known.
    private mutating func thinnedOpening(at now: MonotonicInstant) -> Int64 {
        guard let controller, !isOpenAnyway(at: now.microseconds) else { return .min }
        return gate.opening(estimator, controller, frameInterval: spacing.interval)
    }

    /// Whether a frame may begin whatever the gate says.
    private mutating func isOpenAnyway(at time: Int64) -> Bool {
        if let recoveryWindow, estimator.unacknowledgedBytes <= recoveryWindow { return true }
        // The socket takes little more than TCP lets pass.
        if let lastHold, time - lastHold <= settings.holdTime { return true }
        return false
    }

    /// `mayBegin` for a path on which something is delayed or missing.
    private mutating func mayBeginDespiteDoubt(at now: MonotonicInstant) -> Bool {
        let time = now.microseconds
        if isOpenAnyway(at: time) { return true }
        if mayBeUnsaid(at: time) {
            wouldFollowUnsaid = true
            return true
        }
        if let overdue = thinning.overdueTime(at: time) { return overdue <= longestAnswer }
        if let controller {
            return gate.isOpen(estimator, controller, queued: 0, frameInterval: spacing.interval, at: time)
        }
        guard estimator.unacknowledgedBytes > SendGate.Settings().silentBytes,
            let oldest = estimator.oldestUnacknowledgedWrite
        else { return true }
        return time - oldest <= longestAnswer
    }

    /// Whether the peer, without an outage, has everything that is on its way, and may say so with the next frame only.
    private func mayBeUnsaid(at time: Int64) -> Bool {
        if mayLeaveUnsaid(at: time) { return time >= unsaidOpening }
        // Texts right behind a message that was acknowledged.
        guard estimator.acknowledgedBytes >= mediaEnd, let oldest = estimator.oldestUnacknowledgedWrite else {
            return false
        }
        return time - oldest > longestAnswer
    }

    /// The longest time from a message to its acknowledgement as long as nothing is missing, in microseconds.
    private var longestAnswer: Int64 { roundTrip + estimator.unsaidTime + settings.longestSilence }

    /// The shortest round trip, in microseconds, or a usual one as long as none is known.
    private var roundTrip: Int64 { estimator.shortestRoundTrip ?? 50_000 }

    /// As `mayBegin`, when a frame waits: now and then one passes to a peer that has stopped to acknowledge.
    package mutating func admitsFrame(at now: MonotonicInstant) -> Bool {
        if isTested, probe.holds(at: now.microseconds) { return false }
        return mayBegin(at: now) || admitsProbe(at: now)
    }

    /// Notes that a frame waits, because it was not admitted.
    package mutating func frameWaits(at now: MonotonicInstant) { probe.frameWaits(at: now.microseconds) }

    private mutating func admitsProbe(at now: MonotonicInstant) -> Bool {
        let time = now.microseconds
        guard let probe = nextProbe else {
            probeInterval = settings.firstProbe
            nextProbe = time + probeInterval
            return false
        }
        // The probe lasts until a frame has begun (`wrote`), which may take a keyframe.
        return time >= probe
    }

    /// How long the path takes to carry `bytes` after what is on its way already; zero while no limit is known.
    package func drainTime(of bytes: Int) -> Duration {
        guard let rate = controller?.rate else { return .zero }
        // What the path carries in a round trip, and what the peer has not acknowledged yet because it thins, does not
        // wait. Nor does what stands in the queue of others.
        let passing = Double((estimator.shortestRoundTrip ?? 0) + estimator.thinning)
        let carried = rate / 8e6 * (passing + (controller?.competingQueue ?? 0))
        let waiting = Double(bytes) + max(0, Double(unacknowledgedBytes) - carried)
        return .microseconds(Int64(min(waiting * 8e6 / rate, 1e9)))
    }

    /// Whether the peer has acknowledged something in the last 0.1 s.
    package mutating func isHeard(at now: MonotonicInstant) -> Bool {
        now.microseconds - lastAcknowledgement <= settings.hearing
    }

    /// Whether nothing has arrived for a while of what is on its way, so that what is sent now does not arrive either.
    package mutating func isSilent(at now: MonotonicInstant) -> Bool {
        guard isAcknowledged, !thinning.explainsAll(at: now.microseconds),
            let oldest = estimator.oldestUnacknowledgedWrite,
            !mayLeaveUnsaid(at: now.microseconds) || now.microseconds < unsaidOpening
        else { return false }
        let silence = now.microseconds - max(oldest, lastAcknowledgement)
        guard silence > roundTrip + settings.longestSilence else { return false }
        // A peer may say nothing of texts until something follows them, and so something must.
        return estimator.acknowledgedBytes < mediaEnd || silence <= settings.longestTextSilence
    }

    // MARK: Testing

    /// Whether no queue has stood for two seconds, so that the path may carry more.
    package func hasRoom(at now: MonotonicInstant) -> Bool {
        now.microseconds - lastQueueing >= settings.roomPatience
    }

    /// Begins to test whether the path carries `need` bits per second.
    package mutating func beginProbe(need: Double, at now: MonotonicInstant) {
        probe.begin(need: need, at: now.microseconds)
    }

    /// What the test has shown so far; one that takes too long ends.
    package mutating func probeFinding(at now: MonotonicInstant) -> PathProbe.Finding {
        probe.checkTime(at: now.microseconds)
        return probe.finding
    }

    /// Makes what the test has shown the path's limit, if that is higher than the known one.
    package mutating func believeProbe(at now: MonotonicInstant) {
        let shown = settings.shownPart * probe.shownRate
        guard let controller, shown > controller.rate else { return }
        beginLaw(at: min(shown, settings.highestRate), now.microseconds)
    }

    /// Ends the test.
    package mutating func endProbe() { probe.cancel() }
}
