import Adaptation
import Capture
import MediaCore
import RoomProtocol
import Synchronization
import Threading
import VideoProcessing

/// Takes a local track's pictures and passes them to the track's encodings.
///
/// A picture is dropped here if nobody receives the track. Otherwise it waits in the slot of each encoding that
/// somebody receives (`EncodingLane`). A turned or mirrored picture is made upright before encoding, or its packets say
/// how it must be turned, as the options say. If a size was requested that the source does not make itself, it is made
/// by cropping and scaling down. The frames of a source that compresses them itself go to the only encoding as they
/// are. A turn or mirroring that the application wants (`setTransform`) counts as the source's.
final class VideoPublisher: EncodedVideoSink, Sendable {
    fileprivate struct State: Sendable {
        var route: PublishingRoute?
        var lanes: [EncodingLane] = []
        /// The encodings that subscribers receive, as the server last reported.
        var wanted: [WantedLayer] = []
        /// How the track is encoded, as the application chose it last.
        var parameters: VideoEncodingParameters
        var isEnabled = true
        /// The highest rate of the pictures, as it was read last.
        var frameRate: FrameRate?
        /// When to read it again.
        var nextRateReading = MonotonicInstant(nanoseconds: .min)
        /// Whether the last picture is encoded with rows and columns exchanged.
        var isTransposed = false
    }

    /// What the application wanted of the encodings when it published the track.
    private let options: VideoPublishOptions
    /// What the pictures show, which decides where the application does not.
    private let contentHint: VideoContentHint
    /// Asks the source for a frame, even if its picture has not changed.
    private let requestFrame: @Sendable () -> Void
    /// The sizes of the first picture, made upright and as it is encoded.
    private let firstFrame = Promise<(upright: Dimensions, encoded: Dimensions)?>()
    /// How pictures are changed before they are encoded.
    private let shape: Monitor<PictureShape>
    /// The upright size in which the last picture was published: width in the upper half, height in the lower.
    private let lastSize = Atomic<UInt64>(0)
    let tally = PictureTally()
    private let newest: NewestPicture
    /// Holds the frames of a source that compresses them itself; `nil` for a source of pictures.
    let relay: RelaySlot?
    private let state: Monitor<State>
    private let errors = Monitor(LaneErrors())
    /// Whether the source has ended, and delivered nothing since.
    private let isSourceOver = Atomic(false)
    /// Whether the publication is over or being withdrawn, so that `retired` will be fulfilled.
    private let isEndingFlag = Atomic(false)
    /// Fulfilled once the track may have another publisher.
    private let retired = Promise<Void>()

    /// Creates the publisher of a track.
    ///
    /// `contentHint` is that of the source. `isRelaying` says that the source is an `EncodedVideoSource`, and
    /// `isScreencast` that nothing of the pictures may be cut off for a requested size.
    init(
        options: VideoPublishOptions,
        contentHint: VideoContentHint = .none,
        isRelaying: Bool = false,
        isScreencast: Bool = false,
        requestFrame: @escaping @Sendable () -> Void = {}
    ) {
        relay = isRelaying ? RelaySlot(tally: tally) : nil
        self.options = options
        self.contentHint = contentHint
        state = Monitor(State(parameters: options.encodingParameters))
        shape = Monitor(PictureShape(isFitted: isScreencast))
        let isStillByNature = isScreencast || contentHint == .detail || contentHint == .text
        newest = NewestPicture(shape: shape, isStillByNature: isStillByNature)
        self.requestFrame = requestFrame
    }

    // MARK: Sink, on the source's thread

    var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {
        shape.withLock { $0.size = request.dimensions }
        showPresentShape()
    }

    func onVideoFrame(_ frame: VideoFrame) {
        sourceDelivers()
        let picture = ShapedFrame(frame, in: newest.shape)
        if firstFrame.current == nil {
            let upright = picture.sizing.outputDimensions(for: picture.frame.uprightDimensions)
            firstFrame.fulfill((upright, isTransposed(picture) ? upright.transposed : upright))
        }
        let lanes = lanes(isTransposed: isTransposed(picture))
        reviewFrameRate()
        if let largest = note(picture, lanes) {
            offer(picture, largest, to: lanes)
        } else {
            tally.capturedAndDropped(.notWanted)
        }
        // Behind it in the slots, so that no repeat of it overtakes it.
        newest.keep(picture, at: MonotonicClock.now)
        if newest.shape != picture.shape { showPresentShape() }
    }

