import MediaCore

/// What an `UplinkController` keeps for one encoding.
struct LaneState: Sendable {
    /// A keyframe that was encoded.
    private struct Keyframe: Sendable {
        var bytes: Double
        /// The number of its pixels.
        var area: Double
    }

    let id: Int
    private(set) var lane: UplinkController.Lane
    private(set) var gate: SendGate
    /// What subscribers want; `nil` while nobody receives the encoding, without limits if its frames are relayed.
    private(set) var bounds: LayerBounds?
    /// Bytes that are encoded and not written yet.
    var queued = 0
    /// The share of the connection's rate for the pictures themselves, in bits per second.
    var share = 0.0
    /// The last share that was not zero, and the connection's rate of which it was a part.
    private var lastShare = (share: 0.0, total: 0.0)
    /// The number of its track's smaller encodings that somebody receives.
    var rank = 0
    /// Whether the rate suffices for this simulcast layer.
    var admission = LayerAdmission()
    /// What its pictures use while they are fine.
    var fineUse = FineUse()
    private var quietUse = QuietUse()
    /// The bits per second that suffice while its pictures stand still, or few or none come; `nil` while it needs its share.
    private(set) var quietNeed: Double?
    /// Whether other tracks have what it does not need of its share.
    var isLending = false
    /// Whether it has a part of the rate, while that is shared.
    var hasPart = false
    /// The share that it would have without lending.
    var ownShare = 0.0
    /// Whether other encodings use the path.
    var isShared = false
    /// Whether the CPU is too slow for this simulcast layer beside the lower ones.
    private(set) var isTooMuchForCPU = false
    /// When the last keyframe was encoded, in microseconds.
    private(set) var lastKeyframe: Int64?
    /// Why the newest picture waits.
    private(set) var waiting: WaitReason?

    private var ladder: DegradationLadder
    /// How many steps down the CPU needs.
    private var cpuSteps = 0
    private var quantizer: UInt8?
    /// The bitrate of frames like the last one; `nil` after a keyframe.
    private var used: Bitrate?
    private var step: DegradationLadder.Step?
    private var target: EncodingTarget?
    private var limitation: QualityLimitation
    private var keyframe: Keyframe?
    /// When the next frame is due at the chosen frame rate.
    private var nextFrame: Int64?
    /// Since when the network has taken no frame although one was there; `nil` if none waits for it.
    private var networkWait: Int64?
    /// Since when it has the highest rate that it may have; `nil` while it has less.
    private var cappedSince: Int64?
    private var arrivals = PictureArrivals()

    /// Larger bitrates than 10 Gbit/s are not told apart, so that no sum or product can overflow.
    private static let highestBitrate = 10_000_000_000
    /// The time between two pictures at 15 a second, in microseconds; see `allowedInterval`.
    private static let longestAllowedInterval: Int64 = 66_667
    /// A frame gets no more bytes than the rate carries in this time, in microseconds, however few there are: it would be
    /// old when it is whole.
    private static let longestFrame: Int64 = 200_000
    /// The same where detail matters more than motion.
    private static let longestDetailedFrame: Int64 = 500_000
    /// The same for a keyframe.
    private static let longestKeyframe = 0.3
    /// Pictures that come this far apart, in microseconds, leave a part of the share: a frame is twice `longestFrame` at most.
    private static let rareInterval: Int64 = 400_000
    /// No frame is left for longer than this, in microseconds, to keep an encoding to its share.
    private static let longestSpacing = 2_000_000.0
    /// After this time without a frame, in microseconds, because the network takes none, the network is the limit.
    private static let longestWait: Int64 = 500_000
    /// After this time at its highest rate, in microseconds, a larger size would have come.
    private static let settledTime: Int64 = 6_000_000
    /// The bytes that a keyframe may always have.
    private static let smallestKeyframe = 4000.0
    /// A keyframe of unknown size is assumed to have the bytes of this many other frames.
    private static let keyframeCost = 4.0

