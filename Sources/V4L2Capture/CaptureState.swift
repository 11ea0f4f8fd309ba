import MediaCore
import Threading

/// What a camera source and its capture thread share.
final class CaptureState: Sendable {
    private struct Fields {
        /// The sink while nothing is captured; whoever set it keeps it alive.
        weak var idleSink: (any VideoSink)?
        /// The sink from start to stop: kept alive, so that no frame meets one half gone.
        var activeSink: (any VideoSink)?
        var request: VideoFormatRequest
        var run: CaptureRun?
        var captureFormat: VideoFormat?
        var statistics = CaptureStatistics()
        var failure: CameraError?
        var listeners: [Int: AsyncStream<CameraError>.Continuation] = [:]
        var nextListener = 0
    }

    /// What a caller of `claim` is to do.
    enum Claim {
        /// Launch this run, which is new.
        case launch(CaptureRun)
        /// This run captures already, or is about to.
        case share(CaptureRun)
        /// Wait for this run's end, then claim again.
        case outlast(CaptureRun)
    }

    private let fields: Monitor<Fields>

    /// Nothing captured yet, and `request` asked for.
    init(request: VideoFormatRequest) {
        fields = Monitor(Fields(request: request))
    }

    /// Where frames go.
    var sink: (any VideoSink)? {
        get { fields.withLock { $0.activeSink ?? $0.idleSink } }
        set {
            let earlier = fields.withLock { fields in
                let earlier = fields.activeSink
                fields.idleSink = newValue
                if fields.run?.isEnding == false { fields.activeSink = newValue }
                return earlier
            }
            // Outside the lock: it may be the last reference, and the sink's end may come back here.
            withExtendedLifetime(earlier) {}
        }
    }

    /// What was asked for, with fields left open filled from what the sink would like.
    var request: VideoFormatRequest {
        let (own, sink) = fields.withLock { ($0.request, $0.activeSink ?? $0.idleSink) }
        guard let wishes = sink?.sourceRequirements else { return own }
        return VideoFormatRequest(
            dimensions: own.dimensions ?? wishes.dimensions,
            frameRate: own.frameRate ?? wishes.frameRate,
            pixelFormat: own.pixelFormat ?? wishes.pixelFormat
        )
    }

    var captureFormat: VideoFormat? { fields.withLock { $0.captureFormat } }
    var statistics: CaptureStatistics { fields.withLock { $0.statistics } }
    var failure: CameraError? { fields.withLock { $0.failure } }
    var run: CaptureRun? { fields.withLock { $0.run } }

    /// Takes over the fields of `request` that are not `nil`.
    func merge(_ request: VideoFormatRequest) {
        fields.withLock { fields in
            fields.request.dimensions = request.dimensions ?? fields.request.dimensions
            fields.request.frameRate = request.frameRate ?? fields.request.frameRate
            fields.request.pixelFormat = request.pixelFormat ?? fields.request.pixelFormat
        }
    }
}

// MARK: - Start and end

extension CaptureState {
    /// Makes `run` the one that captures, unless another does.
    func claim(_ run: CaptureRun) -> Claim {
        fields.withLock { fields in
            if let earlier = fields.run { return earlier.isEnding ? .outlast(earlier) : .share(earlier) }
            fields.run = run
            fields.activeSink = fields.idleSink
            fields.statistics = CaptureStatistics()
            fields.captureFormat = nil
            fields.failure = nil
            return .launch(run)
        }
    }

    /// Notes what the camera was set to.
    func began(_ format: VideoFormat) {
        fields.withLock { $0.captureFormat = format }
    }

    /// Lets the sink go, at the end of the capture thread's work, and tells of `failure`.
    func ended(failure: CameraError?) {
        let (sink, listeners) = fields.withLock { fields in
            let sink = fields.activeSink
            fields.activeSink = nil
            fields.failure = failure
            return (sink, failure == nil ? [] : Array(fields.listeners.values))
        }
        // Outside the lock, as above.
        withExtendedLifetime(sink) {}
        if let failure { for listener in listeners { listener.yield(failure) } }
    }

    /// Forgets `run`, which has ended and been joined.
    func forget(_ run: CaptureRun) {
        fields.withLock { if $0.run === run { $0.run = nil } }
    }
}

// MARK: - On the capture thread

extension CaptureState {
    /// Where the next frame goes, and what was asked for.
    var delivery: (sink: (any VideoSink)?, request: VideoFormatRequest) {
        fields.withLock { ($0.activeSink, $0.request) }
    }

    /// Makes the counts visible.
    func publish(_ statistics: CaptureStatistics) {
        fields.withLock { $0.statistics = statistics }
    }
}

// MARK: - Listeners

extension CaptureState {
    /// A stream of the failures to come; it keeps the newest one that was not taken.
    func failures() -> AsyncStream<CameraError> {
        let (stream, continuation) = AsyncStream.makeStream(of: CameraError.self, bufferingPolicy: .bufferingNewest(1))
        let number = fields.withLock { fields in
            fields.nextListener += 1
            fields.listeners[fields.nextListener] = continuation
            return fields.nextListener
        }
        continuation.onTermination = { [weak self] _ in self?.removeListener(number) }
        return stream
    }

    private func removeListener(_ number: Int) {
        let listener = fields.withLock { $0.listeners.removeValue(forKey: number) }
        withExtendedLifetime(listener) {}
    }

    /// Ends all streams of failures.
    func finishListeners() {
        for listener in fields.withLock({ Array($0.listeners.values) }) { listener.finish() }
    }
}
