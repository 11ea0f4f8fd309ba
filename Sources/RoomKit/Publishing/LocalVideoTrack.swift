public import Capture
public import MediaCore
import Threading

/// Video that this program publishes.
///
/// Several tracks may share one source. Each has its own format request and counts, and starts and stops using the
/// source independently.
public final class LocalVideoTrack: Sendable {
    /// The source of the frames.
    public let source: any VideoSource
    /// The track's name; unique among a participant's tracks.
    public let name: String
    /// The announced kind of source, which is the source's `kind`, such as `camera` or `screen`.
    public var sourceKind: String { source.kind.rawValue }

    private struct State: Sendable {
        var publisher: VideoPublisher?
        var isEnabled = true
        var request = VideoFormatRequest()
        var transform = VideoTransform()
        /// The source's counts for the publisher, once the publisher has stopped using it.
        var finalCapture: CaptureStatistics?
        /// Ends the wait for a first frame when the source ends.
        var startWatch: Task<Void, Never>?
    }

    private let state = Monitor(State())
    /// Passes each captured frame to the renderers, as a sink of the source while there are any.
    private let preview = PreviewSink()
    /// Whether `preview` is a sink of the source.
    private let isPreviewed = Monitor(false)

    /// Creates a track with the frames of `source`; publishing the track starts the source, if it can be started.
    ///
    /// The name has 1 to 128 bytes of UTF-8. If `name` is `nil`, the source's kind is the name.
    public init(source: any VideoSource, name: String? = nil) {
        self.source = source
        self.name = name ?? source.kind.rawValue
    }

    deinit {
        source.sinks.remove(preview)
    }