    /// Whether the picture is encoded with rows and columns exchanged.
    private func isTransposed(_ picture: ShapedFrame) -> Bool {
        options.orientation == .tagged && picture.frame.rotation.swapsDimensions
    }

    /// Shows the newest picture in the shape that the track has now, if no other one comes soon.
    ///
    /// Called without a lock: it reports a size that is another one.
    func showPresentShape() {
        guard let picture = newest.present else { return }
        let lanes = lanes(isTransposed: isTransposed(picture))
        _ = note(picture, lanes)
        for lane in lanes { lane.slot.expectPicture() }
    }

    /// Notes the size in which a picture is published; returns the largest one that it can be encoded in, if it can.
    private func note(_ picture: ShapedFrame, _ lanes: [EncodingLane]) -> Dimensions? {
        guard let chain = lanes.first?.track.chain else { return nil }
        let largest = chain.largestDimensions(of: picture.frame, sizing: picture.sizing)
        note(isTransposed(picture) ? largest.transposed : largest)
        return largest
    }

    func onEncodedFrame(_ frame: EncodedFrame) {
        sourceDelivers()
        reviewFrameRate()
        var frame = frame
        shape.withLock { $0.transform }.turn(&frame.tags.rotation, &frame.tags.isMirrored)
        if frame.info.isKeyframe {
            let encoded = frame.info.dimensions
            let upright = frame.tags.rotation.swapsDimensions ? encoded.transposed : encoded
            if firstFrame.current == nil { firstFrame.fulfill((upright, encoded)) }
            note(upright)
        }
        relay?.put(frame, at: MonotonicClock.now)
    }

    /// The encodings, with bounds that suit a picture whose rows and columns are exchanged, or are not.
    private func lanes(isTransposed: Bool) -> [EncodingLane] {
        state.withLock { state in
            if state.isTransposed != isTransposed {
                state.isTransposed = isTransposed
                for lane in state.lanes { lane.setWanted(bounds(of: lane, state)) }
            }
            return state.lanes
        }
    }

    /// Notes the upright size of what is published, and reports it if it is another one.
    private func note(_ size: Dimensions) {
        guard let route = state.withLock({ $0.route }) else { return }
        let last = UInt64(size.width) << 32 | UInt64(size.height)
        let former = lastSize.exchange(last, ordering: .acquiringAndReleasing)
        guard former != last, former != 0 || size != (firstFrame.current ?? nil)?.upright else { return }
        route.reportDimensions(size)
        // All encodings have the new size, also those that nobody receives.
        route.announceChanges()
    }

    /// Reads the rate of the pictures again, once a second, and goes on with another one.
    ///
    /// Requests to the source and to the track change it, and so does another device.
    private func reviewFrameRate() {
        let now = MonotonicClock.now
        let route = state.withLock { state -> PublishingRoute? in
            guard let route = state.route, now >= state.nextRateReading else { return nil }
            state.nextRateReading = now + Self.rateReadingInterval
            return route
        }
        guard let route, let frameRate = route.readFrameRate() else { return }
        let isNew = state.withLock { state in
            guard frameRate != state.frameRate else { return false }
            state.frameRate = frameRate
            for lane in state.lanes { lane.setFrameRate(frameRate) }
            return true
        }
        if isNew { route.announceChanges() }
    }

    private static var rateReadingInterval: Duration { .seconds(1) }

    /// Counts a picture, and puts it into the slots of the encodings that somebody receives.
    private func offer(_ picture: ShapedFrame, _ largest: Dimensions, to lanes: [EncodingLane]) {
        // An encoding may become active or stop being so at any time. Asked once, each answers for its ticket.
        var active: UInt64 = 0
        for (index, lane) in lanes.enumerated() where lane.isActive { active |= 1 << UInt64(index) }
        guard active != 0 else { return tally.capturedAndDropped(.notWanted) }
        let ticket = tally.captured(for: active.nonzeroBitCount)
        for (index, lane) in lanes.enumerated() where active & 1 << UInt64(index) != 0 {
            lane.put(FrameSlot.Picture(picture, ticket: ticket, largest: largest))
        }
    }

    // MARK: Control, from any thread

    /// The track's encodings; empty until `begin`.
    var lanes: [EncodingLane] { state.withLock { $0.lanes } }

