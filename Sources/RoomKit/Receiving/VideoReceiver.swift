import MediaCore
import RoomProtocol
import Threading

/// Decodes a remote track on a thread of its own and passes the pictures to the track's renderers.
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
    private let makeDecoder: @Sendable () throws -> any FrameDecoder
    private let reportFailure: @Sendable (RoomError) -> Void

    /// The reception ends after this many undecodable keyframes in a row: 8 s at the relay's one keyframe per second.
    private static let maximumBadKeyframes = 8

    /// Starts to decode.
    ///
    /// `start` says how the packets begin, and `subscribed` is when the track was requested. `former` is the track's
    /// previous receiver, which was told to stop. It passes on its last pictures first, so that two threads never call
    /// the track's renderers at once. `reportFailure` is called at most once, on the decoder's thread, if the track
    /// cannot be decoded. Nothing is decoded after that.
    ///
    /// - Throws: `outOfResources` if there is no thread.
    init(
        track: RemoteVideoTrack,
        codec: TrackCodec,
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
        makeDecoder = codec.makeDecoder
        self.reportFailure = reportFailure
        track.receiverBegan()
        do throws(ThreadShortage) {
            try thread.withLock { thread throws(ThreadShortage) in
                thread = try WorkerThread(name: "decoder") { [self] in
                    former?.join()
                    run()
                    track.receiverEnded()
                    threadEnded.fulfill(())
                }
            }
        } catch {
            track.receiverEnded()
            throw RoomError(.outOfResources, "The track cannot be decoded: \(error).")
        }
    }

    /// Takes a whole frame, on the connection's thread.
    ///
    /// `isAfterLoss` says that a frame of temporal layer 0 was lost before it.
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
        // A keyframe may have replaced all waiting frames.
        if outcome != .taken || info.isKeyframe { countDrops() }
        if outcome == .needsKeyframe { track.requestKeyframe() }
    }

    /// Updates the track's count of dropped frames; called on the connection's thread and on the decoder's.
    private func countDrops() {
        // The count is read inside the lock, so that an older count never overwrites a newer one.
        track.update { $0.framesDropped = droppedBefore + queue.dropped }
    }

    /// Stops taking frames; waiting frames are still decoded.
    func close() {
        queue.close()
    }

    /// Stops after the waiting frames are decoded, and waits for the thread.
    func stop() async {
        close()
        // This suspends instead of blocking, because renderers can be slow.
        _ = await threadEnded.value()
        join()
    }

    private func join() {
        thread.withLock { $0 }?.join()
    }

    // MARK: On the decoder's thread

    private func run() {
        do throws(RoomError) {
            try decode()
        } catch {
            queue.close()
            while queue.take() != nil { queue.countDrop() }
            countDrops()
            reportFailure(error)
        }
    }

    private func decode() throws(RoomError) {
        let decoder = try openDecoder()
        let pool = VideoBufferPool()
        var badKeyframes = 0
        while var received = queue.take() {
            let (renderers, sinks) = track.consumers
            let isPictureWanted = !received.isCatchUp && (!renderers.isEmpty || sinks.contains { $0.wantsPictures })
            var isShown = false
            let picture: VideoFrame?
            do throws(DecodingFailure) {
                picture = try received.frame.withBytes { bytes throws(DecodingFailure) in
                    try decoder.decode(bytes, timestamp: received.frame.info.timestamp) { dimensions in
                        isShown = !received.isCatchUp
                        return isPictureWanted ? pool.take(dimensions) : nil
                    }
                }
            } catch {
                badKeyframes += received.frame.info.isKeyframe ? 1 : 0
                try recover(from: error, badKeyframes: badKeyframes)
                continue
            }
            badKeyframes = 0
            received.decoded = MonotonicClock.now
            count(received, isShown: isShown)
            received.picture = picture
            if let picture {
                for renderer in renderers { renderer.render(picture) }
            }
            for sink in track.note(received) { sink.receive(received) }
        }
    }

    private func openDecoder() throws(RoomError) -> any FrameDecoder {
        do {
            return try makeDecoder()
        } catch {
            throw RoomError(.outOfResources, "The track cannot be decoded: \(error)")
        }
    }

    /// Skips to the next keyframe, and requests one if none waits.
    ///
    /// - Throws: `decodingFailed` if later frames cannot be decoded either.
    private func recover(from failure: DecodingFailure, badKeyframes: Int) throws(RoomError) {
        let isKeyframeNeeded = queue.skipToKeyframe()
        countDrops()
        if failure.isFinal { throw RoomError(.decodingFailed, "The track cannot be decoded. \(failure)") }
        guard badKeyframes < Self.maximumBadKeyframes else {
            let problem = "The track cannot be decoded: \(badKeyframes) keyframes in a row were damaged"
            throw RoomError(.decodingFailed, "\(problem). \(failure)")
        }
        if isKeyframeNeeded { track.requestKeyframe() }
    }

    private func count(_ received: ReceivedFrame, isShown: Bool) {
        guard let decoded = received.decoded else { return }
        track.update { statistics in
            statistics.framesDecoded += 1
            if isShown && statistics.timeToFirstFrame == nil {
                statistics.timeToFirstFrame = decoded.duration(since: subscribed)
            }
            statistics.clock = FrameAgeClock(received.clock.basis)
            statistics.ageErrorBound = received.clock.errorBound
        }
        guard isShown else { return }
        track.recordAge(decoded.duration(since: received.frame.info.timestamp))
    }
}
