import Capture
public import MediaCore
import RoomProtocol
import Threading

/// Video that another participant publishes.
public final class RemoteVideoTrack: Sendable {
    /// The server's id for the track, `TR…`.
    public let sid: String
    /// The name that the publisher gave the track.
    public let name: String
    /// The kind of source: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    public let sourceKind: String
    /// The identity of the participant who publishes it.
    public let publisherIdentity: String
    /// The size with which the track was published; frames may be smaller or larger.
    public let publishedDimensions: Dimensions
    /// The rate as published, in frames per second; 0 if it was not stated, for which there is no `FrameRate(_:)`.
    public let frameRate: Double
    /// The codec as published, such as `vp8`.
    public let codec: String?
    /// How its frames are decoded and stored; `nil` for a codec that this library does not support.
    let trackCodec: TrackCodec?

    /// Who needs a keyframe.
    enum KeyframeNeed: Sendable {
        /// The decoder: it can do nothing with what comes before the keyframe.
        case decoder
        /// A recorder: what comes before the keyframe is decoded and shown, so that the picture does not stop.
        case recorder
    }

    private struct State: Sendable {
        var isEnabled: Bool
        var sinks: [any ReceivedFrameSink] = []
        var keyframeCache = KeyframeCache()
        var requestKeyframe: (@Sendable (KeyframeNeed) -> Void)?
        var isSubscribed = false
        var isSwitchedOff = false
        var preferences = VideoSubscriptionPreferences()
        /// Receivers whose threads still run.
        var receivers = 0
        /// Whether the track was withdrawn, or the session is over.
        var isEnded = false

        /// Whether no further frame will come.
        var isFinished: Bool { isEnded && receivers == 0 }

        /// Whether this program asks for pictures and the publisher sends them.
        var isAskedFor: Bool { isEnabled && !preferences.isPaused }

        /// Whether pictures come.
        var arePicturesExpected: Bool { isAskedFor && !isSwitchedOff }

        /// Removes and returns the sinks, which are then to be ended; returns none if further frames may come.
        mutating func takeFinishedSinks() -> [any ReceivedFrameSink] {
            guard isFinished else { return [] }
            keyframeCache = KeyframeCache()
            defer { sinks = [] }
            return sinks
        }
    }

    /// How the reception goes.
    private struct Reception: Sendable {
        var meter: ReceptionMeter
        /// Reports changes; `nil` while the track is not received.
        ///
        /// It is called under the lock, so that the reports come in order.
        var report: (@Sendable (Change) -> Void)?
        /// The size that applications know; `nil` if it is the one that was published.
        var reportedSize: Dimensions?
    }

    /// A change of what arrives that applications are told.
    enum Change: Sendable {
        /// The picture is frozen.
        case frozen
        /// A picture was shown, or none is expected any more, this long after the last one.
        case unfrozen(Duration)
        /// The pictures have another size from now on.
        case resized(Dimensions)
    }

    private let state: Monitor<State>
    /// Separate from `state`, so that reading the statistics delays only the threads that count, for the time of a
    /// copy.
    private let reception: Monitor<Reception>
    private let finished = Promise<Void>()
    /// Renderers that receive each decoded picture.
    let renderers = TrackRenderers()

    init(_ info: TrackInfo, publisherIdentity: String) {
        sid = info.id
        // Whatever a server states, programs show it in one line.
        name = info.name.prefix(utf8Bytes: WireFormat.maximumNameBytes)
        sourceKind = info.source
        self.publisherIdentity = publisherIdentity
        // A server may state any numbers; those that no picture can have would overflow where areas are computed.
        let stated = info.video?.dimensions ?? Dimensions(width: 0, height: 0)
        let sides = 0...Dimensions.largestCodable.width
        let isPossible = sides.contains(stated.width) && sides.contains(stated.height)
        publishedDimensions = isPossible ? stated : Dimensions(width: 0, height: 0)
        frameRate = info.video?.frameRate ?? 0
        codec = info.codec
        let isScreen = info.source == VideoSourceKind.screen.rawValue
        let meter = ReceptionMeter(
            leastAverageGap: isScreen ? ReceptionMeter.screenGap : .zero,
            expectedGap: FrameRate(frameRate)?.interval ?? .zero
        )
        reception = Monitor(Reception(meter: meter))
        trackCodec = TrackCodec.named(info.codec, kind: info.kind)
        state = Monitor(State(isEnabled: info.enabled))
    }

    /// The size of the last picture, made upright; before the first one, that with which the track was published.
    ///
    /// `RoomEvent.trackDimensionsChanged` reports changes.
    public var dimensions: Dimensions { reception.withLock { $0.meter.dimensions } ?? publishedDimensions }

