import MediaCore
import RoomProtocol
import Synchronization
import Threading
import VideoProcessing

/// Takes a local track's pictures, encodes them on a thread of its own and queues the packets for the connection.
///
/// Pictures wait in a mailbox that holds one; the newest wins. A picture is dropped before it is encoded: if nobody
/// receives the track, if the connection has not taken the earlier frames, or to hold the bitrate. An encoded frame is
/// discarded only if it waits too long in the send queue. A rotated picture is turned upright before encoding, because
/// the wire format has no field for a rotation. If a size was requested that the source does not make itself, it is
/// made here by cropping and scaling down.
final class VideoPublisher: VideoSink, Sendable {
    /// Connects a publisher to its session, once the server has accepted the track.
    struct Route: Sendable {
        var trackID: String
        var codec: TrackCodec
        var packetizer: Packetizer
        /// The size that the track was announced with; no larger picture is sent.
        var dimensions: Dimensions
        /// The approximate rate of the pictures.
        var frameRate: FrameRate
        var clock: ClockBox
        /// Makes the connection ask for packets; any thread may call it.
        var wake: @Sendable () -> Void
        /// Tells the server the present value of `isEnabled`.
        var announceEnabled: @Sendable () async -> Void
        /// Reports that pictures cannot be encoded.
        ///
        /// It is called on the encoder's thread, once for each series of failures.
        var reportFailure: @Sendable (RoomError) -> Void
    }

    let sendQueue = SendQueue()
    private let options: VideoPublishOptions
    /// Renderers that receive each captured picture.
    private let renderers: Monitor<[any VideoRenderer]>
    private let firstFrame = Promise<Dimensions?>()
    private let threadEnded = Promise<Void>()
    private let mailbox = Mailbox<VideoFrame>()
    private let wantedSize = Monitor<Dimensions?>(nil)
    private let counts = Monitor(LocalVideoTrackStatistics())
    private let route = Monitor<Route?>(nil)
    private let thread = Monitor<WorkerThread?>(nil)
    private let error = Monitor<RoomError?>(nil)
    private let isWanted = Atomic(false)
    private let isEnabledFlag = Atomic(true)
    private let isKeyframeWanted = Atomic(false)
    private let isRetired = Atomic(false)

    init(options: VideoPublishOptions, renderers: Monitor<[any VideoRenderer]> = Monitor([])) {
        self.options = options
        self.renderers = renderers
    }

    // MARK: Sink, on the source's thread

    var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {
        guard let size = request.dimensions else { return }
        wantedSize.withLock { $0 = size }
    }

    func onVideoFrame(_ frame: VideoFrame) {
        counts.withLock { $0.framesCaptured += 1 }
        if firstFrame.current == nil {
            let upright = frame.rotation.swapsDimensions ? frame.dimensions.transposed : frame.dimensions
            firstFrame.fulfill(sizing.outputDimensions(for: upright))
        }
        if !isWanted.load(ordering: .relaxed) || !isEnabledFlag.load(ordering: .relaxed) {
            drop(.notWanted)
        } else if mailbox.put(frame) != nil {
            drop(.encoderBusy)
        }
        // Renderers come after the encoder, because they must not delay it.
        for renderer in renderers.withLock({ $0 }) { renderer.render(frame) }
    }

    /// The transform that brings an upright picture to the requested size.
    private var sizing: FrameTransform { FrameTransform(size: wantedSize.withLock { $0 }) }

    // MARK: Control, from any thread

    var statistics: LocalVideoTrackStatistics {
        var statistics = counts.withLock { $0 }
        let sent = sendQueue.counts
        statistics.framesSent = sent.framesSent
        statistics.framesExpired = sent.framesExpired
        statistics.bytesSent = sent.bytesSent
        return statistics
    }

    /// The upright size of the first picture, once that has arrived.
    var dimensions: Dimensions? { firstFrame.current ?? nil }

    var failure: RoomError? { error.withLock { $0 } }

    /// Whether the track may have another publisher.
    var isOver: Bool { isRetired.load(ordering: .acquiring) }

    var trackID: String? { route.withLock { $0?.trackID } }

    /// Waits at most `timeout` for the first picture; returns its upright size.
    func firstDimensions(within timeout: Duration) async -> Dimensions? {
        await firstFrame.value(within: timeout) ?? nil
    }