    /// Requests another format for this track alone, in place of what was requested for it before.
    ///
    /// A field that is `nil` means "don't care": it is as the source has it.
    ///
    /// For a lower rate, frames are left out. For a size, frames are cropped and scaled down; those of a screen are
    /// scaled to fit, and nothing is cut off. To change the format of the source itself, for all its tracks, use
    /// `source.requestOutputFormat(_:)`.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        let publisher = state.withLock { state in
            state.request = request
            return state.publisher
        }
        if let publisher { source.sinks.request(request, for: publisher) }
    }

    /// Requests all of `format` for this track alone; see `requestOutputFormat(_:)` with a `VideoFormatRequest`.
    public func requestOutputFormat(_ format: VideoFormat) {
        requestOutputFormat(VideoFormatRequest(format))
    }

    /// Removes the request for this track alone; the track then has the source's format.
    public func resetOutputFormat() {
        let publisher = state.withLock { state in
            state.request = VideoFormatRequest()
            return state.publisher
        }
        if let publisher { source.sinks.resetRequest(for: publisher) }
    }

    /// How the track is encoded: as `publish` was told, or as it was set since; `nil` while the track is not published.
    public var encodingParameters: VideoEncodingParameters? { publisherInUse?.parameters }

    /// Encodes the track in another way from now on, without a keyframe and without another publication.
    ///
    /// All parameters are replaced: read `encodingParameters`, change some, and set them. Values are clamped as those of
    /// `publish` are. A lower bitrate holds from the next frame on. A higher one is reached as fast as the network
    /// allows. The size of the pictures may follow some seconds later, with a keyframe. The bitrates mean nothing for
    /// frames that are compressed already. The next call of `publish` begins with its own options.
    ///
    /// Any thread may call this.
    ///
    /// - Throws: `notPublished` if the track is neither published nor about to be. A call of `publish` that still waits
    ///   for the end of an earlier publication does not count.
    public func setEncodingParameters(_ parameters: VideoEncodingParameters) throws(RoomError) {
        guard let publisher = publisherInUse else {
            let problem = "The encoding of \"\(name)\" cannot be changed: the track is not published"
            throw RoomError(.notPublished, "\(problem). Publish it, or give the parameters to publish.")
        }
        publisher.setParameters(parameters)
    }

    /// The publisher that works for the track, or is about to; `nil` once it has begun to end.
    private var publisherInUse: VideoPublisher? { attached.flatMap { $0.isEnding || $0.isOver ? nil : $0 } }

    /// Crops, turns and mirrors the pictures of this track, from the next one on; nobody has to subscribe again.
    ///
    /// It holds for every source, before the track is published and while it is, and in its next publication. If the
    /// source stands still, its last picture is shown again in the new way. A turn is added to that which the source
    /// gives its frames, and `VideoPublishOptions.orientation` says who turns them. A size that was requested is that
    /// of the picture before `crop` and `rotation`. The slate in place of a camera that is gone is neither turned nor mirrored.
    ///
    /// Frames that are compressed already are not cropped. Their packets say how to turn and mirror them.
    ///
    /// Any thread may set it.
    public var transform: VideoTransform {
        get { state.withLock { $0.transform } }
        set {
            let publisher = state.withLock { state in
                state.transform = newValue
                state.publisher?.setTransform(newValue)
                return state.publisher
            }
            publisher?.showPresentShape()
            publisher?.needPicture()
        }
    }

    /// Whether pictures are sent; a track that is not enabled stays published, and its source keeps running.
    public var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// Pauses or resumes sending; a track that is paused may be published too.
    ///
    /// It takes effect at once. It returns when the message to the server is queued. The first frame after a pause is a
    /// keyframe.
    public func setEnabled(_ isEnabled: Bool) async {
        let publisher = state.withLock { state in
            state.isEnabled = isEnabled
            state.publisher?.setEnabled(isEnabled)
            return state.publisher
        }
        if isEnabled { publisher?.needPicture() }
        await publisher?.announceEnabled()
    }

    /// Passes every picture that the source delivers to `renderer`, as a preview; adding it twice does nothing.
    ///
    /// The source delivers while the track is published, and while the application captures (`startCapture()`), so that
    /// there is a preview before the track is in a room, too. A source of compressed frames has none.
    ///
    /// The renderer is called on `executor`, or else on a thread of its own, which begins with the first picture. If it
    /// is slow it misses pictures, and each call brings the newest one. It never holds up the track or other renderers.
    /// It gets the picture as it was captured, without `transform`, even if nobody receives the track. The track keeps the
    /// renderer until it is removed.
    public func addRenderer(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)? = nil) {
        isPreviewed.withLock { isPreviewed in
            preview.renderers.add(renderer, on: executor)
            if !isPreviewed { source.sinks.add(preview) }
            isPreviewed = true
        }
    }

    /// Stops passing pictures to `renderer`; a call that has already begun may still finish, and is not waited for.
    ///
    /// - Returns: The renderer's counts, without a call that still runs; `nil` if it was not added.
    @discardableResult
    public func removeRenderer(_ renderer: any VideoRenderer) -> RendererStatistics? {
        isPreviewed.withLock { isPreviewed in
            let statistics = preview.renderers.remove(renderer)
            if isPreviewed, preview.renderers.isEmpty {
                source.sinks.remove(preview)
                preview.renderers.forgetStill()
                isPreviewed = false
            }
            return statistics
        }
    }

    /// Counts of the pictures for `renderer`; `nil` if it is not added.
    public func rendererStatistics(of renderer: any VideoRenderer) -> RendererStatistics? {
        preview.renderers.statistics(of: renderer)
    }

    /// The server's id for the track, `TR…`, while it is published; each publication has another one.
    public var sid: String? { attached.flatMap { $0.isOver ? nil : $0.trackID } }

    /// The published size of the last picture: upright, cropped and scaled; `nil` before the first picture.
    ///
    /// `RoomEvent.localTrackDimensionsChanged` reports changes. The encodings may be smaller, as the network and the CPU
    /// allow. How many encodings there are depends on the first picture.
    public var dimensions: Dimensions? { attached?.dimensions }

    /// The highest rate at which pictures are published; `nil` before the track is published, and if it is not known.
    ///
    /// It is the lowest of these rates: that of the source, which is measured if it does not state one or sends more than
    /// 30 frames a second, those requested of the source and of this track, and the 30
    /// frames a second that a camera delivers by default. The network and the CPU may allow less.
    public var frameRate: FrameRate? { attached.flatMap { frameRate(for: $0) } }

    /// Counts of the frames since the track was published; final once the track is unpublished.
    ///
    /// Any thread may read this.
    public var statistics: LocalVideoTrackStatistics {
        let (publisher, finalCapture) = state.withLock { ($0.publisher, $0.finalCapture) }
        guard let publisher else { return LocalVideoTrackStatistics() }
        let capture = finalCapture ?? source.sinks.statistics(of: publisher)
        var statistics = publisher.statistics
        // The publisher counts the frames that reached it. The source adds those it dropped before, if it counts any.
        statistics.framesCaptured += capture.framesDropped.total
        statistics.framesRepeated += capture.framesRepeated
        statistics.framesMissed = capture.framesMissed
        statistics.timestampsReplaced = capture.timestampsReplaced
        statistics.framesSubstituted = capture.framesSubstituted
        statistics.interruptions = capture.interruptions
        statistics.captureDuration = capture.captureDuration
        statistics.captureDelay = capture.meanCaptureDelay
        statistics.capturedFramesPerSecond = capture.framesPerSecond
        statistics.framesDropped = statistics.framesDropped + capture.framesDropped
        return statistics
    }

    /// Why pictures cannot be encoded at present; `nil` while they can.
    ///
    /// Each such failure is also reported as `RoomEvent.localTrackFailed`, and so is a failure of the source.
    public var failure: RoomError? { attached?.failure }

    /// Attaches the publisher that works for the track from now on.
    ///
    /// - Returns: The publisher that the track still has, so that this one is not attached; `nil` if there is none.
    func attach(_ publisher: VideoPublisher) -> VideoPublisher? {
        state.withLock { state in
            if let current = state.publisher, current !== publisher, !current.isOver { return current }
            state.publisher = publisher
            state.finalCapture = nil
            publisher.setEnabled(state.isEnabled)
            publisher.setTransform(state.transform)
            return nil
        }
    }

    // MARK: The source, on behalf of a publisher

    /// Connects `publisher` to the source, and starts capturing for it.
    ///
    /// If the source fails or ends, the publisher stops waiting for a first frame.
    ///
    /// - Throws: The error of the source's start; `stopSource(for:)` must be called even then.
    func startSource(for publisher: VideoPublisher) async throws {
        let events = source.captureEvents()
        let watch = Task { [preview, weak source] in
            for await event in events {
                switch event {
                case .failed, .finished:
                    // The application may have started it again meanwhile.
                    if (source as? any VideoCapturer)?.isCapturing == true { continue }
                    preview.renderers.forgetStill()
                    publisher.sourceEnded()
                case .interrupted, .interruptionEnded:
                    let capturer = source as? any CoreCapturer
                    publisher.sourceInterrupted(since: capturer?.core.interruptedSince)
                case .noFramesCaptured, .warning: break
                }
            }
        }
        let request = state.withLock { state in
            state.startWatch = watch
            return state.request
        }
        source.sinks.add(publisher)
        if request != VideoFormatRequest() { source.sinks.request(request, for: publisher) }
        try await (source as? any VideoCapturer)?.startCapture(for: publisher)
    }

    /// Disconnects `publisher` from the source; it gets no frame after this returns; a second call does nothing.
    func stopSource(for publisher: VideoPublisher) async {
        await (source as? any VideoCapturer)?.stopCapture(for: publisher)
        let watch = state.withLock { state -> Task<Void, Never>? in
            guard state.publisher === publisher, state.finalCapture == nil else { return nil }
            state.finalCapture = source.sinks.remove(publisher)
            return state.startWatch
        }
        watch?.cancel()
    }

    /// How long to wait for a first frame: ten seconds, or three frame intervals of a slow source.
    var firstFramePatience: Duration {
        let rate = (source as? any VideoCapturer)?.captureFormat?.frameRate
        return max(.seconds(10), min(rate.map { $0.interval * 3 } ?? .zero, .seconds(3600)))
    }

    /// The highest rate at which pictures go out to `publisher`; `nil` if nothing is known.
    ///
    /// Requests do not count for frames that are compressed already: none of them is left out.
    func frameRate(for publisher: VideoPublisher) -> FrameRate? {
        let stated = (source as? any VideoCapturer)?.captureFormat?.frameRate
        let measured = source.sinks.statistics(of: publisher).framesPerSecond.flatMap(Self.usualRate)
        let limit = publisher.relay == nil ? source.sinks.rate(of: publisher) : nil
        return [[stated, measured].compactMap(\.self).max(), limit].compactMap(\.self).min()
    }

    /// The usual rate above 30 frames a second that covers a measured one; `nil` if there is none.
    ///
    /// Sources that pictures are pushed or piped into do not know their rate, and 30 is taken then.
    private static func usualRate(covering measured: Double) -> FrameRate? {
        guard measured > 33 else { return nil }
        return FrameRate([50, 60, 75, 90, 120, 144].first { measured <= 1.1 * Double($0) } ?? 240)
    }

    private var attached: VideoPublisher? { state.withLock { $0.publisher } }
}

/// Hands the frames of a source to the renderers of a track, as they were captured.
private final class PreviewSink: VideoSink {
    let renderers = TrackRenderers()

    var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {}

    func onVideoFrame(_ frame: VideoFrame) {
        renderers.offer(frame)
    }
}