    /// The upright size in which the last picture was published, once the first one has arrived.
    var dimensions: Dimensions? {
        let last = lastSize.load(ordering: .acquiring)
        guard last == 0 else { return Dimensions(width: Int(last >> 32), height: Int(last & 0xFFFF_FFFF)) }
        return (firstFrame.current ?? nil)?.upright
    }

    /// The size of the first picture as it is encoded, once that has arrived.
    var encodedDimensions: Dimensions? { (firstFrame.current ?? nil)?.encoded }

    var failure: RoomError? { errors.withLock { $0.first } }

    /// Whether the track may have another publisher.
    var isOver: Bool { retired.current != nil }

    /// Whether the track may soon have another publisher (`untilRetired`).
    var isEnding: Bool { isEndingFlag.load(ordering: .acquiring) }

    var trackID: String? { state.withLock { $0.route?.trackID } }

    /// Waits at most `timeout` for the first picture; returns its upright size.
    ///
    /// A source that compresses its frames itself is asked for a keyframe meanwhile, which states the size: again and
    /// again, because an encoder may miss a request, and not on the caller's executor, because the application answers.
    func firstDimensions(within timeout: Duration) async -> Dimensions? {
        let asking = relay.map { _ in
            Task.detached { [requestFrame, firstFrame] in
                while firstFrame.current == nil {
                    requestFrame()
                    try await Task.sleep(for: RelayBacklog.requestInterval)
                }
            }
        }
        defer { asking?.cancel() }
        return (await firstFrame.value(within: timeout) ?? nil)?.upright
    }

    /// Ends the wait for the first picture.
    func giveUpWaiting() {
        firstFrame.fulfill(nil)
    }

    /// Notes since when the source delivers nothing, as it has said: its last picture is not the present one; `nil` if it
    /// goes on.
    func sourceInterrupted(since time: MonotonicInstant?) {
        newest.interrupt(since: time)
        if time == nil { for lane in lanes { lane.slot.expectPicture() } }
    }

    /// Notes that the source has ended: nothing waits for a picture, and none is shown again.
    func sourceEnded() {
        giveUpWaiting()
        newest.forget()
        isSourceOver.store(true, ordering: .releasing)
    }

    /// Notes that the source delivers: one that had ended was started again.
    private func sourceDelivers() {
        guard isSourceOver.load(ordering: .relaxed), isSourceOver.exchange(false, ordering: .acquiringAndReleasing)
        else { return }
        for lane in lanes { lane.requestBeginning() }
        Task { await announceEnabled() }
    }

    /// Begins to encode, for the track that the server has accepted.
    ///
    /// - Throws: `outOfResources` if there is no thread.
    func begin(_ route: PublishingRoute) throws(RoomError) {
        let track = EncodingLane.Track(
            route: route,
            chain: ScalingChain(
                encodings: route.plans.count,
                limit: route.codec.maximumDimensions,
                keepsOrientation: options.orientation == .tagged
            ),
            tally: tally,
            newest: newest,
            relay: relay,
            requestFrame: requestFrame,
            note: { [weak self] error, layer in self?.note(error, ofLayer: layer, route) }
        )
        let lanes = route.plans.map { EncodingLane($0, of: track) }
        do throws(ThreadShortage) {
            for lane in lanes { try lane.begin() }
        } catch {
            for lane in lanes { lane.close() }
            throw RoomError(.outOfResources, "The track cannot be encoded: \(error).")
        }
        state.withLock { state in
            state.route = route
            state.frameRate = route.frameRate
            state.lanes = lanes
            for lane in lanes {
                // They may have changed since the track was announced.
                lane.setParameters(state.parameters.completed(for: contentHint))
                if !state.isEnabled { lane.setEnabled(false) }
                lane.setWanted(bounds(of: lane, state))
            }
        }
    }

    /// Sets what subscribers receive of the track; an encoding that is wanted again begins with a keyframe.
    func setWanted(_ layers: [WantedLayer]) {
        state.withLock { state in
            state.wanted = layers
            for lane in state.lanes { lane.setWanted(bounds(of: lane, state)) }
        }
        if !layers.isEmpty, relay == nil { requestFrame() }
    }

    /// How the track is encoded, as the application chose it last.
    var parameters: VideoEncodingParameters { state.withLock { $0.parameters } }

    /// Encodes by other parameters from now on; no frame becomes a keyframe for that alone.
    func setParameters(_ parameters: VideoEncodingParameters) {
        let route = state.withLock { state in
            state.parameters = parameters
            for lane in state.lanes { lane.setParameters(parameters.completed(for: contentHint)) }
            return state.route
        }
        route?.announceChanges()
    }

