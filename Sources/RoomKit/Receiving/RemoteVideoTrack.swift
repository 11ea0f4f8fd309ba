public import MediaCore
import RoomProtocol
import Threading

/// Video that somebody else publishes.
public final class RemoteVideoTrack: Sendable {
    /// The server's id for the track, `TR…`.
    public let sid: String
    /// What the publisher calls it.
    public let name: String
    /// What it shows: `camera`, `screen`, `pattern`, `noise`, `file` or `other`.
    public let sourceKind: String
    /// The identity of the participant who publishes it.
    public let publisherIdentity: String
    /// The size as published; frames may be smaller.
    public let dimensions: Dimensions
    /// The rate as published, in frames per second.
    public let frameRate: Double
    /// The codec as published, such as `vp8`.
    public let codec: String?
    /// How its frames are decoded and stored; `nil` for a codec that this library does not know.
    let trackCodec: TrackCodec?

    private struct State: Sendable {
        var isEnabled: Bool
        var renderers: [any VideoRenderer] = []
        var sinks: [any ReceivedFrameSink] = []
        var opening = TrackOpening()
        var statistics = RemoteVideoTrackStatistics()
        var ages = LatencyStatistics()
        var requestKeyframe: (@Sendable () -> Void)?
        /// Receivers whose threads still run.
        var receivers = 0
        /// Whether the track was withdrawn, or the session is over.
        var isEnded = false

        /// Whether no further frame will come.
        var isFinished: Bool { isEnded && receivers == 0 }

        /// The sinks that get no further frame, once that is certain.
        mutating func takeFinishedSinks() -> [any ReceivedFrameSink] {
            guard isFinished else { return [] }
            opening = TrackOpening()
            defer { sinks = [] }
            return sinks
        }
    }

    private let state: Monitor<State>
    private let finished = Promise<Void>()

    init(_ info: TrackInfo, publisherIdentity: String) {
        sid = info.id
        name = info.name
        sourceKind = info.source
        self.publisherIdentity = publisherIdentity
        dimensions = info.video?.dimensions ?? Dimensions(width: 0, height: 0)
        frameRate = info.video?.frameRate ?? 0
        codec = info.codec
        trackCodec = TrackCodec.named(info.codec, kind: info.kind)
        state = Monitor(State(isEnabled: info.enabled))
    }

    /// Whether this library decodes the codec; a track of another codec is visible and cannot be received.
    public var isSupported: Bool { trackCodec != nil }

    /// Whether the publisher sends at present.
    public var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// What has been received so far; may be read from any thread.
    public var statistics: RemoteVideoTrackStatistics {
        state.withLock { state in
            var statistics = state.statistics
            if let p50 = state.ages.percentile(50), let p95 = state.ages.percentile(95), let max = state.ages.maximum {
                statistics.frameAge = FrameAgeSummary(p50: p50, p95: p95, maximum: max)
            }
            return statistics
        }
    }

    /// Hands every decoded picture to `renderer`, on the track's decoder thread; adding it twice does nothing.
    ///
    /// Pictures that a late joiner gets from the relay's cache are not handed out: they are stale. The track keeps the
    /// renderer until it is removed.
    public func addRenderer(_ renderer: any VideoRenderer) {
        state.withLock { state in
            if !state.renderers.contains(where: { $0 === renderer }) { state.renderers.append(renderer) }
        }
    }

    /// Hands pictures to `renderer` no longer; one that is under way may still come.
    public func removeRenderer(_ renderer: any VideoRenderer) {
        state.withLock { state in state.renderers.removeAll { $0 === renderer } }
    }

    /// Waits until the track has been withdrawn, or the session has ended, and the last picture has been handed out.
    ///
    /// Its `statistics` are final then. A cancelled task waits as well.
    public func ended() async {
        _ = await finished.value()
    }

