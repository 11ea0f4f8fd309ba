import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import Adaptation

/// The encodings of one or more tracks on a path that carries only so much, with a round trip of 40 ms.
struct SimulcastBench {
    struct Encoding {
        var id: UplinkController.LaneID
        var frames = 0
        var keyframes = 0
        var size: Dimensions?
        var needsKeyframe = true
        /// How long a frame of full size takes to encode, in microseconds.
        var fullFrame = 3000.0
        /// Whether its source delivers nothing.
        var isSilent = false
        /// The bytes that a picture of full size takes when it is as fine as can be, because nothing moves.
        var stillFrame: Double?
    }

    var uplink = UplinkController()
    var now: Int64 = 1_000_000
    var written: UInt64 = 0
    var encodings: [Encoding] = []
    private var arrivals: [(at: Int64, bytes: UInt64)] = []
    private var linkFree: Int64 = 0

    init() { uplink.isRecording = true }

    var instant: MonotonicInstant { MonotonicInstant(microseconds: now) }

    /// 320x180, 640x360 and 1280x720, with 200, 700 and 2,500 kbit/s.
    mutating func addTrack(_ track: Int = 0, kilobits: [Int] = [200, 700, 2500]) {
        for (layer, kilobits) in kilobits.enumerated() {
            var lane = UplinkController.Lane(
                largestDimensions: Dimensions(width: 320 << layer, height: 180 << layer),
                frameRate: FrameRate(30),
                highestBitrate: .kilobitsPerSecond(kilobits),
                simulcastLayer: layer
            )
            lane.track = track
            encodings.append(Encoding(id: uplink.add(lane, at: instant)))
        }
    }

    mutating func want(_ index: Int, _ bounds: LayerBounds? = LayerBounds(temporalLayers: 1)) {
        uplink.setWanted(bounds, of: encodings[index].id, at: instant)
        encodings[index].needsKeyframe = true
    }

    mutating func play(seconds: Double, kilobits: Int = 100_000) {
        for _ in 0..<Int(seconds * 30) {
            for index in encodings.indices where !encodings[index].isSilent { encode(index, kilobits) }
            for _ in 0..<3 {
                now += 11_111
                acknowledge()
            }
        }
    }

    private mutating func encode(_ index: Int, _ kilobits: Int) {
        let encoding = encodings[index]
        let decision = uplink.decide(
            encoding.id,
            isNewFrame: true,
            keyframeDue: encoding.needsKeyframe,
            at: instant
        )
        guard case .encode(let target) = decision else { return }
        let isKeyframe = encoding.needsKeyframe || target.dimensions != encoding.size
        let part = Double(target.dimensions.area) / Double((320 << (index % 3)) * (180 << (index % 3)))
        let allowed = Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond
        let average = min(allowed, encoding.stillFrame.map { part * $0 } ?? allowed)
        let bytes = Int(isKeyframe ? min(3 * average, Double(target.largestFrame?.bytes ?? .max)) : average)
        encodings[index].frames += 1
        encodings[index].keyframes += isKeyframe ? 1 : 0
        encodings[index].size = target.dimensions
        encodings[index].needsKeyframe = false
        let report = EncodingReport(
            bytes: bytes,
            isKeyframe: isKeyframe,
            quantizer: average < allowed ? 4 : 40,
            encodeDuration: .microseconds(Int64(encoding.fullFrame * part)),
            dimensions: target.dimensions
        )
        uplink.encoded(report, of: encoding.id, at: instant)
        uplink.wrote(bytes, at: instant)
        written += UInt64(bytes)
        linkFree = max(linkFree, now) + Int64(bytes * 8000 / kilobits)
        arrivals.append((linkFree, written))
    }

    private mutating func acknowledge() {
        let count = arrivals.prefix { $0.at + 40_000 <= now }.count
        guard count > 0 else { return }
        let (at, bytes) = arrivals[count - 1]
        arrivals.removeFirst(count)
        uplink.acknowledged(
            MediaAcknowledgement(
                cumulativeBytes: bytes,
                receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(at)),
                trackAlias: 0,
                frameNumber: 0
            ),
            at: instant
        )
    }

    func share(_ index: Int) -> Int { status(index)?.share.bitsPerSecond ?? -1 }

    func status(_ index: Int) -> UplinkStatus.Lane? {
        uplink.status.lanes.first { $0.id == encodings[index].id }
    }

    /// The frames of each encoding that are encoded in the next seconds.
    mutating func frames(in seconds: Double, kilobits: Int = 100_000) -> [Int] {
        let before = encodings.map(\.frames)
        play(seconds: seconds, kilobits: kilobits)
        return zip(encodings, before).map { $0.frames - $1 }
    }
}