    init(_ lane: UplinkController.Lane, id: Int, gate: SendGate, at now: Int64) {
        self.lane = lane
        self.id = id
        self.gate = gate
        ladder = Self.ladder(of: lane)
        limitation = QualityLimitation()
        // The source that encoded the frames has chosen their quality.
        if lane.isRelayed { limitation.update(.other, at: MonotonicInstant(microseconds: now)) }
    }

    private static func ladder(of lane: UplinkController.Lane) -> DegradationLadder {
        DegradationLadder(
            largest: lane.largestDimensions,
            frameRate: lane.frameRate,
            preference: lane.preference,
            highestBitrate: lane.highestBitrate
        )
    }

    // MARK: Demand

    /// Whether somebody receives the encoding, and the CPU allows it.
    var isWanted: Bool { bounds != nil && !isTooMuchForCPU }

    /// Whether pictures are encoded when the path has room for them.
    var isEncoded: Bool { isWanted && admission.isAdmitted }

    /// The bits per second that the pictures can use.
    var demand: Double {
        guard let bounds else { return 0 }
        let limit = min(lane.highestBitrate, bounds.bitrate ?? lane.highestBitrate)
        return max(lowestRate, Double(min(max(0, limit.bitsPerSecond), Self.highestBitrate)))
    }

    /// Whether it gets all that the subscribers' networks carry, and could use more.
    private var isLimitedBySubscribers: Bool {
        guard let bitrate = bounds?.bitrate, bitrate < lane.highestBitrate else { return false }
        return share >= 0.99 * demand
    }

    /// The bits per second that the encoder gets at least.
    var lowestRate: Double {
        let lowest = min(lane.lowestBitrate ?? Bitrate(bitsPerSecond: 0), lane.highestBitrate)
        return Double(min(max(0, lowest.bitsPerSecond), Self.highestBitrate))
    }

    /// The bits per second that the encoder gets.
    private var rate: Double { max(share, lowestRate) }

    /// The weight in the sharing of a rate that does not suffice.
    var weight: Double {
        switch lane.priority {
        case .low: 1
        case .standard: 3
        case .high: 9
        }
    }

    /// The frame rate at most: that of the camera, and that which subscribers can use.
    private var highestFrameRate: FrameRate { min(lane.frameRate, bounds?.frameRate ?? lane.frameRate) }

    /// The frame rate now.
    var frameRate: FrameRate { step?.frameRate ?? highestFrameRate }

    /// The time from one frame to the next, in microseconds.
    var frameInterval: Int64 { min(10_000_000, max(1000, frameRate.interval.wholeMicroseconds)) }

    /// The time from one picture to the next as they come, in microseconds: more than `frameInterval` if the source is
    /// slower than it was said to be, as cameras are in the dark.
    var pictureInterval: Int64 {
        guard let seen = arrivals.shortestInterval, seen > frameInterval * 3 / 2 else { return frameInterval }
        return max(frameInterval, min(seen, longestFrameTime))
    }

    /// The time from one frame to the next for which the rate law allows, in microseconds.
    ///
    /// A frame of a source that is slower than it was said to be takes longer, which is no queue. It is allowed for
    /// down to 15 a second: with all of it, the pictures of 5 a second would be half a second old.
    var allowedInterval: Int64 { min(pictureInterval, max(frameInterval, Self.longestAllowedInterval)) }

    /// How long the rate may take for a frame at most, in microseconds.
    private var longestFrameTime: Int64 {
        lane.preference == .maintainResolution ? Self.longestDetailedFrame : Self.longestFrame
    }

    /// How long the rate takes for a frame, in microseconds.
    private var frameTime: Int64 { min(longestFrameTime, pictureInterval) }

    /// Whether its frames are larger than its share carries, and others need the rest of the path.
    private var isSpaced: Bool { isShared && share > 0 && rate > share }

    /// The time from one frame that is encoded to the next, in microseconds.
    ///
    /// A lowest bitrate makes frames larger than the share carries. There are fewer of them beside other encodings, which
    /// would be left with what such frames leave.
    private var spacing: Int64 {
        guard isSpaced else { return frameInterval }
        let bits = used.map { Double($0.bitsPerSecond) } ?? rate
        return max(frameInterval, Int64(min(Self.longestSpacing, Double(frameTime) * bits / share)))
    }

