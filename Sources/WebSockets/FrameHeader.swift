import MediaCore

/// The header of an unmasked binary frame that is a whole message (RFC 6455, section 5.2).
struct FrameHeader {
    /// At most 10 bytes: FIN and opcode 2, then the length in 1, 3 or 9 bytes.
    let count: Int
    private let payloadCount: Int

    init(payloadCount: Int) {
        self.payloadCount = payloadCount
        count = payloadCount < 126 ? 2 : payloadCount < 65_536 ? 4 : 10
    }

    /// Writes the header into the headroom of `message`, directly before its first byte.
    func write(to message: PacketBuffer) {
        message.withTransportBytes { bytes in
            let start = PacketBuffer.headroom - count
            bytes.storeBytes(of: 0x82, toByteOffset: start, as: UInt8.self)
            switch count {
            case 2:
                bytes.storeBytes(of: UInt8(payloadCount), toByteOffset: start + 1, as: UInt8.self)
            case 4:
                bytes.storeBytes(of: 126, toByteOffset: start + 1, as: UInt8.self)
                bytes.storeBytes(of: UInt16(payloadCount).bigEndian, toByteOffset: start + 2, as: UInt16.self)
            default:
                bytes.storeBytes(of: 127, toByteOffset: start + 1, as: UInt8.self)
                bytes.storeBytes(of: UInt64(payloadCount).bigEndian, toByteOffset: start + 2, as: UInt64.self)
            }
        }
        message.transportHeaderCount = count
    }
}