    /// Ends the wait for the first picture.
    func giveUpWaiting() {
        firstFrame.fulfill(nil)
    }

    /// Begins to encode, for the track that the server has accepted.
    ///
    /// - Throws: `outOfResources` if there is no thread.
    func begin(_ route: Route) throws(RoomError) {
        do throws(ThreadShortage) {
            try thread.withLock { thread throws(ThreadShortage) in
                thread = try WorkerThread(name: "encoder") { [self] in
                    encode(for: route)
                    threadEnded.fulfill(())
                }
            }
        } catch {
            throw RoomError(.outOfResources, "The track cannot be encoded: \(error).")
        }
        self.route.withLock { $0 = route }
    }

    /// Sets whether somebody receives the track; with `true` the next frame is a keyframe.
    func setWanted(_ isWanted: Bool) {
        if isWanted { isKeyframeWanted.store(true, ordering: .relaxed) }
        self.isWanted.store(isWanted, ordering: .relaxed)
    }

    /// Sets whether pictures are encoded; with `true` the next frame is a keyframe.
    func setEnabled(_ isEnabled: Bool) {
        if isEnabled { isKeyframeWanted.store(true, ordering: .relaxed) }
        isEnabledFlag.store(isEnabled, ordering: .relaxed)
    }

    /// Whether pictures are encoded.
    var isEnabled: Bool { isEnabledFlag.load(ordering: .relaxed) }

    /// Tells the server the last value of `setEnabled`.
    func announceEnabled() async {
        await route.withLock { $0 }?.announceEnabled()
    }

    func requestKeyframe() {
        isKeyframeWanted.store(true, ordering: .relaxed)
    }

    /// Ends the encoding and waits for its thread; a picture that still waits is dropped.
    func stop() async {
        if mailbox.close() != nil { drop(.late) }
        guard let thread = thread.withLock({ $0 }) else { return }
        // This suspends instead of blocking, because the picture in the encoder can take a while.
        _ = await threadEnded.value()
        thread.join()
    }

    /// Lets the track have another publisher, once this one has stopped and its publication is withdrawn.
    func retire() {
        isRetired.store(true, ordering: .releasing)
    }

    private func drop(_ reason: FrameDropReason) {
        counts.withLock { $0.framesDropped[reason] += 1 }
    }

    // MARK: Encoding, on the encoder's thread

    private func encode(for route: Route) {
        var encoding = TrackEncoding(
            codec: route.codec,
            packetizer: route.packetizer,
            settings: FrameEncoderSettings(
                dimensions: route.dimensions,
                targetBitrate: options.targetBitrate,
                frameRate: route.frameRate
            )
        )
        while let frame = mailbox.take() {
            guard isWanted.load(ordering: .relaxed), isEnabledFlag.load(ordering: .relaxed) else {
                drop(.notWanted)
                continue
            }
            guard sendQueue.hasRoom else {
                drop(.network)
                // The connection may have stopped asking for packets. When it asks, the queue discards expired frames.
                route.wake()
                continue
            }
            encode(frame, with: &encoding, for: route)
        }
    }

    private func encode(_ frame: VideoFrame, with encoding: inout TrackEncoding, for route: Route) {
        let isBroken = sendQueue.takeBroken()
        let isKeyframeDue = isKeyframeWanted.exchange(false, ordering: .relaxed) || isBroken
        do {
            let info = try encoding.encode(frame, sizing: sizing, forceKeyframe: isKeyframeDue, clock: route.clock)
            guard let info else {
                if isKeyframeDue { isKeyframeWanted.store(true, ordering: .relaxed) }
                return drop(.rateControl)
            }
            counts.withLock { counts in
                counts.framesEncoded += 1
                if info.isKeyframe { counts.keyframes += 1 }
            }
            error.withLock { $0 = nil }
            sendQueue.append(
                &encoding.packets,
                isKeyframe: info.isKeyframe,
                isDiscardable: info.isDiscardable,
                at: MonotonicClock.now
            )
            route.wake()
        } catch {
            // A requested keyframe is still due, and no frame may refer to a picture that was not sent.
            isKeyframeWanted.store(true, ordering: .relaxed)
            note(error, route)
            drop(.corrupt)
        }
    }

    private func note(_ failure: RoomError, _ route: Route) {
        let isFirst = error.withLock { error in
            defer { error = failure }
            return error == nil
        }
        if isFirst { route.reportFailure(failure) }
    }
}