    /// The bytes of a frame at the present rate.
    var frame: Double { rate / 8e6 * Double(frameTime) }

    /// The size of the pictures; `nil` before the first frame.
    var dimensions: Dimensions? { step?.dimensions }

    /// The bytes that the next keyframe is expected to have: no more than it may have.
    private func expectedKeyframe(_ keyframeTime: Double) -> Double {
        let most = largestFrame(room: 0, keyframeTime: keyframeTime)
        guard let keyframe, let target else { return min(Self.keyframeCost * frame, most) }
        return min(keyframe.bytes * Double(target.dimensions.area) / keyframe.area, most)
    }

    // MARK: Changes

    /// Notes that a picture came.
    mutating func pictureCame(at now: Int64) { arrivals.note(now) }

    mutating func setBounds(_ bounds: LayerBounds?) {
        let isBegun = bounds != nil && self.bounds == nil
        if bounds == nil {
            admission.reset()
            quietUse = QuietUse()
        }
        if isBegun || bounds == nil {
            networkWait = nil
            arrivals = PictureArrivals()
        }
        // Bounds of the bitrate change several times a second, and say nothing of the source.
        if isBegun || bounds?.frameRate != self.bounds?.frameRate { nextFrame = nil }
        self.bounds = lane.isRelayed ? bounds.map { _ in LayerBounds() } : bounds
        waiting = nil
        cappedSince = nil
    }

    /// Notes that the newest picture waits, and why.
    mutating func waits(for reason: WaitReason, at now: Int64) {
        waiting = reason
        switch reason {
        case .network:
            networkWait = networkWait ?? now
            quietUse.waits(at: now)
        // The path was not asked.
        case .allocation, .cpu: networkWait = nil
        case .frameRate, .keyframeInterval: break
        }
        guard reason == .network, !lane.isRelayed, isStarved(at: now) else { return }
        limitation.update(.bandwidth, at: MonotonicInstant(microseconds: now))
    }

    /// Whether the network has taken no frame for long, at the frame rate that was chosen.
    private func isStarved(at now: Int64) -> Bool {
        networkWait.map { now - $0 > max(Self.longestWait, 4 * frameInterval) } ?? false
    }

    /// Goes on with other limits, because the captured pictures have another size, or the application chose them.
    ///
    /// What is known of the path, the CPU and the keyframes stays, and so do the wishes of the subscribers. If the
    /// pictures have the same size, so does what is known of them, and the frame that is encoded next need not differ.
    mutating func replace(with lane: UplinkController.Lane) {
        let former = self.lane
        self.lane = lane
        guard (lane.largestDimensions, lane.frameRate) != (former.largestDimensions, former.frameRate) else {
            if (lane.highestBitrate, lane.preference) != (former.highestBitrate, former.preference) {
                ladder.setLimits(lane.highestBitrate, lane.preference)
            }
            return cappedSince = nil
        }
        ladder = Self.ladder(of: lane).continuing(ladder)
        // They say nothing of pictures of another size.
        quantizer = nil
        fineUse = FineUse()
        step = nil
        nextFrame = nil
        cappedSince = nil
        arrivals = PictureArrivals()
    }

    /// Takes steps down because of the CPU; the next frame shows it.
    mutating func takeCPUSteps(_ steps: Int) {
        cpuSteps += steps
    }

    /// Takes back one more step down; the next frame shows it.
    mutating func takeBackCPUStep() {
        cpuSteps = max(0, cpuSteps - 1)
    }

    /// Whether the path allows less than the CPU.
    var isLimitedByPath: Bool { ladder.bandwidthRung > ladder.cpuRung }

    /// Steps down for the CPU that the ladder has not taken yet.
    private var pendingCPUSteps: Int { max(0, cpuSteps - ladder.cpuLimits.count) }

