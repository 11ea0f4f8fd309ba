import MediaCore
import RoomProtocol

/// A track's publisher: makes frames of three temporal layers, and knows of each what it refers to.
final class Camera {
    var track: TrackInfo
    let publisher: Peer
    /// The number of the track's encoding that it makes.
    let simulcastLayer: Int
    var bytesPerFrame: Int
    var wantsKeyframe = true
    /// Whether it makes a keyframe when it is asked to; a source of ready frames does not.
    var answersRequests = true
    /// The bench's clock, by which frames are captured.
    var clock: () -> MonotonicInstant = { MonotonicInstant(nanoseconds: 0) }
    /// Whether it has found its picture unchanged: each frame is a repeat, of layer 0.
    var isStill = false
    /// How many temporal layers the frames have, 3 or 1.
    var temporalLayerCount = 3
    /// What the relay last wanted of the track; `nil` if nobody receives it.
    var wanted: WantedLayer?
    /// Frames that one refers to, by number.
    private(set) var references: [UInt32: [UInt32]] = [:]
    private(set) var temporalLayers: [UInt32: UInt8] = [:]
    /// Every packet sent, kept so that no other takes its place.
    private(set) var packets: [PacketBuffer] = []
    private var known: Set<ObjectIdentifier> = []
    private(set) var keyframes: [UInt32] = []
    private var nextNumber: UInt32 = 0
    private var sinceKeyframe = 0
    private var lastBase: UInt32 = 0
    private var lastMiddle: UInt32 = 0
    private var baseLayerIndex: UInt16 = 0

    init(track: TrackInfo, publisher: Peer, simulcastLayer: Int = 0, bytesPerFrame: Int) {
        self.track = track
        self.publisher = publisher
        self.simulcastLayer = simulcastLayer
        self.bytesPerFrame = bytesPerFrame
    }

    var framesSent: Int { Int(nextNumber) }

    func hasSent(_ packet: PacketBuffer) -> Bool { known.contains(ObjectIdentifier(packet)) }

    /// The next frame's packets: a keyframe when one is wanted, else by the pattern 0 2 1 2, with a sync of layer 1 in
    /// every second turn.
    func nextFrame(extensionBytes: Int = 0, captured time: MonotonicInstant? = nil) -> [PacketBuffer] {
        let isKeyframe = wantsKeyframe
        wantsKeyframe = false
        sinceKeyframe = isKeyframe || isStill ? 0 : sinceKeyframe + 1
        let layer: UInt8 = isKeyframe || temporalLayerCount == 1 ? 0 : [0, 2, 1, 2][sinceKeyframe % 4]
        let isSync = layer == 1 && sinceKeyframe % 8 == 2
        let number = nextNumber
        nextNumber += 1
        switch layer {
        case 0: references[number] = isKeyframe ? [] : [lastBase]
        case 1: references[number] = isSync ? [lastBase] : [lastBase, lastMiddle]
        default: references[number] = [lastBase, lastMiddle]
        }
        temporalLayers[number] = layer
        if layer == 0 {
            lastBase = number
            baseLayerIndex &+= 1
        }
        if isKeyframe || layer == 1 { lastMiddle = number }
        if isKeyframe { keyframes.append(number) }
        var info = EncodedFrameInfo(
            number: number,
            simulcastLayer: UInt8(simulcastLayer),
            timestamp: MonotonicInstant(nanoseconds: 0),
            isKeyframe: isKeyframe,
            temporalLayer: layer,
            isLayerSync: isSync,
            isDiscardable: layer == 2,
            baseLayerIndex: baseLayerIndex
        )
        info.isRepeat = isStill
        let made = cut(info, length: isKeyframe ? bytesPerFrame * 4 : bytesPerFrame, extensionBytes, captured: time)
        packets += made
        for packet in made { known.insert(ObjectIdentifier(packet)) }
        return made
    }

    /// Cut as by a publisher; the payload is left as it is in memory, since nobody looks at it.
    private func cut(
        _ info: EncodedFrameInfo,
        length: Int,
        _ extensionBytes: Int,
        captured time: MonotonicInstant?
    ) -> [PacketBuffer] {
        let limit = Packetizer.maximumPayload - extensionBytes
        return stride(from: 0, to: length, by: limit).map { offset in
            var header = MediaPacketHeader(
                frame: info,
                trackAlias: track.alias,
                captureTime: RoomTime(microseconds: (time ?? clock()).microseconds),
                encodeDelay: .zero,
                frameLength: length,
                chunkOffset: offset,
                payloadLength: min(limit, length - offset)
            )
            header.headerLength += extensionBytes
            return makePacket(header)
        }
    }
}

func makePacket(_ header: MediaPacketHeader) -> PacketBuffer {
    let packet = PacketBuffer(capacity: header.headerLength + header.payloadLength)
    packet.count = header.headerLength + header.payloadLength
    packet.withMutableBytes { message in
        for offset in 48..<min(header.headerLength + 1, message.byteCount) {
            message.storeBytes(of: UInt8(truncatingIfNeeded: offset), toByteOffset: offset, as: UInt8.self)
        }
        header.write(to: &message)
    }
    return packet
}

extension PacketBuffer {
    var bytes: [UInt8] { withBytes { bytes in bytes.withUnsafeBytes { Array($0) } } }

    func header() throws -> MediaPacketHeader { try withBytes { try MediaPacketHeader(reading: $0) } }
}
