public import Capture
public import MediaCore
import Threading

/// Video that this program publishes.
///
/// Several tracks may share one source: each has its own format request, its own counts, and uses the source by itself.
public final class LocalVideoTrack: Sendable {
    /// Where the frames come from.
    public let source: any VideoSource
    /// The track's name; unique among a participant's tracks.
    public let name: String
    /// What the track is announced to show: the source's `kind`, as `camera` or `screen`.
    public var sourceKind: String { source.kind.rawValue }

    private struct State: Sendable {
        var publisher: VideoPublisher?
        var isEnabled = true
        var request = VideoFormatRequest()
        /// What the source counted for the publisher, once it has stopped.
        var finalCapture: CaptureStatistics?
        /// Ends the waiting for a first frame when the source ends.
        var startWatch: Task<Void, Never>?
    }

    private let state = Monitor(State())
    /// Renderers that receive each captured frame.
    let renderers = Monitor<[any VideoRenderer]>([])

    /// A track of the frames of `source`; publishing it starts a source that can be started.
    ///
    /// Without a `name` (1 to 128 bytes of UTF-8) the track is named by the source's kind.
    public init(source: any VideoSource, name: String? = nil) {
        self.source = source
        self.name = name ?? source.kind.rawValue
    }

    /// Asks for another format of this track alone; fields that are `nil` stay as they are.
    ///
    /// A lower rate leaves frames out, and a size is made by cropping and scaling down. To change what the source itself
    /// makes, for all its tracks, use `source.requestOutputFormat(_:)`.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        let publisher = state.withLock { state in
            state.request.merge(request)
            return state.publisher
        }
        if let publisher { source.sinks.request(request, for: publisher) }
    }

    /// Whether pictures are sent; a track that is not enabled stays published, and its source runs on.
    public var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// Pauses or resumes sending; a track may also be published paused.
    ///
    /// Takes effect at once; returns when the message to the server is on its way. The first frame after a pause is a
    /// keyframe.
    public func setEnabled(_ isEnabled: Bool) async {
        let publisher = state.withLock { state in
            state.isEnabled = isEnabled
            state.publisher?.setEnabled(isEnabled)
            return state.publisher
        }
        await publisher?.announceEnabled()
    }

    /// Hands every captured picture to `renderer` while the track is published, as a preview; adding it twice does nothing.
    ///
    /// Called on the source's thread with the picture as it was captured, whether or not anybody receives the track. A
    /// renderer that is slow costs pictures of the track. The track keeps it until it is removed.
    public func addRenderer(_ renderer: any VideoRenderer) {
        renderers.withLock { renderers in
            if !renderers.contains(where: { $0 === renderer }) { renderers.append(renderer) }
        }
    }

    /// Hands pictures to `renderer` no longer; one that is under way may still come.
    public func removeRenderer(_ renderer: any VideoRenderer) {
        renderers.withLock { renderers in renderers.removeAll { $0 === renderer } }
    }

    /// The size as published, upright, cropped and scaled; `nil` before the first picture.
    ///
    /// Later pictures may have another one, if the source is asked for it.
    public var dimensions: Dimensions? { attached?.dimensions }

    /// What has become of the frames since the track was published; final once it is unpublished.
    ///
    /// May be read from any thread.
    public var statistics: LocalVideoTrackStatistics {
        let (publisher, finalCapture) = state.withLock { ($0.publisher, $0.finalCapture) }
        guard let publisher else { return LocalVideoTrackStatistics() }
        let capture = finalCapture ?? source.sinks.statistics(of: publisher)
        var statistics = publisher.statistics
        // What came here and what was dropped before: a source that counts nothing adds nothing.
        statistics.framesCaptured += capture.framesDropped.total
        statistics.framesMissed = capture.framesMissed
        statistics.timestampsReplaced = capture.timestampsReplaced
        statistics.captureDuration = capture.captureDuration
        statistics.framesDropped = statistics.framesDropped + capture.framesDropped
        return statistics
    }

    /// Why pictures are not encoded at present; `nil` while they are.
    ///
    /// Each such failure also comes as `RoomEvent.localTrackFailed`, and so does a failure of the source.
    public var failure: RoomError? { attached?.failure }

    /// Takes the publisher that works for the track from now on; `false` if it has one already.
    func attach(_ publisher: VideoPublisher) -> Bool {
        state.withLock { state in
            if let current = state.publisher, !current.isOver { return false }
            state.publisher = publisher
            state.finalCapture = nil
            publisher.setEnabled(state.isEnabled)
            return true
        }
    }

    // MARK: The source, on behalf of a publisher

    /// Hands the source's frames to `publisher`, and starts capturing for it.
    ///
    /// The publisher's waiting for a first frame ends when the source fails or comes to its end.
    ///
    /// - Throws: What the source throws; `stopSource(for:)` must be called all the same.
    func startSource(for publisher: VideoPublisher) async throws {
        let events = source.captureEvents()
        let watch = Task {
            for await event in events {
                switch event {
                case .failed, .finished: publisher.giveUpWaiting()
                case .interrupted, .interruptionEnded: break
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

    /// Ends the use of the source by `publisher`, which gets no frame after this returns; may be called twice.
    func stopSource(for publisher: VideoPublisher) async {
        await (source as? any VideoCapturer)?.stopCapture(for: publisher)
        let watch = state.withLock { state -> Task<Void, Never>? in
            guard state.publisher === publisher, state.finalCapture == nil else { return nil }
            state.finalCapture = source.sinks.remove(publisher)
            return state.startWatch
        }
        watch?.cancel()
    }

    /// How long a first frame may take: ten seconds, or three frame intervals of a slow source.
    var firstFramePatience: Duration {
        let rate = (source as? any VideoCapturer)?.captureFormat?.frameRate
        return max(.seconds(10), min(rate.map { $0.interval * 3 } ?? .zero, .seconds(3600)))
    }

    /// The rate at which frames will come: the source's, or a lower one that was asked for; 30 where nothing is known.
    func expectedFrameRate(for publisher: VideoPublisher) -> FrameRate {
        let captured = (source as? any VideoCapturer)?.captureFormat?.frameRate
        let requested = source.sinks.rate(of: publisher)
        return [captured, requested].compactMap(\.self).min() ?? FrameRate(30)
    }

    private var attached: VideoPublisher? { state.withLock { $0.publisher } }
}

/// What has become of a local track's frames.
///
/// Of a track that is not published any more: captured = encoded + dropped.
public struct LocalVideoTrackStatistics: Hashable, Sendable {
    /// Frames that the source took.
    public var framesCaptured = 0
    /// Frames that the device left out by itself, as its sequence numbers tell; not among those captured.
    public var framesMissed = 0
    /// Frames whose time stamp by the device could not be true, and was replaced by the time at which they were taken.
    public var timestampsReplaced = 0
    /// From the first to the last frame captured, by the device's stamps; zero where the source cannot say.
    ///
    /// The device's own rate is `framesCaptured + framesMissed - 1` frames in this time.
    public var captureDuration = Duration.zero
    /// Frames that were encoded.
    public var framesEncoded = 0
    /// Encoded frames that were handed to the network, whole.
    public var framesSent = 0
    /// Encoded frames that were given up because the network did not take them in time.
    public var framesExpired = 0
    /// Encoded frames that decode without any other.
    public var keyframes = 0
    /// Bytes handed to the network, with the headers of media packets.
    public var bytesSent = 0
    /// Captured frames that were not encoded, by reason.
    public var framesDropped = FrameDropCounts()

    /// Nothing yet.
    public init() {}
}
