import MediaCore
import RoomProtocol
import Threading
import VP8Codec

/// Decodes a remote track on a thread of its own and hands the pictures to the track's renderers.
final class VideoReceiver: Sendable {
    let track: RemoteVideoTrack
    private let clock: ClockBox
    private let start: ClientSession.Subscription
    private let subscribed: MonotonicInstant
    private let queue = FrameQueue()
    /// Frames that earlier subscriptions to the track left out.
    private let droppedBefore: Int
    private let thread = Monitor<WorkerThread?>(nil)
    private let threadEnded = Promise<Void>()
    private let reportFailure: @Sendable (RoomError) -> Void

    /// Starts to decode.
    ///
    /// `start` says how the packets begin, and `subscribed` is the moment when the track was asked for. A `former` receiver of the track, which has been told to stop, hands out its last pictures
    /// first: the track's renderers are never called by two threads at a time. `reportFailure` is told, on the thread,
    /// if there is no decoder; nothing is decoded then.
    ///
    /// - Throws: `outOfResources` if there is no thread.
    init(
        track: RemoteVideoTrack,
        clock: ClockBox,
        start: ClientSession.Subscription,
        subscribed: MonotonicInstant,
        after former: VideoReceiver? = nil,
        reportFailure: @escaping @Sendable (RoomError) -> Void = { _ in }
    ) throws(RoomError) {
        self.track = track
        droppedBefore = track.statistics.framesDropped
        self.clock = clock
        self.start = start
        self.subscribed = subscribed
        self.reportFailure = reportFailure
        do throws(ThreadShortage) {
            try thread.withLock { thread throws(ThreadShortage) in
                thread = try WorkerThread(name: "decoder") { [self] in
                    former?.join()
                    decode()
                    threadEnded.fulfill(())
                }
            }
        } catch {
            throw RoomError(.outOfResources, "The track cannot be decoded: \(error).")
        }
    }

    /// Takes a whole frame, on the connection's thread.
    ///
    /// `isAfterLoss` says that a frame of temporal layer 0 went missing before it.
    func receive(_ assembled: FrameAssembler.Frame, isAfterLoss: Bool = false, at now: MonotonicInstant) {
        let header = assembled.header
        let estimate = clock.estimate
        let info = header.frameInfo(timestamp: estimate.instant(at: header.captureTime))
        let frame = EncodedFrame(info: info, buffer: assembled.buffer, range: assembled.range)
        track.update { statistics in
            statistics.framesReceived += 1
            statistics.bytes += frame.size.bytes
            if info.isKeyframe { statistics.keyframes += 1 }
        }
        let received = ReceivedFrame(
            frame: frame,
            received: now,
            relayed: header.relayTime.map { estimate.instant(at: $0) },
            decoded: nil,
            picture: nil,
            isCatchUp: start.isCatchUp(info),
            clock: estimate
        )
        if isAfterLoss { queue.frameWasLost() }
        let outcome = queue.put(received)
        // A keyframe may have taken the place of all that waited.
        if outcome != .taken || info.isKeyframe { countDrops() }
        if outcome == .needsKeyframe { track.requestKeyframe() }
    }

    /// Brings the track's count up to date; from the connection's thread as from the decoder's.
    private func countDrops() {
        // Read inside, so that the older of two counts never comes last.
        track.update { $0.framesDropped = droppedBefore + queue.dropped }
    }

    /// Takes no more frames; what waits is still decoded.
    func close() {
        queue.close()
    }

    /// Ends the decoding once what waits is decoded, and waits for the thread.
    func stop() async {
        close()
        // Suspended rather than blocked, as renderers can take their time.
        _ = await threadEnded.value()
        join()
    }

    private func join() {
        thread.withLock { $0 }?.join()
    }

    // MARK: On the decoder's thread

    private func decode() {
        var decoder: VP8Decoder
        do {
            decoder = try VP8Decoder()
        } catch {
            queue.close()
            return reportFailure(RoomError(.outOfResources, "The track cannot be decoded: \(error)."))
        }
        let pool = VideoBufferPool()
        while var received = queue.take() {
            let (renderers, sinks) = track.consumers
            let isPictureWanted = !received.isCatchUp && (!renderers.isEmpty || sinks.contains { $0.wantsPictures })
            let picture: VideoFrame?
            do {
                picture = try received.frame.withBytes { bytes throws(VP8Error) in
                    try decoder.decode(bytes, timestamp: received.frame.info.timestamp) { dimensions in
                        isPictureWanted ? pool.take(dimensions) : nil
                    }
                }
            } catch {
                let isKeyframeNeeded = queue.skipToKeyframe()
                countDrops()
                if isKeyframeNeeded { track.requestKeyframe() }
                continue
            }
            received.decoded = MonotonicClock.now
            count(received)
            received.picture = picture
            if let picture {
                for renderer in renderers { renderer.render(picture) }
            }
            for sink in track.note(received) { sink.receive(received) }
        }
    }

    private func count(_ received: ReceivedFrame) {
        guard let decoded = received.decoded else { return }
        track.update { statistics in
            statistics.framesDecoded += 1
            if statistics.timeToFirstFrame == nil {
                statistics.timeToFirstFrame = decoded.duration(since: subscribed)
            }
            statistics.clock = FrameAgeClock(received.clock.basis)
            statistics.ageErrorBound = received.clock.errorBound
        }
        guard !received.isCatchUp else { return }
        track.recordAge(decoded.duration(since: received.frame.info.timestamp))
    }
}
