import MediaCore
import RoomProtocol

func makeBuffer(_ count: Int) -> PacketBuffer {
    let buffer = PacketBuffer(capacity: count)
    buffer.count = count
    return buffer
}

func makeBuffer(_ bytes: [UInt8]) -> PacketBuffer {
    let buffer = makeBuffer(bytes.count)
    bytes.withUnsafeBytes { source in
        buffer.withMutableBytes { $0.copy(RawSpan(_unsafeBytes: source), at: 0) }
    }
    return buffer
}

extension PacketBuffer {
    var bytes: [UInt8] { withBytes { bytes in bytes.withUnsafeBytes { Array($0) } } }

    func header() throws(MalformedPacket) -> MediaPacketHeader {
        try withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
    }
}

/// Bytes of which no two neighbouring stretches are alike, made by copying, as tests are not optimized.
func pattern(_ count: Int, salt: UInt8 = 0) -> [UInt8] {
    let block = (0..<251).map { UInt8($0) ^ salt }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + block.count)
    while bytes.count < count { bytes += block }
    bytes.removeLast(bytes.count - count)
    return bytes
}

let someFrame = EncodedFrameInfo(number: 7, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: true)

/// Cuts `bytes` as a publisher does.
func packetize(_ bytes: [UInt8], as frame: EncodedFrameInfo = someFrame) -> [PacketBuffer] {
    var packets: [PacketBuffer] = []
    bytes.withUnsafeBytes { source in
        Packetizer(trackAlias: 3).packetize(
            frame,
            bytes: RawSpan(_unsafeBytes: source),
            captureTime: RoomTime(microseconds: 1_000_000),
            encodeDelay: .milliseconds(4),
            makeBuffer: { makeBuffer($0) },
            emit: { packets.append($0) }
        )
    }
    return packets
}

/// The packets of a frame of `length` bytes, all of them 1.
func packets(_ info: EncodedFrameInfo, length: Int) -> [PacketBuffer] {
    let payload = [UInt8](repeating: 1, count: length)
    var result: [PacketBuffer] = []
    Packetizer(trackAlias: 7).packetize(
        info,
        bytes: payload.span.bytes,
        captureTime: RoomTime(microseconds: info.timestamp.microseconds),
        encodeDelay: .zero,
        makeBuffer: { makeBuffer($0) },
        emit: { result.append($0) }
    )
    return result
}