    /// How many further steps down are left for the CPU.
    var cpuStepsLeft: Int { max(0, ladder.stepsLeft - pendingCPUSteps) }

    /// The size after so many further steps down.
    func dimensions(after steps: Int) -> Dimensions { ladder.rung(after: pendingCPUSteps + steps).dimensions }

    /// Notes the present share of the connection's rate, which is `total`.
    ///
    /// If that has not become less, what the encoding has less is left to others, unless it can use no more itself: its
    /// viewers' network may have broken down.
    mutating func noteShare(of total: Double) {
        guard share > 0 else { return }
        if share < min(lastShare.share, demand), total >= lastShare.total {
            ladder.leaveRate(rate / max(lastShare.share, lowestRate))
        }
        lastShare = (share, total)
    }

    /// Stops or goes on with the encoding because of the CPU.
    mutating func setTooMuchForCPU(_ isTooMuch: Bool) {
        isTooMuchForCPU = isTooMuch
    }

    /// Notes that no picture is encoded because a resource does not suffice for this simulcast layer.
    mutating func pause(_ reason: QualityLimitation.Reason, at now: Int64) {
        limitation.update(reason, at: MonotonicInstant(microseconds: now))
    }

    /// Until when a picture waits that comes too early for the frame rate that was chosen; `nil` if it does not.
    ///
    /// A newer picture takes its place before that, unless the source has stopped moving.
    mutating func earlyUntil(at now: Int64) -> Int64? {
        guard frameRate < lane.frameRate || isSpaced, let due = nextFrame else { return nil }
        // A captured picture that is nearer to this due time than the next one would be.
        let tolerance = min(10_000_000, max(1000, lane.frameRate.interval.wholeMicroseconds)) / 2
        return now < due - tolerance ? due + tolerance : nil
    }

    mutating func admits(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        isNewFrame: Bool,
        keyframeDue: Bool,
        keyframeTime: Double,
        at now: Int64
    ) -> Bool {
        var bytes = keyframeDue ? expectedKeyframe(keyframeTime) : frame
        // While others fill the path, it is never as empty as a large frame needs it. The target limits the frame to the
        // room that there is.
        if isShared { bytes = min(bytes, gate.spareWindow(path, controller)) }
        if isNewFrame { return gate.admits(path, controller, queued: queued, frame: bytes, at: now) }
        return gate.isOpen(path, controller, queued: queued, frame: bytes, at: now)
    }

    func room(_ path: PathEstimator, _ controller: RateController, queued: Int) -> Double {
        gate.room(path, controller, queued: queued)
    }

    /// The target of a frame that is encoded now.
    ///
    /// `room` are the bytes that the path may still take. `isPathLimited` says whether the path has shown that it
    /// carries less than was sent.
    mutating func nextTarget(
        room: Double,
        isPathLimited: Bool,
        keyframeDue: Bool,
        keyframeTime: Double,
        at now: Int64
    ) -> EncodingTarget {
        let instant = MonotonicInstant(microseconds: now)
        let bitrate = Bitrate(bitsPerSecond: Int(rate))
        let isLate = isStarved(at: now)
        (waiting, networkWait) = (nil, nil)
        guard !lane.isRelayed else { return relayTarget(bitrate) }
        let step = ladder.update(
            bitrate: bitrate,
            quantizer: quantizer,
            used: used,
            cpuSteps: cpuSteps,
            bounds: (bounds?.dimensions, bounds?.frameRate),
            at: instant
        )
        self.step = step
        cappedSince = share >= 0.95 * demand ? cappedSince ?? now : nil
        let isCapped = cappedSince.map { now - $0 > Self.settledTime } ?? false
        limitation.update(isLate ? .bandwidth : limitationReason(step, isPathLimited || isCapped), at: instant)
        noteFrame(at: now)
        var target = EncodingTarget(
            dimensions: step.dimensions,
            bitrate: bitrate,
            frameRate: step.frameRate,
            temporalLayerCount: min(3, max(1, bounds?.temporalLayers ?? 3))
        )
        let isKeyframe = keyframeDue || self.target?.dimensions != target.dimensions
        self.target = target
        let bytes = largestFrame(room: room, keyframeTime: isKeyframe ? keyframeTime : nil)
        // After a cut, the size was chosen for the rate to which it leads. A keyframe for the present rate would freeze
        // the picture.
        let part = isKeyframe ? step.fallsTo : 1
        target.largestFrame = DataSize(bytes: Int(max(bytes * part, min(bytes, Self.smallestKeyframe))))
        return target
    }