    /// Whether this library decodes the codec; a track with another codec is listed but cannot be received.
    public var isSupported: Bool { trackCodec != nil }

    /// Whether the publisher sends at present.
    public var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// Whether the track is received: from `RoomEvent.trackSubscribed` until `trackUnsubscribed`.
    public var isSubscribed: Bool { state.withLock { $0.isSubscribed } }

    /// Whether the server does not send the track for now, although it is subscribed to (`RoomEvent.trackSwitchedOff`).
    public var isSwitchedOff: Bool { state.withLock { $0.isSwitchedOff } }

    /// Whether no picture has been shown for 1.5 s, or for three times their usual interval if that is longer.
    ///
    /// `RoomEvent.trackFrozen` reports it. It is `false` before the first picture, and while none is expected.
    public var isFrozen: Bool { reception.withLock { $0.meter.frozenSince != nil } }

    /// What this program needs of the track, as set with `Room.setPreferences(_:of:)`.
    public var preferences: VideoSubscriptionPreferences { state.withLock { $0.preferences } }

    /// Counts, rates and ages of the frames received so far; any thread may read this.
    ///
    /// Reading takes some microseconds, and does not hold up the track's threads: only a copy is made under a lock.
    public var statistics: RemoteVideoTrackStatistics {
        let meter = reception.withLock { $0.meter }
        return meter.statistics(at: MonotonicClock.now)
    }

