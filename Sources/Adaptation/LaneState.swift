import MediaCore

/// What an `UplinkController` keeps for one encoding.
struct LaneState: Hashable, Sendable {
    let id: Int
    let lane: UplinkController.Lane
    var gate: SendGate
    /// What subscribers want; `nil` while nobody receives the encoding.
    var bounds: LayerBounds?
    /// Bytes that are encoded and not written yet.
    var queued = 0
    /// The share of the connection's rate, in bits per second.
    var share = 0.0
    /// When the last keyframe was encoded, in microseconds.
    var lastKeyframe: Int64?
    var waiting: WaitReason?
    private var lastTarget: EncodingTarget?
    private var limitation = QualityLimitation()

    init(_ lane: UplinkController.Lane, id: Int, gate: SendGate) {
        self.lane = lane
        self.id = id
        self.gate = gate
    }

    /// The bits per second that the encoding can use.
    var demand: Double {
        guard let bounds else { return 0 }
        return Double(min(lane.highestBitrate, bounds.bitrate ?? lane.highestBitrate).bitsPerSecond)
    }

    /// The time from one frame to the next, in microseconds.
    var frameInterval: Int64 { frameRate.interval.wholeMicroseconds }

    private var frameRate: FrameRate { min(lane.frameRate, bounds?.frameRate ?? lane.frameRate) }

    var status: UplinkStatus.Lane {
        UplinkStatus.Lane(
            id: id,
            target: lastTarget,
            share: Bitrate(bitsPerSecond: Int(share)),
            limitation: limitation,
            waiting: waiting
        )
    }

    mutating func target(largestFrame: Double) -> EncodingTarget {
        var target = EncodingTarget(
            dimensions: lane.largestDimensions,
            bitrate: Bitrate(bitsPerSecond: Int(share)),
            frameRate: frameRate,
            temporalLayerCount: bounds?.temporalLayers ?? 3
        )
        lastTarget = target
        target.largestFrame = DataSize(bytes: Int(largestFrame))
        return target
    }

    mutating func encoded(_ report: EncodingReport?, at now: Int64) {
        guard let report else { return }
        if report.isKeyframe { lastKeyframe = now }
    }
}
