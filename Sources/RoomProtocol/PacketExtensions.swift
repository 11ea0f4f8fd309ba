package import MediaCore

/// The extensions between a packet's fixed header and its payload; see section 6.5 of `docs/protocol.md`.
package struct PacketExtensions: Hashable, Sendable {
    /// The types of extension that this version knows.
    private enum Kind {
        static let padding: UInt8 = 0
        static let orientation: UInt8 = 1
        static let metadata: UInt8 = 2
        static let keyID: UInt8 = 3
    }

    private static let mirrorBit: UInt8 = 1 << 2
    /// The longest value of an extension, whose length has one byte.
    private static let longestValue = 255

    /// The clockwise turn that makes the picture upright.
    package private(set) var rotation = VideoRotation.none
    /// Whether left and right must be exchanged after the turn.
    package private(set) var isMirrored = false
    /// The application's bytes; `nil` if there are none, or more than a frame may carry.
    package private(set) var metadata: FrameMetadata?
    /// Whether the frame's payload is encrypted.
    package private(set) var isEncrypted = false

    /// Creates no extensions: those of an upright frame without metadata.
    package init() {}

    /// Creates the extensions of a frame.
    package init(rotation: VideoRotation, isMirrored: Bool, metadata: FrameMetadata?) {
        self.rotation = rotation
        self.isMirrored = isMirrored
        self.metadata = metadata?.bytes.isEmpty == false ? metadata : nil
    }
}

// MARK: - Writing

extension PacketExtensions {
    private var hasOrientation: Bool { rotation != .none || isMirrored }

    /// The length of the extensions in bytes, padded so that the payload begins at a multiple of 8.
    package var length: Int {
        let count = metadata?.bytes.count ?? 0
        let values = (count + Self.longestValue - 1) / Self.longestValue
        return ((hasOrientation ? 3 : 0) + count + 2 * values + 7) & ~7
    }

    /// Writes the extensions behind the fixed header of `message`, `length` bytes.
    func write(to message: inout MutableRawSpan) {
        var offset = MediaPacketHeader.fixedLength
        let end = offset + length
        func put(_ byte: UInt8) {
            message.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
            offset += 1
        }
        if hasOrientation {
            put(Kind.orientation)
            put(1)
            put(UInt8(rotation.rawValue / 90) | (isMirrored ? Self.mirrorBit : 0))
        }
        if let bytes = metadata?.bytes {
            for start in stride(from: 0, to: bytes.count, by: Self.longestValue) {
                let value = bytes[start..<min(start + Self.longestValue, bytes.count)]
                put(Kind.metadata)
                put(UInt8(value.count))
                for byte in value { put(byte) }
            }
        }
        while offset < end { put(Kind.padding) }
    }
}

// MARK: - Reading

extension PacketExtensions {
    /// Reads the extensions of `message`, a packet whose `header` has been read; they may have any content.
    ///
    /// Unknown types are skipped. An extension that reaches beyond the header ends the list. Metadata that is longer
    /// than a frame may carry is left out as a whole.
    package init(of message: RawSpan, _ header: MediaPacketHeader) {
        var metadataCount = 0
        var hasOrientation = false
        Self.forEach(of: message, header) { kind, value in
            switch kind {
            case Kind.orientation where value.count == 1 && !hasOrientation:
                hasOrientation = true
                let byte = message.byte(at: value.lowerBound)
                rotation = VideoRotation(rawValue: Int(byte & 3) * 90) ?? .none
                isMirrored = byte & Self.mirrorBit != 0
            case Kind.metadata: metadataCount += value.count
            case Kind.keyID: isEncrypted = true
            default: break
            }
        }
        guard (1...FrameMetadata.maximumSize.bytes).contains(metadataCount) else { return }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(metadataCount)
        Self.forEach(of: message, header) { kind, value in
            guard kind == Kind.metadata else { return }
            for offset in value { bytes.append(message.byte(at: offset)) }
        }
        metadata = try? FrameMetadata(bytes)
    }

    /// Calls `body` with the type of each extension and the place of its value.
    private static func forEach(of message: RawSpan, _ header: MediaPacketHeader, _ body: (UInt8, Range<Int>) -> Void) {
        var offset = MediaPacketHeader.fixedLength
        while offset < header.headerLength {
            let kind = message.byte(at: offset)
            offset += 1
            if kind == Kind.padding { continue }
            guard offset < header.headerLength else { return }
            let start = offset + 1
            offset = start + Int(message.byte(at: offset))
            guard offset <= header.headerLength else { return }
            body(kind, start..<offset)
        }
    }
}
