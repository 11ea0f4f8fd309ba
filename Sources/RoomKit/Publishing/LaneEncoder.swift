import Adaptation
import MediaCore
import Threading
import VideoProcessing

/// The work of an encoding's thread: looks at the newest picture, and encodes it when the uplink allows that.
struct LaneEncoder: ~Copyable {
    /// What the next frame owes to receivers.
    private struct Order {
        var isKeyframeDue: Bool
        /// When the keyframe became due.
        var mark: KeyframeDemand.Mark
    }

    private let lane: EncodingLane
    private let track: EncodingLane.Track
    private var encoding: TrackEncoding
    /// The largest size that the present pictures can be encoded in, as it was reported to the uplink.
    private var largest: Dimensions
    /// The last picture that was encoded, before scaling.
    private var lastEncoded: (appearance: Appearance, shape: PictureShape)?
    private var repeats = RepeatSchedule()
    /// The timestamp of the last frame that showed a picture again, or had to follow such a one.
    private var lastRepeat = MonotonicInstant(nanoseconds: .min)

    /// The work for `lane`.
    init(of lane: EncodingLane) {
        self.lane = lane
        track = lane.track
        let route = lane.track.route
        largest = route.dimensions
        encoding = TrackEncoding(
            codec: route.codec,
            packetizer: route.packetizer,
            simulcastLayer: UInt8(lane.plan.simulcastLayer),
            settings: FrameEncoderSettings(
                dimensions: route.dimensions.divided(by: lane.plan.divisor),
                frameRate: route.frameRate
            )
        )
    }

    /// Works until the lane is closed.
    mutating func run() {
        var time: MonotonicInstant?
        while let look = lane.slot.look(by: time) {
            time = look.largest == nil ? considerRepeat() : consider(look) ?? repeats.time
        }
    }

    /// Shows the newest picture again if it is time for that.
    ///
    /// - Returns: When to look again, at the latest.
    private mutating func considerRepeat() -> MonotonicInstant? {
        guard lane.isActive else {
            rest()
            return nil
        }
        let now = MonotonicClock.now
        let isNeeded = lane.demand.withLock { $0.isPending } || isOutOfShape
        if isNeeded { repeats.demanded(at: now) }
        guard let time = repeats.time, now >= time else { return repeats.time }
        repeats.pause()
        guard isNeeded || track.newest.standsStill(at: now) else { return nil }
        lane.slot.putIfEmpty { track.newest.repeat(for: track, at: now) }
        return nil
    }

    /// Whether the track shows its pictures in another way than the last one that was encoded.
    private var isOutOfShape: Bool { lastEncoded.map { $0.shape != track.newest.shape } ?? false }

    /// Looks at the picture in the slot, and encodes it if that may be done now.
    ///
    /// - Returns: When to look again, at the latest.
    private mutating func consider(_ look: FrameSlot.Look) -> MonotonicInstant? {
        guard lane.isActive else {
            rest()
            return nil
        }
        if let size = look.largest, size != largest {
            // The source's size has changed, and with it what the uplink may choose.
            largest = size
            lane.setSource(size)
            lane.demand.withLock { $0.begin() }
        }
        let order = makeOrder()
        let isNew = look.isNewFrame
        switch track.route.uplink.decide(lane.seat, isNewFrame: isNew, keyframeDue: order.isKeyframeDue) {
        case .notWanted:
            rest()
        case .wait(let time, let reason):
            wait(reason, isNewFrame: isNew)
            return time
        case .encode(let target):
            guard let picture = lane.slot.take(in: largest) else { return nil }
            encode(picture, target, order)
        }
        return nil
    }

    /// Encodes nothing for now, because nobody wants it.
    private mutating func rest() {
        lastEncoded = nil
        repeats.pause()
        track.note(nil, lane.plan.simulcastLayer)
        drop(lane.slot.take(), .notWanted)
    }

    private mutating func wait(_ reason: WaitReason, isNewFrame: Bool) {
        repeats.pause()
        lane.slot.hold(reason.dropReason)
        // The connection may have stopped asking for packets. When it asks, the queue gives up what is too late.
        if isNewFrame, !lane.sendQueue.isEmpty { track.route.wake() }
    }

    private func makeOrder() -> Order {
        let isBroken = lane.sendQueue.takeBroken()
        return lane.demand.withLock { demand in
            if isBroken { demand.begin() }
            let isDue = demand.isDue(mayAnswer: track.route.uplink.mayEncodeKeyframe(lane.seat))
            return Order(isKeyframeDue: isDue, mark: demand.mark)
        }
    }

