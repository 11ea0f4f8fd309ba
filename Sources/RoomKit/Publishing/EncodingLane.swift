import Adaptation
import MediaCore
import RoomProtocol
import Synchronization
import Threading
import VideoProcessing

/// One encoding of a track: a slot for the newest picture, a thread with an encoder, and a queue to the socket.
///
/// The thread asks the uplink what to do with the picture in the slot. It takes the picture only when the uplink says
/// that a frame may be encoded now, and then takes the newest one. Until then the picture waits, and is looked at again
/// after each acknowledgement, write and wish.
///
/// If the source's frames are compressed already, there is no encoder: the frames wait in the track's `RelaySlot`, and
/// the thread passes them on (`LaneRelay`).
final class EncodingLane: Sendable {
    /// What a lane shares with the others of its track.
    struct Track: Sendable {
        var route: PublishingRoute
        var chain: ScalingChain
        var tally: PictureTally
        /// The source's newest picture, for an encoding that must show it again.
        var newest: NewestPicture
        /// Holds the frames of a source that compresses them itself; `nil` for a source of pictures.
        var relay: RelaySlot?
        /// Asks the source for a frame although its picture has not changed.
        ///
        /// A source of compressed frames is asked for a keyframe.
        var requestFrame: @Sendable () -> Void
        /// Called with the reason why a picture cannot be encoded, and with `nil` once one was encoded again; with the
        /// encoding's number.
        var note: @Sendable (RoomError?, Int) -> Void
    }

    /// Counts of the encoding.
    struct Counts: Sendable {
        var framesEncoded = 0
        var keyframes = 0
        /// The last frame's report.
        var last: EncodingReport?
        /// The time that scaling and encoding took, of all frames.
        var encodeDuration = Duration.zero
        var rate = FrameRateMeter()
    }

    /// The uplink's report on the encoding and its connection, and the time of the report.
    struct Status: Sendable {
        var path: UplinkStatus
        var lane: UplinkStatus.Lane
        var time: MonotonicInstant
    }

    /// What the encoding may use at most.
    private struct Limits: Hashable, Sendable {
        var plan: EncodingPlan
        /// The size of the track's pictures.
        var dimensions: Dimensions
        /// The highest rate of the track's pictures.
        var frameRate: FrameRate
        /// The highest bitrate, if the frames are compressed already; `nil` for that of the plan.
        var sourceRate: Bitrate?

        /// The limits, as the uplink takes them.
        func lane(of route: PublishingRoute) -> UplinkController.Lane {
            var plan = plan
            plan.highestBitrate = sourceRate ?? plan.highestBitrate
            return plan.lane(of: route, in: dimensions, at: frameRate)
        }
    }

    let track: Track
    let sendQueue = SendQueue()
    let slot = FrameSlot()
    let demand = Monitor(KeyframeDemand())
    let counts = Monitor(Counts())
    /// The encoding's name on the connection.
    let seat: Uplink.Seat
    private let limits: Monitor<Limits>
    private let isWanted = Atomic(false)
    private let isEnabled = Atomic(true)
    private let thread = Monitor<WorkerThread?>(nil)
    private let threadEnded = Promise<Void>()
    /// The last status, once the encoding has ended.
    private let finalStatus = Monitor<Status?>(nil)

    /// Adds an encoding to the route's uplink; nobody wants it yet.
    init(_ plan: EncodingPlan, of track: Track) {
        self.track = track
        let limits = Limits(plan: plan, dimensions: track.route.dimensions, frameRate: track.route.frameRate)
        self.limits = Monitor(limits)
        seat = track.route.uplink.add(limits.lane(of: track.route), queue: sendQueue) { [slot, relay = track.relay] in
            if let relay { relay.nudge() } else { slot.nudge() }
        }
    }

    /// Starts the thread.
    func begin() throws(ThreadShortage) {
        try thread.withLock { thread throws(ThreadShortage) in
            thread = try WorkerThread(name: track.relay == nil ? "encoder" : "relay") { [self] in
                work()
                threadEnded.fulfill(())
            }
        }
    }

    private func work() {
        guard let relay = track.relay else {
            var encoder = LaneEncoder(of: self)
            return encoder.run()
        }
        var worker = LaneRelay(of: self, slot: relay)
        worker.run()
        leave()
    }