    /// What the server is to know, by the present parameters and pictures; `nil` before `begin`.
    var changeableProperties: ChangeableProperties? {
        // Under the lock, so that it is after a change of parameters as a whole or before it.
        let (plans, route, frameRate) = state.withLock { ($0.lanes.map(\.plan), $0.route, $0.frameRate) }
        guard let route, let dimensions, let frameRate else { return nil }
        return ChangeableProperties(
            frameRate: frameRate.framesPerSecond,
            encodings: plans.announced(for: dimensions, of: route.codec)
        )
    }

    /// Changes the pictures in another way, from the next one on; call `showPresentShape` then.
    func setTransform(_ transform: VideoTransform) {
        shape.withLock { $0.transform = transform }
    }

    /// The encodings of pictures of this size, the smallest first; `processors` is how many the program may use.
    func plans(for dimensions: Dimensions, processors: Int) -> [EncodingPlan] {
        if relay != nil { return [currentOptions.relayPlan] }
        return currentOptions.plans(for: dimensions, processors: processors)
    }

    /// The only encoding, where the server supports no simulcast.
    var singlePlan: EncodingPlan { currentOptions.singlePlan }

    private var currentOptions: VideoPublishOptions {
        var options = options
        options.encodingParameters = parameters.completed(for: contentHint)
        return options
    }

    /// Sets whether pictures are encoded; with `true` the next frame is a keyframe, and `needPicture` is to be called.
    func setEnabled(_ isEnabled: Bool) {
        state.withLock { state in
            state.isEnabled = isEnabled
            for lane in state.lanes { lane.setEnabled(isEnabled) }
        }
    }

    /// Asks the source for a picture for those who wait; called without a lock, because a source may call back.
    func needPicture() {
        if relay == nil { requestFrame() }
    }

    /// Whether pictures are sent: the track is enabled, and its source has not ended.
    ///
    /// The end of a source of compressed frames does not count: if it is started again, its first keyframe may come
    /// sooner than the server learns of it, and it may have no other one.
    var isSending: Bool {
        state.withLock { $0.isEnabled } && (relay != nil || !isSourceOver.load(ordering: .acquiring))
    }

    /// Tells the server the present value of `isSending`.
    func announceEnabled() async {
        await state.withLock { $0.route }?.announceEnabled()
    }

    /// Makes an encoding answer with a keyframe, as soon as one may be sent; `nil` means each of them.
    func requestKeyframe(of simulcastLayer: Int? = nil) {
        for lane in lanes where simulcastLayer ?? lane.plan.simulcastLayer == lane.plan.simulcastLayer {
            lane.requestKeyframe()
        }
        if relay == nil { requestFrame() }
    }

    /// Ends the encodings and waits for their threads; a picture that still waits is dropped.
    func stop() async {
        let lanes = lanes
        if lanes.isEmpty { relay?.discard() }
        for lane in lanes { lane.close() }
        for lane in lanes { await lane.join() }
        newest.forget()
        lanes.first?.track.chain.release()
    }

    /// Notes that the publication has begun to end.
    func willEnd() {
        isEndingFlag.store(true, ordering: .releasing)
    }

    /// Lets the track have another publisher, once this one has stopped and its publication is withdrawn.
    func retire() {
        retired.fulfill(())
    }

    /// Waits for `retire`, for at most `timeout`.
    func untilRetired(within timeout: Duration) async {
        _ = await retired.value(within: timeout)
    }

    private func note(_ failure: RoomError?, ofLayer layer: Int, _ route: PublishingRoute) {
        let isFirst = errors.withLock { $0.note(failure, of: layer) }
        if isFirst, let failure { route.reportFailure(failure) }
    }
}

extension VideoPublisher {
    /// What subscribers can use of an encoding; `nil` if nobody receives it and it is not sent all the same.
    ///
    /// Subscribers wish for sizes of the upright picture.
    private func bounds(of lane: EncodingLane, _ state: State) -> LayerBounds? {
        guard let wanted = state.wanted.first(where: { $0.simulcastLayer == lane.plan.simulcastLayer }) else {
            return options.isSentUnreceived ? LayerBounds() : nil
        }
        return state.isTransposed ? LayerBounds(wanted).transposed : LayerBounds(wanted)
    }
}
