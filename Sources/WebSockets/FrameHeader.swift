import MediaCore

/// The header of a frame that is a whole message (RFC 6455, section 5.2).
struct FrameHeader {
    /// The kind of a frame, as its opcode.
    enum Kind: UInt8 {
        case binary = 2
        case close = 8
    }

    /// 2 to 14 bytes: FIN and opcode, then the length in 1, 3 or 9 bytes, then a client's masking key.
    let count: Int
    private let kind: Kind
    private let payloadCount: Int
    private let maskingKey: UInt32?

    /// - Parameters:
    ///   - kind: The kind of the message.
    ///   - payloadCount: The length of the message, in bytes.
    ///   - maskingKey: The key for masking a client's payload, with its bytes as they lie in memory; `nil` on a server.
    init(_ kind: Kind = .binary, payloadCount: Int, maskingKey: UInt32? = nil) {
        self.kind = kind
        self.payloadCount = payloadCount
        self.maskingKey = maskingKey
        let lengthCount = payloadCount < 126 ? 1 : payloadCount < 65_536 ? 3 : 9
        count = 1 + lengthCount + (maskingKey == nil ? 0 : 4)
    }

    /// Writes the header into the headroom of `message`, directly before its first byte; with a key, masks the message.
    func write(to message: PacketBuffer) {
        message.withTransportBytes { bytes in
            let start = PacketBuffer.headroom - count
            bytes.storeBytes(of: 0x80 | kind.rawValue, toByteOffset: start, as: UInt8.self)
            let length: UInt8
            switch payloadCount {
            case ..<126:
                length = UInt8(payloadCount)
            case ..<65_536:
                length = 126
                bytes.storeBytes(of: UInt16(payloadCount).bigEndian, toByteOffset: start + 2, as: UInt16.self)
            default:
                length = 127
                bytes.storeBytes(of: UInt64(payloadCount).bigEndian, toByteOffset: start + 2, as: UInt64.self)
            }
            bytes.storeBytes(of: maskingKey == nil ? length : length | 0x80, toByteOffset: start + 1, as: UInt8.self)
            guard let maskingKey else { return }
            bytes.storeBytes(of: maskingKey, toByteOffset: PacketBuffer.headroom - 4, as: UInt32.self)
            bytes.mask(from: PacketBuffer.headroom, with: maskingKey)
        }
        message.transportHeaderCount = count
    }
}

extension MutableRawSpan {
    /// Masks the bytes from `offset` on: combines them with those of `key` in turn by exclusive or (RFC 6455, section
    /// 5.3).
    fileprivate mutating func mask(from offset: Int, with key: UInt32) {
        unsafe withUnsafeMutableBytes { bytes in
            let words = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[offset...])
            let wideKey = UInt64(key) << 32 | UInt64(key)
            let wordsEnd = words.count & ~7
            for index in stride(from: 0, to: wordsEnd, by: 8) {
                let word = unsafe words.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                unsafe words.storeBytes(of: word ^ wideKey, toByteOffset: index, as: UInt64.self)
            }
            unsafe Swift.withUnsafeBytes(of: key) { key in
                for index in wordsEnd..<words.count { unsafe words[index] ^= key[index & 3] }
            }
        }
    }
}