    /// Removes the encoding from the uplink.
    private func leave() {
        if let status { finalStatus.withLock { $0 = status } }
        track.route.uplink.remove(seat)
    }

    // MARK: From any thread

    /// The encoding's properties; what the application may choose of them can change.
    var plan: EncodingPlan { limits.withLock { $0.plan } }

    /// Goes on as the application has chosen, whether or not a new picture comes.
    func setParameters(_ parameters: VideoEncodingParameters) {
        changeLimits { $0.plan.take(parameters) }
    }

    /// Goes on with pictures of another size, and, if they are compressed already, of another rate.
    func setSource(_ dimensions: Dimensions, rate: Bitrate? = nil) {
        changeLimits { ($0.dimensions, $0.sourceRate) = (dimensions, rate) }
    }

    /// Goes on with pictures that come at another rate.
    func setFrameRate(_ frameRate: FrameRate) {
        changeLimits { $0.frameRate = frameRate }
    }

    private func changeLimits(_ change: (inout Limits) -> Void) {
        // The uplink is told under the lock: of two changes at once, the later one must reach it last.
        limits.withLock { limits in
            let former = limits
            change(&limits)
            if limits != former { track.route.uplink.replace(seat, with: limits.lane(of: track.route)) }
        }
    }

    /// Whether pictures are encoded: somebody receives the encoding, and the track is enabled.
    var isActive: Bool { isWanted.load(ordering: .relaxed) && isEnabled.load(ordering: .relaxed) }

    /// The uplink's present report on the encoding; the last one once the encoding has ended.
    var status: Status? {
        guard let (path, lane) = track.route.uplink.status(of: seat) else { return finalStatus.withLock { $0 } }
        return Status(path: path, lane: lane, time: MonotonicClock.now)
    }

    /// Offers a picture; the track's tally counts it as encoded or dropped.
    func put(_ picture: FrameSlot.Picture) {
        if let loss = slot.put(picture) { track.tally.dropped(loss) }
    }

    /// Sets what subscribers can use of the encoding; `nil` if nobody receives it.
    ///
    /// When it is wanted again, the next frame is a keyframe.
    func setWanted(_ bounds: LayerBounds?) {
        let wasWanted = isWanted.load(ordering: .relaxed)
        if bounds != nil, !wasWanted { demand.withLock { $0.begin() } }
        track.route.uplink.setWanted(bounds, of: seat)
        isWanted.store(bounds != nil, ordering: .relaxed)
        nudge()
        if bounds != nil, !wasWanted { slot.expectPicture() }
    }

    /// Sets whether pictures are encoded; with `true` the next frame is a keyframe.
    func setEnabled(_ isEnabled: Bool) {
        if isEnabled { demand.withLock { $0.begin() } }
        self.isEnabled.store(isEnabled, ordering: .relaxed)
        nudge()
        if isEnabled { slot.expectPicture() }
    }

    /// Makes the next frame a keyframe, because the server has discarded what came before.
    func requestBeginning() {
        if let relay = track.relay { return relay.requestKeyframe() }
        demand.withLock { $0.begin() }
    }

    /// Makes the thread look at what has changed.
    private func nudge() {
        if let relay = track.relay { relay.setActive(isActive, at: MonotonicClock.now) } else { slot.nudge() }
    }

    /// A receiver asks for a keyframe.
    func requestKeyframe() {
        if let relay = track.relay { return relay.requestKeyframe() }
        demand.withLock { $0.request() }
        slot.expectPicture()
    }

    /// Ends the encoding; a picture that still waits is dropped.
    ///
    /// Frames that are relayed are still sent, those that do not wait too long.
    func close() {
        if let relay = track.relay, thread.withLock({ $0 }) != nil { return relay.close() }
        if let loss = slot.close() { track.tally.dropped(loss) }
        leave()
    }

    /// Waits for the thread's end, after `close`.
    func join() async {
        guard let thread = thread.withLock({ $0 }) else { return }
        // This suspends instead of blocking, because the picture in the encoder can take a while.
        _ = await threadEnded.value()
        thread.join()
    }
}