    private mutating func encode(_ picture: FrameSlot.Picture, _ target: EncodingTarget, _ order: Order) {
        let began = MonotonicClock.now
        var scaled = track.chain.picture(
            picture.frame,
            sizing: picture.sizing,
            dimensions: target.dimensions,
            for: lane.plan.simulcastLayer
        )
        // The chain knows pictures by their memory and time.
        scaled.metadata = picture.frame.metadata
        // If the picture's first frame was left out, this one is the first to show it.
        scaled.isRepeat = picture.frame.isRepeat && picture.appearance == lastEncoded?.appearance
        scaled.isSubstitute = picture.frame.isSubstitute
        // A picture that took longer than the one before it on its way here may be older than that one's repeat.
        // A source whose clock went back by more is taken as it is.
        let isOvertaken = scaled.timestamp <= lastRepeat && scaled.timestamp + RepeatSchedule.settling > lastRepeat
        if isOvertaken { scaled.timestamp = lastRepeat + .microseconds(1) }
        if isOvertaken || picture.frame.isRepeat { lastRepeat = scaled.timestamp }
        var target = target
        target.dimensions = scaled.dimensions
        do throws(RoomError) {
            let info = try encoding.encode(
                scaled,
                target: target,
                forceKeyframe: order.isKeyframeDue,
                clock: track.route.clock
            )
            guard let info else {
                track.route.uplink.encoded(nil, of: lane.seat)
                plan(after: scaled, isSharp: false)
                if picture.frame.isRepeat { track.requestFrame() }
                return drop(picture, .rateControl)
            }
            let report = EncodingReport(
                bytes: encoding.packetBytes,
                isKeyframe: info.isKeyframe,
                quantizer: info.quantizer,
                encodeDuration: MonotonicClock.now.duration(since: began),
                dimensions: info.dimensions
            )
            lastEncoded = (picture.appearance, picture.shape)
            // Before the frame counts as encoded, so that whoever waits for that finds the request made.
            if picture.frame.isRepeat, !encoding.isSharp { track.requestFrame() }
            finish(picture, info, report, order)
            plan(after: scaled, isSharp: encoding.isSharp)
        } catch {
            // No frame may refer to a picture that was not sent.
            lane.demand.withLock { $0.begin() }
            track.route.uplink.encoded(nil, of: lane.seat)
            track.note(error, lane.plan.simulcastLayer)
            drop(picture, .corrupt)
        }
    }

    /// Decides when the picture is shown again, if no other one comes.
    private mutating func plan(after picture: VideoFrame, isSharp: Bool) {
        let now = MonotonicClock.now
        let standsStill = track.newest.standsStill(at: now + RepeatSchedule.settling)
        repeats.encoded(isRepeat: picture.isRepeat, isSharp: isSharp, standsStill: standsStill, at: now)
        // A keyframe that was asked for was not due yet; or the picture had waited since before a change of the shape.
        if lane.demand.withLock({ $0.isPending }) || isOutOfShape { repeats.demanded(at: now) }
    }

    /// Queues the frame that was encoded, and counts it.
    private mutating func finish(
        _ picture: FrameSlot.Picture,
        _ info: EncodedFrameInfo,
        _ report: EncodingReport,
        _ order: Order
    ) {
        let now = MonotonicClock.now
        if info.isKeyframe { lane.demand.withLock { $0.keyframeEncoded(begunAt: order.mark) } }
        lane.counts.withLock { counts in
            counts.framesEncoded += 1
            if info.isKeyframe { counts.keyframes += 1 }
            counts.last = report
            counts.encodeDuration += report.encodeDuration
            counts.rate.count(at: now)
        }
        track.note(nil, lane.plan.simulcastLayer)
        lane.sendQueue.append(&encoding.packets, of: info, at: now)
        track.route.uplink.encoded(report, of: lane.seat)
        track.tally.encoded(picture.ticket)
        track.route.wake()
    }

    private func drop(_ picture: FrameSlot.Picture?, _ reason: FrameDropReason) {
        if let picture { track.tally.dropped(FrameSlot.Loss(ticket: picture.ticket, reason: reason)) }
    }
}

extension WaitReason {
    /// Why a picture counts as dropped if a newer one takes its place.
    fileprivate var dropReason: FrameDropReason {
        switch self {
        case .network, .allocation: .network
        case .frameRate, .keyframeInterval: .rateControl
        case .cpu: .encoderBusy
        }
    }
}