    /// Hands every decoded frame to `sink`, from the last keyframe on if that came only just now.
    func addSink(_ sink: any ReceivedFrameSink) {
        change { state in
            sink.begin(with: state.opening.frames)
            state.sinks.append(sink)
        }
    }

    /// No receiver will begin any more; the sinks end with the last frame of the receivers that still run.
    func end() {
        change { $0.isEnded = true }
    }

    func receiverBegan() {
        change { $0.receivers += 1 }
    }

    /// A receiver has handed out its last frame.
    func receiverEnded() {
        change { $0.receivers -= 1 }
    }

    /// Changes the state, and ends the sinks if the track is finished by that.
    private func change(_ body: (inout State) -> Void) {
        let (sinks, isFinished) = state.withLock { state in
            body(&state)
            return (state.takeFinishedSinks(), state.isFinished)
        }
        for sink in sinks { sink.end() }
        if isFinished { finished.fulfill(()) }
    }

    func removeSink(_ sink: any ReceivedFrameSink) {
        state.withLock { state in state.sinks.removeAll { $0 === sink } }
    }

    /// Who takes frames now.
    var consumers: (renderers: [any VideoRenderer], sinks: [any ReceivedFrameSink]) {
        state.withLock { ($0.renderers, $0.sinks) }
    }

    /// Notes a decoded frame, and gives those that are to take it.
    func note(_ frame: ReceivedFrame) -> [any ReceivedFrameSink] {
        state.withLock { state in
            state.opening.note(frame)
            return state.sinks
        }
    }

    func setEnabled(_ isEnabled: Bool) {
        state.withLock { $0.isEnabled = isEnabled }
    }

    func setKeyframeRequest(_ request: (@Sendable () -> Void)?) {
        state.withLock { $0.requestKeyframe = request }
    }

    /// Asks the publisher for a keyframe; the relay bounds how often.
    func requestKeyframe() {
        state.withLock { $0.requestKeyframe }?()
    }

    func recordAge(_ age: Duration) {
        state.withLock { $0.ages.record(age) }
    }

    func update(_ body: (inout RemoteVideoTrackStatistics) -> Void) {
        state.withLock { body(&$0.statistics) }
    }
}

/// How old frames were when they had been decoded, from capture on.
public struct FrameAgeSummary: Hashable, Sendable {
    /// Half of the frames were no older.
    public var p50: Duration
    /// 95 of 100 frames were no older.
    public var p95: Duration
    /// No frame was older.
    public var maximum: Duration
}

/// How a capture time, by the publisher's clock, was brought to this machine's.
public enum FrameAgeClock: String, Hashable, Sendable {
    /// Both ends read the same clock: they run on one machine, in one boot.
    case sameHost = "same-host"
    /// From round trips to the server; wrong by `RemoteVideoTrackStatistics.ageErrorBound` at the most.
    case estimated

    init(_ basis: ClockEstimate.Basis) {
        switch basis {
        case .sameHost: self = .sameHost
        case .estimated: self = .estimated
        }
    }
}

/// What has been received of a remote track.
public struct RemoteVideoTrackStatistics: Hashable, Sendable {
    /// Whole frames that came, those of the relay's cache among them.
    public var framesReceived = 0
    /// Frames that were decoded.
    public var framesDecoded = 0
    /// Frames that were left out because the decoder did not keep up, or that could not be decoded.
    public var framesDropped = 0
    /// Frames that decode without any other.
    public var keyframes = 0
    /// Compressed bytes, without headers.
    public var bytes = 0
    /// From asking for the track to its first picture that is shown; frames of the relay's cache are not.
    public var timeToFirstFrame: Duration?
    /// From capture to decoded, of every frame that was shown; `nil` before the first.
    public var frameAge: FrameAgeSummary?
    /// Where the ages come from.
    public var clock = FrameAgeClock.estimated
    /// The most by which the ages can be wrong for the clock of this end; the publisher's error comes on top.
    public var ageErrorBound: Duration = .zero

    /// Nothing yet.
    public init() {}
}
