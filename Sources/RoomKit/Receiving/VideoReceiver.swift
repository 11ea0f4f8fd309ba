import MediaCore
import RoomProtocol
import Threading
import VideoProcessing

/// Decodes a remote track on a thread of its own and hands the pictures to the slots of the track's renderers.
final class VideoReceiver: Sendable {
    let track: RemoteVideoTrack
    private let clock: ClockBox
    /// Which frames come from the server's cache; used on the connection's thread only.
    private let catchUp: Monitor<CatchUpWindow>
    private let subscribed: MonotonicInstant
    private let queue = FrameQueue()
    private let thread = Monitor<WorkerThread?>(nil)
    private let threadEnded = Promise<Void>()
    private let codec: TrackCodec
    private let now: @Sendable () -> MonotonicInstant
    private let reportFailure: @Sendable (VideoReceiver, RoomError) -> Void

    /// The reception ends after this many undecodable keyframes in a row: 8 s at the relay's one keyframe per second.
    private static let maximumBadKeyframes = 8

    /// Starts to decode.
    ///
    /// `start` says how the packets begin, and `subscribed` is when the track was requested. `former` is the track's
    /// previous receiver, which was told to stop. It passes on its last pictures first, so that no older picture
    /// follows a newer one. `reportFailure` is called at most once, on the decoder's thread, if the track cannot be
    /// decoded. Nothing is decoded after that. `now` reads the clock there; tests bring their own.
    ///
    /// - Throws: `outOfResources` if there is no thread.
    init(
        track: RemoteVideoTrack,
        codec: TrackCodec,
        clock: ClockBox,
        start: ClientSession.Subscription,
        subscribed: MonotonicInstant,
        after former: VideoReceiver? = nil,
        now: @escaping @Sendable () -> MonotonicInstant = { MonotonicClock.now },
        reportFailure: @escaping @Sendable (VideoReceiver, RoomError) -> Void = { _, _ in }
    ) throws(RoomError) {
        self.track = track
        self.clock = clock
        catchUp = Monitor(CatchUpWindow(start))
        self.subscribed = subscribed
        self.codec = codec
        self.now = now
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
        track.measure { $0.received(frame.size, isKeyframe: info.isKeyframe, at: now) }
        let place = catchUp.withLock { window in
            let isCatchUp = window.contains(info, at: now)
            return (isCatchUp: isCatchUp, isPresent: isCatchUp && window.isPresent(info))
        }
        let received = ReceivedFrame(
            frame: frame,
            received: now,
            relayed: header.relayTime.map { estimate.instant(at: $0) },
            decoded: nil,
            picture: nil,
            isCatchUp: place.isCatchUp,
            isPresent: place.isPresent,
            clock: estimate,
            extensions: assembled.extensions
        )
        if isAfterLoss { queue.frameWasLost() }
        let outcome = queue.put(received)
        // A frame that is taken may have replaced others.
        countDrops()
        if outcome == .needsKeyframe { track.requestKeyframe() }
    }

    /// Counts a frame that is encrypted, on the connection's thread.
    func receiveEncrypted() {
        track.measure { $0.receivedUnreadable() }
        queue.countDrop(.encrypted)
        countDrops()
    }

    /// Counts the frames that were dropped since the last call; called on the connection's thread and on the decoder's.
    private func countDrops() {
        if let dropped = queue.takeDropped() { track.measure { $0.dropped(dropped) } }
    }

    /// Stops taking frames; waiting frames are still decoded.
    func close() {
        queue.close()
    }

