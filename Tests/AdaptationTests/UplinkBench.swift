import Adaptation
import MediaCore
import RoomProtocol
import Testing

/// A controller with a path that takes and acknowledges all at once.
struct UplinkBench {
    var uplink = UplinkController()
    var now: Int64 = 1_000_000
    var written: UInt64 = 0

    var instant: MonotonicInstant { MonotonicInstant(microseconds: now) }

    mutating func add(
        _ kilobits: Int = 2000,
        priority: UplinkController.Lane.Priority = .standard,
        layer: Int = 0,
        wanted: Bool = true
    ) -> UplinkController.LaneID {
        let lane = UplinkController.Lane(
            largestDimensions: Dimensions(width: 640, height: 360),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(kilobits),
            priority: priority,
            simulcastLayer: layer
        )
        return add(lane, wanted: wanted)
    }

    mutating func add(_ lane: UplinkController.Lane, wanted: Bool = true) -> UplinkController.LaneID {
        let id = uplink.add(lane, at: instant)
        if wanted { uplink.setWanted(LayerBounds(temporalLayers: 1), of: id, at: instant) }
        return id
    }

    mutating func decide(_ id: Int, isNewFrame: Bool = true, keyframeDue: Bool = false) -> FrameDecision {
        uplink.decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: instant)
    }

    mutating func write(_ bytes: Int) {
        written += UInt64(bytes)
        uplink.wrote(bytes, at: instant)
    }

    mutating func writeText(_ bytes: Int) {
        written += UInt64(bytes)
        uplink.wroteText(bytes, at: instant)
    }

    mutating func encoded(_ id: Int, bytes: Int, isKeyframe: Bool = false) {
        let report = EncodingReport(
            bytes: bytes,
            isKeyframe: isKeyframe,
            quantizer: 40,
            encodeDuration: .milliseconds(4),
            dimensions: Dimensions(width: 640, height: 360)
        )
        uplink.encoded(report, of: id, at: instant)
    }

    mutating func acknowledge(_ bytes: UInt64? = nil, delay: Int64 = 20_000) {
        uplink.acknowledged(
            MediaAcknowledgement(
                cumulativeBytes: bytes ?? written,
                receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(now - delay)),
                trackAlias: 0,
                frameNumber: 0
            ),
            at: instant
        )
    }

    /// Sends the first frame of a track, whose bytes come one after another in `milliseconds`, `after` so many.
    mutating func playTrain(_ id: Int, bytes: Int, milliseconds: Int64, after: Int64 = 20) {
        guard case .encode = decide(id, keyframeDue: true) else {
            Issue.record("the frame has to wait")
            return
        }
        encoded(id, bytes: bytes, isKeyframe: true)
        write(bytes)
        let first = now + after * 1000
        now = first + milliseconds * 1000
        uplink.acknowledged(
            MediaAcknowledgement(
                cumulativeBytes: written,
                receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(now)),
                trackAlias: 1,
                frameNumber: 1,
                firstByteTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(first)),
                lastByteTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(now))
            ),
            at: instant
        )
    }

    /// Frames of 30 a second for `seconds` over a path without a limit; returns how many were encoded.
    mutating func play(_ id: Int, seconds: Double) -> Int {
        var encoded = 0
        for _ in 0..<Int(seconds * 30) {
            if case .encode(let target) = decide(id) {
                let bytes = Int(Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond)
                self.encoded(id, bytes: bytes)
                write(bytes)
                encoded += 1
            }
            now += 33_333
            acknowledge()
        }
        return encoded
    }

    func share(_ id: Int) -> Int { uplink.status.lanes.first { $0.id == id }?.share.bitsPerSecond ?? -1 }
}