    /// The target of a frame that is compressed already, which describes it and asks for nothing.
    private mutating func relayTarget(_ bitrate: Bitrate) -> EncodingTarget {
        let target = EncodingTarget(
            dimensions: lane.largestDimensions,
            bitrate: bitrate,
            frameRate: lane.frameRate,
            temporalLayerCount: 1
        )
        self.target = target
        return target
    }

    mutating func encoded(_ report: EncodingReport?, at now: Int64) {
        guard let report else { return }
        if report.isKeyframe {
            lastKeyframe = now
            keyframe = Keyframe(bytes: Double(max(1, report.bytes)), area: Double(max(1, report.dimensions.area)))
        }
        quantizer = report.quantizer
        used = report.isKeyframe ? nil : Self.bitrate(ofFramesOf: report.bytes, each: frameTime)
        guard let used else { return }
        let isFine = report.quantizer <= ladder.settings.fineQuantizer
        fineUse.observe(isFine: isFine, Double(used.bitsPerSecond), at: now)
        let interval = max(frameInterval, arrivals.shortestInterval ?? 0)
        let rate = Self.bitrate(ofFramesOf: report.bytes, each: max(frameTime, interval))
        let leavesShare = isFine || interval >= Self.rareInterval
        quietUse.observe(Double(rate.bitsPerSecond), leavesShare: leavesShare, at: now)
    }

    /// Looks whether its pictures stand still, or few or none come.
    mutating func findQuiet(at now: Int64) {
        quietNeed = isWanted && !lane.isRelayed ? quietUse.need(at: now).map { max($0, lowestRate) } : nil
    }

    private static func bitrate(ofFramesOf bytes: Int, each interval: Int64) -> Bitrate {
        let bits = Double(max(0, bytes)) * 8e6 / Double(interval)
        return Bitrate(bitsPerSecond: Int(min(bits, Double(highestBitrate))))
    }

    var status: UplinkStatus.Lane {
        UplinkStatus.Lane(
            id: id,
            target: target,
            share: Bitrate(bitsPerSecond: Int(share)),
            reason: step?.reason,
            limitation: limitation,
            waiting: waiting
        )
    }

    private func limitationReason(
        _ step: DegradationLadder.Step,
        _ isPathLimited: Bool
    ) -> QualityLimitation.Reason {
        switch step.limitation {
        case .cpu: return .cpu
        // The rate begins low on every path, and rises until a limit shows, here or at those who watch.
        case .bandwidth: return isPathLimited || isLimitedBySubscribers ? .bandwidth : .none
        // At full size, fewer bits than the encoding could use are a limit too.
        case .none, .other: return isPathLimited && share < 0.8 * demand ? .bandwidth : step.limitation
        }
    }

    private mutating func noteFrame(at now: Int64) {
        // After a pause, no frames are made up for. Pictures that come faster than announced do not delay later ones.
        let spacing = spacing
        let due = min(nextFrame ?? now, now + spacing)
        nextFrame = (now - due > 2 * spacing ? now : due) + spacing
    }

    /// A frame that is larger than this comes late itself or makes the next ones late.
    private func largestFrame(room: Double, keyframeTime: Double?) -> Double {
        if let keyframeTime {
            let bytes = max(min(4 * frame, rate / 8 * Self.longestKeyframe), rate / 8 * keyframeTime)
            return min(1e9, max(Self.smallestKeyframe, bytes))
        }
        return max(600, min(2 * frame + 600, max(room, frame / 2)))
    }
}
