import MediaCore
package import RoomProtocol

/// Estimates a connection's delay, queue and rate from what was written and what the receiver acknowledged.
///
/// A pure value: times and bytes come in, estimates go out. The receiver's clock may have any origin, because only
/// differences of its times are used. Acknowledgements that go backwards, or beyond what was written, are disregarded
/// and counted.
package struct PathEstimator: Hashable, Sendable {
    private struct Write: Hashable, Sendable {
        /// Bytes written up to the end of this write.
        var end: Int64
        var time: Int64
        /// The bytes of this write.
        var length: Int32
        /// Whether it was a single message.
        var isMessage = true

        /// Bytes written before this write.
        var start: Int64 { end - Int64(length) }
    }

    /// Where the bytes of a frame were acknowledged for the first time.
    private struct TrainBeginning: Hashable, Sendable {
        var time: Int64
        var bytes: Int64
    }

    /// More writes than this are not kept apart; a receiver that acknowledges nothing would make them grow for ever.
    private static let mostWrites = 8192
    /// After this many acknowledgements in a row whose times cannot be true, the receiver's clock is believed anew.
    ///
    /// Until then their bytes count, so that more is sent and acknowledged, but nothing is learned of the delay.
    private static let backwardLimit = 20
    /// Receivers' clocks do not run ahead by more than this from one acknowledgement to the next, in microseconds.
    private static let clockLead: Int64 = 60_000_000
    /// By how much a queue may seem to be longer than the round trip that it is a part of.
    ///
    /// Clocks drift by a few milliseconds while a base counts. What is shorter than a second does no harm for long.
    private static let clockTolerance: Int64 = 1_000_000
    /// The bytes that may have come at the time of a train's first byte: receivers that see only whole messages have
    /// the first one then.
    private static let firstBytes = Int64(WireFormat.maximumBinaryMessage.bytes)

    // The fields that each write needs come first, so that they share a cache line.

    private var writes: [Write] = []
    private var firstWrite = 0
    /// Bytes written since the connection opened.
    package private(set) var writtenBytes: Int64 = 0
    /// Bytes of these that the receiver has.
    package private(set) var acknowledgedBytes: Int64 = 0
    /// Bytes before this are not waited for, because the receiver acknowledges them only with later ones.
    private var excused: Int64 = 0
    /// The time of the newest write: the write itself is often in none of the processor's caches.
    private var newestTime = Int64.min
    private let settings: Settings
    /// The delays of whole writes.
    private var baseDelay: SlidingExtremum
    /// The delays of the beginnings of writes: of several messages that were written at once, or of a message whose
    /// receiver counts its parts.
    private var baseHeadDelay: SlidingExtremum
    /// The start of the write whose beginning was taken in last.
    private var lastBeginning: Int64 = -1
    private var reference: SlidingExtremum
    /// The reference that is kept while others fill the queue; `nil` while they do not.
    private var heldReference: Double?
    private var roundTrips: SlidingExtremum
    private var standing: SlidingExtremum
    private var standingWithWrite: SlidingExtremum
    private var wallRate: DeliveryRate
    private var activeRate: DeliveryRate
    private var activeTime: Int64 = 0
    private var heldDelivery: HeldDelivery
    private var thinness: PathThinness
    private var lastReceiveTime: Int64?
    private var lastAlias: UInt32 = 0
    private var lastFrame: UInt32?
    private var trainBeginning: TrainBeginning?
    private var backward = 0
    private var stalledThrough: Int64 = 0
    /// The microseconds that each byte of the last acknowledgement took; 0 if the link had not been busy all the time.
    private var timePerByte = 0.0
    /// Whether the receiver has acknowledged a part of a message.
    private var countsParts = false
    /// How late acknowledgements were lately.
    private var lateAcknowledgements = AcknowledgementLateness()
    /// The standing queue of the last sample, in microseconds.
    private var lastQueue: Int64 = 0

    /// The large frame that ended with the last acknowledgement; `nil` without one.
    package private(set) var train: Train?
    /// When the last acknowledgement came, in microseconds of the local clock.
    package private(set) var lastAcknowledgement: Int64?
    /// The longest silence that a receiver which thins its acknowledgements lets come next; 0 if it does not thin them.
    package private(set) var thinning: Int64 = 0
    /// Acknowledgements that could not be true.
    package private(set) var disregarded = 0

    /// An estimator of a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        baseDelay = .minimum(over: settings.baseWindow)
        baseHeadDelay = .minimum(over: settings.baseWindow)
        reference = .minimum(over: settings.referenceWindow)
        heldReference = nil
        roundTrips = .minimum(over: settings.roundTripWindow)
        standing = .minimum(over: settings.standingWindow)
        standingWithWrite = .minimum(over: settings.standingWindow)
        wallRate = DeliveryRate(window: settings.rateWindow)
        activeRate = DeliveryRate(window: settings.rateWindow)
        thinness = PathThinness(settings)
        heldDelivery = HeldDelivery(longestGap: settings.longestGap)
    }

    /// The shortest time from a write to its acknowledgement, in microseconds; `nil` before the first.
    package var shortestRoundTrip: Int64? { roundTrips.value.map { Int64($0) } }

    /// How long the receiver may have had bytes without our knowing it, beyond the round trip; in microseconds.
    ///
    /// It thins its acknowledgements, or they come late. The standing queue is subtracted: the receive times show it
    /// all the same, and bytes that wait in it have not come.
    package var unsaidTime: Int64 {
        max(thinning, lateAcknowledgements.value - lastQueue)
    }

    /// The rate at which bytes have arrived lately, in bits per second; `nil` if that is unknown.
    package var deliveryRate: Double? { wallRate.bitsPerSecond }

    /// Bytes that are on their way.
    package var unacknowledgedBytes: Int64 { writtenBytes - max(acknowledgedBytes, excused) }

    /// When the oldest byte that is on its way was written; `nil` if none is.
    package var oldestUnacknowledgedWrite: Int64? {
        firstWrite < writes.count ? writes[firstWrite].time : nil
    }

    /// Where the next write will be noted, without touching that memory; for the processor's prefetching.
    @inline(__always)
    package mutating func addressOfWrites() -> UnsafeRawPointer? {
        unsafe withUnsafeMutableBytes(of: &writes) { unsafe $0.load(as: UnsafeRawPointer?.self) }
    }

    /// Notes that the socket took `bytes` more at `now`.
    package mutating func wrote(_ bytes: Int, at now: Int64) {
        guard bytes > 0 else { return }
        writtenBytes += Int64(bytes)
        if newestTime == now, let last = writes.last, firstWrite < writes.count, last.time == now {
            writes[writes.count - 1] = Write(
                end: writtenBytes,
                time: now,
                length: Int32(clamping: writtenBytes - last.start),
                isMessage: false
            )
        } else {
            if writes.count - firstWrite >= Self.mostWrites { mergeWrites() }
            writes.append(Write(end: writtenBytes, time: now, length: Int32(clamping: bytes)))
            newestTime = now
        }
    }

    /// Notes that the socket took `bytes` more that call for no acknowledgement by themselves: acknowledgements of
    /// ours, and text before the first media.
    package mutating func wroteSilently(_ bytes: Int) {
        guard bytes > 0 else { return }
        writtenBytes += Int64(bytes)
        if firstWrite == writes.count { excused = writtenBytes }
    }

    /// Whether the receiver has been silent for so long, with bytes on their way, that the kernel's count of packets
    /// would tell something at `now`.
    package func isSilent(at now: Int64) -> Bool {
        guard settings.heldSilence > 0, let lastAcknowledgement, unacknowledgedBytes > 0 else { return false }
        return now - max(lastAcknowledgement, oldestUnacknowledgedWrite ?? now) > settings.heldSilence
    }

    /// Notes how many packets the other end has had in all by `now`, also behind a lost one, as the kernel counts them.
    ///
    /// The count matters in a silence alone (`isSilent`), and may wrap.
    package mutating func delivered(packets: UInt32, at now: Int64) {
        heldDelivery.delivered(packets: packets, since: oldestUnacknowledgedWrite ?? now, at: now)
    }

    /// Keeps the delay of the path as it is known, however long nothing is as fast, because others fill the queue.
    package mutating func holdReference(_ isHeld: Bool) {
        guard isHeld != (heldReference != nil) else { return }
        heldReference = isHeld ? reference.value : nil
    }

    /// Takes an acknowledgement in, which may have any content.
    ///
    /// The silence before it is no stall if it `isThinned`: a receiver may acknowledge a frame with the next one only.
    ///
    /// - Returns: What it told; `nil` while there is too little to tell, for one that acknowledges nothing new, and for
    ///   one that cannot be true.
    package mutating func acknowledged(
        _ acknowledgement: MediaAcknowledgement,
        isThinned: Bool = false,
        at now: Int64
    ) -> Sample? {
        train = nil
        guard let bytes = Int64(exactly: acknowledgement.cumulativeBytes), bytes <= writtenBytes,
            bytes >= acknowledgedBytes
        else {
            disregarded += 1
            return nil
        }
        guard let received = Int64(exactly: acknowledgement.receiveTime.microseconds), isPossible(received, at: now)
        else {
            disregarded += 1
            noteArrival(through: bytes, at: now)
            return nil
        }
        train = endedTrain(acknowledgement, bytes: bytes, received: received)
        let oldest = oldestUnacknowledgedWrite
        // Silence in which nothing was on its way is no stall.
        let waited = oldest.map { now - $0 - (shortestRoundTrip ?? 0) } ?? 0
        let silence = received - (lastReceiveTime ?? received)
        let arrived = bytes - acknowledgedBytes
        let slowness = slowness(of: arrived, silence: silence, waited: waited)
        let loneRate = loneRate(of: arrived, writtenAt: oldest, silence: silence)
        if !isThinned, silence > max(settings.stall, thinning + settings.longestGap), waited > settings.stall,
            bytes > acknowledgedBytes
        {
            // A link that was as slow before is not silent, and was not silent before either.
            stalledThrough = silence > slowness ? writtenBytes : 0
        }
        lastAcknowledgement = now
        let newest = forgetWrites(through: bytes)
        // What was written silently meanwhile is acknowledged with the next write.
        if firstWrite == writes.count { excused = writtenBytes }
        if firstWrite < writes.count, writes[firstWrite].isMessage, writes[firstWrite].start < bytes {
            countsParts = true
        }
        let transmission = waited >= silence ? transmission(of: arrived) : 0
        acknowledgedBytes = bytes
        wallRate.add(bytes: bytes, at: received)
        let span = (newest ?? 0) - (newest == nil ? 0 : oldest ?? 0)
        let heldTime = heldDelivery.time > 0 ? heldDelivery.time + settings.longestGap : 0
        heldDelivery.acknowledged(at: now)
        advance(to: received, bytes, longestGap: max(slowness, transmission, heldTime, thinning > 0 ? span : 0))
        let beginning = beginning(through: bytes, received: received, at: now)
        guard let newest else { return nil }
        let delay = Double(received - newest)
        // A queue on the way there is a part of the round trip. A longer one is a clock that stood still, as in suspend.
        if let base = baseDelay.value(at: now), delay - base > Double(now - newest + Self.clockTolerance) {
            forgetClock()
            lastReceiveTime = received
        }
        roundTrips.add(Double(now - newest), at: now)
        let base = baseDelay.add(delay, at: now)
        let fastest = min(base, baseHeadDelay.value(at: now) ?? base)
        var (queue, written, beyond) = (Int64(delay - base), newest, Int64(delay - fastest))
        // If these bytes found hardly any queue, the write before them came long ago, and the receive time says nothing
        // of it. If they found one, that write came just before them.
        if let beginning {
            let found = Int64(max(0, beginning.delay - fastest - beginning.part * (base - fastest)))
            if found <= settings.headQueue { (queue, written, beyond) = (found, beginning.written, found) }
        }
        let smallest = reference.add(delay, at: now)
        noteLateness(roundTrip: now - newest, queue: delay - (heldReference == nil ? base : smallest), at: now)
        let shortest = min(smallest, heldReference ?? delay)
        if heldReference != nil { heldReference = shortest }
        let isAfterStall = bytes <= stalledThrough
        // Delays of what waited for the end of a stall would stay in the window beyond it.
        let standingQueue = isAfterStall ? 0 : standing.add(Double(queue), at: now)
        let standingDelay = isAfterStall ? 0 : standingWithWrite.add(Double(beyond), at: now)
        lastQueue = isAfterStall ? queue : Int64(standingQueue)
        noteThinning(span: span, queue: queue)
        // A burst after a stall tells of the link alone.
        let wallRate = wallRate.bitsPerSecond ?? (isAfterStall ? nil : wallRate.bitsPerSecondBeyondWindow)
        guard let wall = wallRate, let active = activeRate.bitsPerSecond else { return nil }
        return Sample(
            queue: queue,
            written: written,
            standingQueue: lastQueue,
            standingDelay: isAfterStall ? queue : Int64(standingDelay),
            bytes: bytes,
            baseRise: Int64(base - shortest),
            deliveryRate: wall,
            activeRate: active,
            isAfterStall: isAfterStall,
            isThin: thinness.isThin,
            loneRate: loneRate,
            // What delays acknowledgements alone is no gap.
            gap: gap(of: arrived, after: min(silence, waited, Int64(delay - smallest)))
        )
    }

    /// Notes that the receiver has `bytes`, at a time of its own that says nothing.
    private mutating func noteArrival(through bytes: Int64, at now: Int64) {
        guard bytes > acknowledgedBytes else { return }
        lastAcknowledgement = now
        _ = forgetWrites(through: bytes)
        if firstWrite == writes.count { excused = writtenBytes }
        acknowledgedBytes = bytes
    }

    private func gap(of bytes: Int64, after time: Int64) -> Gap? {
        guard bytes > 0, time > settings.shortestGap else { return nil }
        return Gap(time: time, bytes: bytes, isLong: time > settings.slowGap)
    }

    /// Bits per second over the silence before, if few bytes came alone: what was before them had been acknowledged.
    private func loneRate(of bytes: Int64, writtenAt time: Int64?, silence: Int64) -> Double? {
        guard bytes > 0, bytes <= settings.loneBytes, silence >= settings.standingWindow, let time,
            let lastAcknowledgement, time > lastAcknowledgement
        else { return nil }
        return Double(bytes) * 8e6 / Double(silence)
    }

    /// Whether the receiver can have had its last byte at `received`; believes a clock anew that insists.
    private mutating func isPossible(_ received: Int64, at now: Int64) -> Bool {
        guard let last = lastReceiveTime, let before = lastAcknowledgement else { return true }
        if received >= last, received - last <= now - before + Self.clockLead {
            backward = 0
            return true
        }
        backward += 1
        guard backward > Self.backwardLimit else { return false }
        backward = 0
        forgetClock()
        lastReceiveTime = nil
        return true
    }

    /// Begins anew with everything that compares the receiver's clock with ours, or depends on its steps.
    private mutating func forgetClock() {
        baseDelay = .minimum(over: settings.baseWindow)
        baseHeadDelay = .minimum(over: settings.baseWindow)
        reference = .minimum(over: settings.referenceWindow)
        heldReference = nil
        roundTrips = .minimum(over: settings.roundTripWindow)
        standing = .minimum(over: settings.standingWindow)
        standingWithWrite = .minimum(over: settings.standingWindow)
        wallRate = DeliveryRate(window: settings.rateWindow)
        activeRate = DeliveryRate(window: settings.rateWindow)
        lateAcknowledgements = AcknowledgementLateness()
    }

    /// A write of which the receiver has a beginning.
    private struct Beginning {
        /// The delay of the newest byte, in microseconds, with the difference of the clocks.
        var delay: Double
        /// The part of the write that the receiver has.
        var part: Double
        /// When it was written.
        var written: Int64
    }

    /// The write of which the receiver has a beginning; `nil` if there is none.
    private mutating func beginning(through bytes: Int64, received: Int64, at now: Int64) -> Beginning? {
        guard firstWrite < writes.count, writes[firstWrite].start < bytes else { return nil }
        let write = writes[firstWrite]
        let delay = Double(received - write.time)
        // Only the first part can be the fastest.
        if write.start != lastBeginning {
            lastBeginning = write.start
            baseHeadDelay.add(delay, at: now)
        }
        let part = Double(bytes - write.start) / Double(write.length)
        return Beginning(delay: delay, part: part, written: write.time)
    }

    /// Forgets the writes that end up to `bytes`; returns when the last of them was.
    private mutating func forgetWrites(through bytes: Int64) -> Int64? {
        var newest: Int64?
        while firstWrite < writes.count, writes[firstWrite].end <= bytes {
            newest = writes[firstWrite].time
            firstWrite += 1
        }
        // Early, so that a server with many subscribers writes to the same few cache lines again and again.
        if firstWrite > 32 || firstWrite == writes.count, firstWrite * 2 > writes.count {
            writes.removeFirst(firstWrite)
            firstWrite = 0
        }
        return newest
    }

    private mutating func mergeWrites() {
        var kept = 0
        var index = firstWrite
        while index < writes.count {
            writes[kept] = writes[min(index + 1, writes.count - 1)]
            writes[kept].isMessage = false
            kept += 1
            index += 2
        }
        writes.removeSubrange(kept...)
        firstWrite = 0
    }

    /// How long `bytes` may have taken without a silence of the link, after the ones before.
    ///
    /// A receiver that counts whole messages says nothing while a large one arrives. If the one before took as long for
    /// each of its bytes, the link is slow. If not, it may have been silent.
    private mutating func slowness(of bytes: Int64, silence: Int64, waited: Int64) -> Int64 {
        let slowness = Int64(min(1e9, settings.slowMargin * timePerByte * Double(bytes)))
        timePerByte = bytes > 0 && waited >= silence ? Double(silence) / Double(bytes) : 0
        return countsParts ? 0 : slowness
    }

    /// How long `bytes` may take on a thin path, in microseconds; 0 on any other one.
    private func transmission(of bytes: Int64) -> Int64 {
        guard thinness.isThin, let rate = activeRate.bitsPerSecond else { return 0 }
        return Int64(min(1e9, settings.thinMargin * Double(bytes) * 8e6 / max(1, rate)))
    }

    private mutating func advance(to received: Int64, _ bytes: Int64, longestGap: Int64) {
        // Where acknowledgements are thin, what was written one after another also came one after another.
        let longest = max(settings.longestGap, longestGap)
        let silence = received - (lastReceiveTime ?? received)
        activeTime += min(silence, longest)
        lastReceiveTime = received
        activeRate.add(bytes: bytes, at: activeTime)
        thinness.note(wallRate.bitsPerSecond, after: silence)
    }

    /// Notes how long the writes took that an acknowledgement covers.
    ///
    /// An acknowledgement that covers several frames, although nothing is delayed, comes from a receiver that thins its
    /// acknowledgements; the next silence may be twice as long.
    private mutating func noteThinning(span: Int64, queue: Int64) {
        let isThin = queue <= settings.thinningQueue && span >= settings.shortestThinning
        thinning = isThin ? min(settings.longestThinning, 2 * span + settings.shortestThinning) : 0
    }

    /// Notes how much longer a round trip took than the shortest one and the queue on the way there explain.
    private mutating func noteLateness(roundTrip: Int64, queue: Double, at now: Int64) {
        let lateness = Double(roundTrip) - (roundTrips.value ?? 0) - queue
        let bounded = lateness > Double(settings.usualLateness) ? min(Double(settings.longestLateness), lateness) : 0
        lateAcknowledgements.add(Int64(bounded), half: settings.latenessWindow / 2, at: now)
    }

    /// The frame that ended; `nil` if more than its bytes came since the acknowledgements before.
    private mutating func endedTrain(
        _ acknowledgement: MediaAcknowledgement,
        bytes: Int64,
        received: Int64
    ) -> Train? {
        let previous = lastFrame
        let isSameTrack = acknowledgement.trackAlias == lastAlias
        guard acknowledgement.trackAlias != 0, !isSameTrack || acknowledgement.frameNumber != previous else {
            if trainBeginning == nil { trainBeginning = TrainBeginning(time: received, bytes: bytes) }
            return nil
        }
        lastAlias = acknowledgement.trackAlias
        lastFrame = acknowledgement.frameNumber
        let begun = trainBeginning
        trainBeginning = nil
        guard previous == nil || isSameTrack && acknowledgement.frameNumber == (previous ?? 0) &+ 1,
            let first = (acknowledgement.firstByteTime?.microseconds).flatMap(Int64.init(exactly:)),
            let last = (acknowledgement.lastByteTime?.microseconds).flatMap(Int64.init(exactly:)), last <= received
        else { return nil }
        // An acknowledgement in the middle of the frame is the better mark: the number of bytes is known there.
        let isMarked = (begun?.time ?? -1) >= first
        let start = isMarked ? begun?.time ?? first : first
        let arrived = bytes - (isMarked ? begun?.bytes ?? bytes : max(acknowledgedBytes, excused) + Self.firstBytes)
        guard arrived >= settings.shortestTrain, last > start else { return nil }
        return Train(rate: Double(arrived) * 8e6 / Double(last - start), bytes: arrived)
    }
}
