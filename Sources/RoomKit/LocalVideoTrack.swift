public import MediaCore
import Threading

/// Video that this program publishes.
public final class LocalVideoTrack: Sendable {
    /// Where the pictures come from.
    public let source: any VideoSource
    /// What the track is called; unique among a participant's tracks.
    public let name: String
    /// What it is announced to show: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    public let sourceKind: String

    private struct State: Sendable {
        var publisher: VideoPublisher?
        var isEnabled = true
    }

    private let state = Monitor(State())
    /// Who previews the pictures.
    let renderers = Monitor<[any VideoRenderer]>([])

    /// A track of the pictures of `source`; publishing it starts a source that can be started.
    ///
    /// Without a `name` (1 to 128 bytes of UTF-8) it is called as its `sourceKind`.
    public init(source: any VideoSource, name: String? = nil) {
        self.source = source
        self.sourceKind =
            switch source {
            case is CameraSource: "camera"
            case is PatternSource: "pattern"
            case is NoiseSource: "noise"
            case is ClipSource: "file"
            default: source.isScreencast ? "screen" : "other"
            }
        self.name = name ?? sourceKind
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
        await publisher?.announceEnabled(isEnabled)
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

    /// What has become of the pictures since the track was published; final once it is withdrawn.
    ///
    /// May be read from any thread.
    public var statistics: LocalVideoTrackStatistics {
        var statistics = attached?.statistics ?? LocalVideoTrackStatistics()
        guard let capturer = source as? any VideoCapturer else { return statistics }
        let capture = capturer.captureStatistics
        statistics.framesCaptured = capture.framesCaptured
        statistics.framesMissed = capture.framesMissed
        statistics.captureDuration = capture.captureDuration
        statistics.framesDropped = statistics.framesDropped + capture.framesDropped
        return statistics
    }

    /// Why pictures are not encoded at present; `nil` while they are.
    ///
    /// Each such failure also comes as `RoomEvent.localTrackFailed`, and so does a camera's.
    public var failure: RoomError? { attached?.failure }

    /// Takes the publisher that works for the track from now on; `false` if it has one already.
    func attach(_ publisher: VideoPublisher) -> Bool {
        state.withLock { state in
            if let current = state.publisher, !current.isOver { return false }
            state.publisher = publisher
            publisher.setEnabled(state.isEnabled)
            return true
        }
    }

    private var attached: VideoPublisher? { state.withLock { $0.publisher } }
}

/// What has become of a local track's pictures.
///
/// Of a track that is not published any more: captured = encoded + dropped.
public struct LocalVideoTrackStatistics: Hashable, Sendable {
    /// Pictures that the source took.
    public var framesCaptured = 0
    /// Pictures that the device left out by itself, as its sequence numbers tell; not among those captured.
    public var framesMissed = 0
    /// From the first to the last picture captured, by the device's stamps; zero where the source cannot say.
    ///
    /// The device's own rate is `framesCaptured + framesMissed - 1` pictures in this time.
    public var captureDuration = Duration.zero
    /// Pictures that were encoded.
    public var framesEncoded = 0
    /// Encoded pictures that were handed to the network, whole.
    public var framesSent = 0
    /// Encoded pictures that were given up because the network did not take them in time.
    public var framesExpired = 0
    /// Encoded pictures that decode without any other.
    public var keyframes = 0
    /// Bytes handed to the network, with the headers of media packets.
    public var bytesSent = 0
    /// Captured pictures that were not encoded, by reason.
    public var framesDropped = FrameDropCounts()

    /// Nothing yet.
    public init() {}
}
