package import MediaCore
package import RoomProtocol
import SyntheticSources
import Threading
import VP8Codec

/// Encodes frames of the test pattern and cuts them into packets, for tests that send without RoomKit.
package struct EncodedPattern: ~Copyable {
    private var encoder: VP8Encoder
    private let packetizer: Packetizer
    private let size: Dimensions
    private var number: UInt32 = 0
    private let start = MonotonicClock.now

    /// A pattern under `alias`.
    package init(alias: UInt32, size: Dimensions = testSize) throws {
        encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: size, frameRate: FrameRate(30), temporalLayerCount: 3)
        )
        packetizer = Packetizer(trackAlias: alias)
        self.size = size
    }

    /// The packets of the next frame, whose capture time is 33 ms after that of the frame before.
    ///
    /// The first frame is a keyframe. Later frames are keyframes on demand.
    package mutating func next(isKeyframe: Bool = false) throws -> [[UInt8]] {
        for _ in 0..<30 {
            let packets = try encode(isKeyframe: isKeyframe)
            if !packets.isEmpty { return packets }
        }
        throw TestFailure("the encoder leaves all frames out")
    }

    /// The packets of the next frame; none if the encoder leaves it out to hold its rate.
    private mutating func encode(isKeyframe: Bool) throws -> [[UInt8]] {
        // The stamps have the rate that the encoder expects, however soon this is called.
        let now = start + .milliseconds(33) * Int(number)
        let buffer = VideoBuffer(dimensions: size)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for index in luma.indices { luma[index] = 60 }
            for index in chromaU.indices { chromaU[index] = 128 }
            for index in chromaV.indices { chromaV[index] = 128 }
        }
        Barcode(number: number, timestamp: now).paint(into: buffer)
        number += 1
        var packets: [[UInt8]] = []
        let packetizer = packetizer
        let frame = VideoFrame(buffer: buffer, timestamp: now)
        _ = try encoder.encode(frame, forceKeyframe: isKeyframe) { info, bytes in
            packetizer.packetize(
                info,
                bytes: bytes,
                captureTime: RoomTime(microseconds: now.microseconds),
                encodeDelay: .milliseconds(1),
                makeBuffer: { makePacket([UInt8](repeating: 0, count: $0)) },
                emit: { packets.append($0.withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }) }
            )
        }
        return packets
    }
}

/// The packets of a frame that contains `payload`; `change` may damage their headers.
package func makeVideoPackets(
    alias: UInt32,
    number: UInt32,
    payload: [UInt8],
    isKeyframe: Bool = true,
    captureTime: Int64 = MonotonicClock.now.microseconds,
    change: (inout MediaPacketHeader) -> Void = { _ in }
) -> [[UInt8]] {
    var packets: [[UInt8]] = []
    var offset = 0
    while offset < payload.count {
        let count = min(Packetizer.maximumPayload, payload.count - offset)
        var header = MediaPacketHeader(
            frame: EncodedFrameInfo(number: number, timestamp: MonotonicClock.now, isKeyframe: isKeyframe),
            trackAlias: alias,
            captureTime: RoomTime(microseconds: captureTime),
            encodeDelay: .zero,
            frameLength: payload.count,
            chunkOffset: offset,
            payloadLength: count
        )
        change(&header)
        let packet = makePacket([UInt8](repeating: 0, count: MediaPacketHeader.fixedLength))
        packet.withMutableBytes { header.write(to: &$0) }
        packets.append(packet.withBytes { $0.withUnsafeBytes { Array($0) } } + payload[offset..<offset + count])
        offset += count
    }
    return packets
}