    /// Stops after the waiting frames are decoded, and waits for the thread.
    func stop() async {
        close()
        // This suspends instead of blocking, because waiting frames take a while.
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
            reportFailure(self, error)
        }
    }

    private func decode() throws(RoomError) {
        let decoder = try openDecoder()
        let pool = VideoBufferPool()
        let scaler = FrameScaler()
        var (opening, display) = (OpeningGate(), DisplayGate())
        var badKeyframes = 0
        var (dimensions, uprightDimensions): (Dimensions?, Dimensions?)
        while var received = nextFrame() {
            let began = now()
            let isInTime = isLive(received, &opening) && isInTime(received, &display, at: began)
            // A file takes each picture, however late. One that stands still is for renderers that come later, too.
            let isPictureWanted =
                isInTime && (!track.renderers.isEmpty || received.frame.info.isRepeat)
                || (!received.isCatchUp || received.isPresent) && track.isPictureRecorded
            var hasPicture = false
            let picture: VideoFrame?
            do throws(DecodingFailure) {
                picture = try decode(received.frame, with: decoder) { size in
                    hasPicture = true
                    dimensions = size
                    return isPictureWanted ? pool.take(size) : nil
                }
            } catch {
                badKeyframes += received.frame.info.isKeyframe ? 1 : 0
                try recover(from: error, badKeyframes: badKeyframes)
                continue
            }
            badKeyframes = 0
            let ended = now()
            received.decoded = ended
            if hasPicture { uprightDimensions = dimensions.map { received.upright($0) } }
            received.dimensions = dimensions
            received.uprightDimensions = uprightDimensions
            received.isShown = isInTime && hasPicture && display.stillShows(after: ended.duration(since: began))
            received.picture = picture.map { received.finished($0, by: scaler) }
            count(received, at: ended, decodeTime: ended.duration(since: began))
            if received.isShown, let picture = received.picture {
                track.show(picture)
            } else {
                track.renderers.forgetStill()
            }
            for sink in track.note(received) { sink.receive(received) }
        }
    }

    /// Waits for the next frame, and notes meanwhile if the picture stands still for too long.
    private func nextFrame() -> ReceivedFrame? {
        while true {
            switch queue.take(by: track.standstill) {
            case .frame(let received): return received
            case .nothing: track.noteStandstill(at: MonotonicClock.now)
            case .end: return nil
            }
        }
    }

    private func isLive(_ received: ReceivedFrame, _ opening: inout OpeningGate) -> Bool {
        opening.shows(
            relayed: received.relayed,
            received: received.received,
            pathDelay: received.clock.errorBound,
            isCatchUp: received.isCatchUp,
            isPresent: received.isPresent
        )
    }

    private func isInTime(_ received: ReceivedFrame, _ display: inout DisplayGate, at now: MonotonicInstant) -> Bool {
        display.shows(
            received.frame.info,
            clockOffset: received.clock.offset,
            newestWaiting: queue.newestCapture,
            at: now
        )
    }

    /// Decodes a frame; one that is announced as a keyframe must be one.
    ///
    /// The server does not compare the two. After a loss, a frame that only claims to be a keyframe would be decoded
    /// with the pictures from before the loss, without an error.
    private func decode(
        _ frame: EncodedFrame,
        with decoder: any FrameDecoder,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(DecodingFailure) -> VideoFrame? {
        try frame.withBytes { bytes throws(DecodingFailure) in
            guard !frame.info.isKeyframe || codec.keyframeDimensions(bytes) != nil else {
                throw DecodingFailure(isFinal: false, description: "A frame that is announced as a keyframe is none.")
            }
            return try decoder.decode(bytes, timestamp: frame.info.timestamp, makeBuffer: makeBuffer)
        }
    }

    private func openDecoder() throws(RoomError) -> any FrameDecoder {
        do {
            return try codec.makeDecoder()
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
            throw RoomError(.decodingFailed, "\(problem); publish it again. \(failure)")
        }
        if isKeyframeNeeded { track.requestKeyframe() }
    }

    private func count(_ received: ReceivedFrame, at now: MonotonicInstant, decodeTime: Duration) {
        let decoded = ReceptionMeter.Decoded(
            info: received.frame.info,
            dimensions: received.uprightDimensions,
            isCatchUp: received.isCatchUp,
            isShown: received.isShown,
            at: now,
            decodeTime: decodeTime,
            clock: received.clock,
            subscribed: subscribed
        )
        track.count(decoded)
    }
}
