import Adaptation
import MediaCore
import Threading

extension VideoPublisher {
    /// The counts of the frames that reached the publisher, and the state of its encodings.
    var statistics: LocalVideoTrackStatistics {
        var statistics = LocalVideoTrackStatistics()
        let counts = tally.counts
        statistics.framesCaptured = counts.framesCaptured
        statistics.framesRepeated = counts.framesRepeated
        statistics.framesEncoded = counts.framesEncoded
        statistics.framesDropped = counts.framesDropped
        for lane in lanes {
            let layer = lane.statistics
            statistics.framesSent += layer.framesSent
            statistics.framesExpired += layer.framesExpired
            statistics.bytesSent += layer.bytesSent
            statistics.keyframes += layer.keyframes
            statistics.layers.append(layer)
            statistics.connection = statistics.connection ?? lane.status.map { UplinkStatistics($0.path) }
        }
        return statistics
    }
}

extension EncodingLane {
    /// The present state and the counts of the encoding.
    fileprivate var statistics: LocalVideoLayerStatistics {
        var statistics = LocalVideoLayerStatistics()
        let (counts, sent, status) = (counts.withLock { $0 }, sendQueue.counts, status)
        // Once the encoding has ended, this is the time of its end, so that nothing changes any more.
        let now = status?.time ?? MonotonicClock.now
        statistics.simulcastLayer = plan.simulcastLayer
        statistics.framesEncoded = counts.framesEncoded
        statistics.framesSent = sent.framesSent
        statistics.framesExpired = sent.framesExpired
        statistics.keyframes = counts.keyframes
        statistics.bytesSent = sent.bytesSent
        statistics.dimensions = counts.last?.dimensions
        statistics.framesPerSecond = counts.rate.framesPerSecond(at: now)
        statistics.quantizer = plan.isRelayed ? nil : counts.last?.quantizer
        statistics.encodeDuration = counts.encodeDuration
        guard let status else { return statistics }
        statistics.targetBitrate = plan.isRelayed ? nil : status.lane.target?.bitrate
        statistics.temporalLayerCount = status.lane.target?.temporalLayerCount
        statistics.qualityLimitation = status.lane.limitation.reason
        statistics.qualityLimitationDurations = status.lane.limitation.durations(at: status.time)
        return statistics
    }
}

extension UplinkStatistics {
    fileprivate init(_ status: UplinkStatus) {
        sendBitrate = status.rate
        estimatedBitrate = status.capacity
        queueDelay = status.queueDelay
        roundTripTime = status.roundTrip
        isAcknowledged = status.mode == .acknowledged || status.mode == .outage
        isInterrupted = status.mode == .outage
        acknowledgedBytes = status.acknowledged.bytes
    }
}

/// Measures how many frames come in a second.
struct FrameRateMeter: Sendable {
    /// The time over which frames are counted.
    private static let window: Duration = .seconds(1)

    private var start: MonotonicInstant?
    private var count = 0
    private var measured: (rate: Double, end: MonotonicInstant)?

    /// Counts a frame at `now`.
    mutating func count(at now: MonotonicInstant) {
        guard let start else {
            self.start = now
            return
        }
        count += 1
        let elapsed = now.duration(since: start)
        guard elapsed >= Self.window else { return }
        measured = (Double(count) / elapsed.seconds, now)
        (self.start, count) = (now, 0)
    }

    /// The rate of about the last second; 0 once no frame has come for two.
    func framesPerSecond(at now: MonotonicInstant) -> Double {
        guard let measured, now.duration(since: measured.end) < Self.window * 2 else { return 0 }
        return measured.rate
    }
}