    /// Passes every decoded picture that is in time to `renderer`; adding it twice does nothing.
    ///
    /// The renderer is called on `executor`, or else on a thread of its own, which begins with the first picture. If it
    /// is slow it misses pictures, and each call brings the newest one. It never holds up the track or other renderers.
    /// Pictures from the relay's cache, which a late joiner gets, are stale and not passed on, except the last one of a
    /// picture that stands still (`VideoFrame.isRepeat`): a renderer that is added later begins with that one. The track
    /// keeps the renderer until it is removed.
    public func addRenderer(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)? = nil) {
        renderers.add(renderer, on: executor)
    }

    /// Stops passing pictures to `renderer`; a call that has already begun may still finish, and is not waited for.
    ///
    /// - Returns: The renderer's counts, without a call that still runs; `nil` if it was not added.
    @discardableResult
    public func removeRenderer(_ renderer: any VideoRenderer) -> RendererStatistics? {
        renderers.remove(renderer)
    }

    /// Counts of the pictures for `renderer`; `nil` if it is not added.
    public func rendererStatistics(of renderer: any VideoRenderer) -> RendererStatistics? {
        renderers.statistics(of: renderer)
    }

    /// Waits until the track is withdrawn or the session has ended, and the last picture has been passed on.
    ///
    /// The track's `statistics` are final then. A cancelled task waits as well.
    public func ended() async {
        _ = await finished.value()
    }

    /// Passes every decoded frame to `sink`; the sink begins with the last keyframe, unless no pictures were expected
    /// since.
    func addSink(_ sink: any ReceivedFrameSink) {
        change { state in
            sink.begin(with: state.keyframeCache.frames)
            state.sinks.append(sink)
        }
    }

    /// Notes that no further receiver will begin; the sinks end after the last frame of the receivers that still run.
    func end() {
        change { $0.isEnded = true }
    }

    func receiverBegan() {
        change { $0.receivers += 1 }
        measure { $0.interrupt() }
    }

    /// Notes that a receiver has passed on its last frame.
    func receiverEnded() {
        renderers.forgetStill()
        change { state in
            state.receivers -= 1
            if state.receivers == 0 { state.keyframeCache = KeyframeCache() }
        }
    }

    /// Changes the state, and ends the sinks if the change has finished the track.
    private func change(_ body: (inout State) -> Void) {
        let (sinks, isFinished) = state.withLock { state in
            body(&state)
            return (state.takeFinishedSinks(), state.isFinished)
        }
        for sink in sinks { sink.end() }
        guard isFinished else { return }
        renderers.finish()
        finished.fulfill(())
    }

    func removeSink(_ sink: any ReceivedFrameSink) {
        state.withLock { state in state.sinks.removeAll { $0 === sink } }
    }

    /// Whether a sink takes decoded pictures now.
    var isPictureRecorded: Bool { sinks.contains { $0.wantsPictures } }

    /// The sinks that take frames now.
    var sinks: [any ReceivedFrameSink] { state.withLock { $0.sinks } }

    /// Hands a picture to the renderers.
    func show(_ picture: VideoFrame) {
        renderers.offer(picture)
        // As in `note`: it may have been on its way when the pictures ended.
        if !state.withLock({ $0.arePicturesExpected }) { renderers.forgetStill() }
    }

    /// Keeps a decoded frame for later sinks, and returns the sinks that take it now.
    func note(_ frame: ReceivedFrame) -> [any ReceivedFrameSink] {
        state.withLock { state in
            // What was on its way when the pictures ended is none to begin with later.
            if state.arePicturesExpected {
                state.keyframeCache.note(frame)
            } else {
                state.keyframeCache = KeyframeCache()
            }
            return state.sinks
        }
    }

    func setEnabled(_ isEnabled: Bool) {
        state.withLock { $0.isEnabled = isEnabled }
        if isEnabled { interrupt() } else { expectNothing() }
    }

    func setPreferences(_ preferences: VideoSubscriptionPreferences) {
        state.withLock { $0.preferences = preferences }
        measure { $0.wishedGap = preferences.frameRate?.interval ?? .zero }
    }

    /// Notes that no pictures are expected until the next keyframe.
    func expectNothing() {
        // A sink must not begin with pictures of before, as of before a mute.
        state.withLock { $0.keyframeCache = KeyframeCache() }
        interrupt()
    }

    private func interrupt() {
        renderers.forgetStill()
        // The time without pictures is wanted, and no freeze. It may begin with frames that were still on their way.
        measure { $0.interrupt() }
    }

    /// Notes that the server does not send the track for now, although it is subscribed to, or sends it again.
    func setSwitchedOff(_ isSwitchedOff: Bool) {
        state.withLock { state in
            state.isSwitchedOff = isSwitchedOff
            if isSwitchedOff { state.keyframeCache = KeyframeCache() }
        }
        // What was shown is not the present picture any more.
        if isSwitchedOff { renderers.forgetStill() }
    }

    /// Notes that the server sends the track from now on.
    ///
    /// Until `endSubscription` returns, `report` is called on the threads that receive and decode.
    func beginSubscription(report: @escaping @Sendable (Change) -> Void) {
        reception.withLock { $0.report = report }
        state.withLock { ($0.isSubscribed, $0.isSwitchedOff) = (true, false) }
    }

    /// Notes that the server sends the track no longer.
    func endSubscription() {
        reception.withLock { reception in
            reception.report = nil
            reception.meter.interrupt()
        }
        state.withLock { ($0.isSubscribed, $0.isSwitchedOff) = (false, false) }
    }

    func setKeyframeRequest(_ request: (@Sendable (KeyframeNeed) -> Void)?) {
        state.withLock { $0.requestKeyframe = request }
    }

    /// Requests a keyframe from the publisher; the relay limits how often.
    func requestKeyframe(for need: KeyframeNeed = .decoder) {
        state.withLock { $0.requestKeyframe }?(need)
    }

    /// Notes in the statistics what has happened to a frame.
    func measure(_ body: (inout ReceptionMeter) -> Void) {
        reception.withLock { reception in
            let since = reception.meter.frozenSince
            body(&reception.meter)
            switch (since, reception.meter.frozenSince) {
            case (nil, _?): reception.report?(.frozen)
            case (let since?, nil): reception.report?(.unfrozen(MonotonicClock.now.duration(since: since)))
            default: break
            }
            guard let report = reception.report, let size = reception.meter.dimensions, size != reception.reportedSize
            else { return }
            if size != reception.reportedSize ?? publishedDimensions { report(.resized(size)) }
            reception.reportedSize = size
        }
    }

    /// Notes in the statistics that a frame was decoded.
    func count(_ frame: ReceptionMeter.Decoded) {
        measure { $0.decoded(frame) }
        if !isPictureExpected {
            // It was on its way when the pictures ended, and no wait for the next one begins with it.
            measure { $0.interrupt() }
        } else if !frame.isShown {
            // Frames that come too late to be shown do not end a standstill.
            noteStandstill(at: frame.at)
        }
    }

    /// When the picture counts as frozen, unless another one is shown before; `nil` if none is expected.
    var standstill: MonotonicInstant? { isPictureExpected ? reception.withLock { $0.meter.standstill } : nil }

    /// Notes that it is `now`: the picture may stand still for so long that it counts as frozen.
    func noteStandstill(at now: MonotonicInstant) {
        // A frame that was on its way when the publisher paused is not followed by others.
        if isPictureExpected { measure { $0.noteStandstill(at: now) } }
    }

    private var isPictureExpected: Bool { state.withLock { $0.isAskedFor } }
}
