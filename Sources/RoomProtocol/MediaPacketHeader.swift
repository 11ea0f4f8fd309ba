package import MediaCore

/// The error for a binary message that breaks the wire format.
package struct MalformedPacket: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in one clause.
    package var description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// The kinds of binary message.
package enum BinaryMessageKind: UInt8, Sendable {
    /// A chunk of a video frame.
    case video = 0
    /// An acknowledgement of received media.
    case acknowledgement = 1
}

/// The header of a chunk of a video frame; all hops send the same bytes, from publisher to relay to subscribers.
///
/// Multi-byte fields are big-endian. The layout, byte by byte, is in `docs/protocol.md`, "Media packets".
package struct MediaPacketHeader: Hashable, Sendable {
    /// The server's short number for the track, valid only on the connection that carries the packet.
    package var trackAlias: UInt32
    /// The number of the encoded frame in its track.
    package var frameNumber: UInt32
    /// When the frame was captured.
    package var captureTime: RoomTime
    /// The length of the whole compressed frame, in bytes.
    package var frameLength: UInt32
    /// The offset of this chunk in the frame, in bytes.
    package var chunkOffset: UInt32
    /// The time from capture to the end of encoding, in microseconds.
    package var encodeDelay: UInt32
    /// The number of the latest frame of temporal layer 0.
    package var baseLayerIndex: UInt16
    /// The simulcast layer of the frame.
    package var simulcastLayer: UInt8
    /// The temporal layer of the frame.
    package var temporalLayer: UInt8
    /// Whether the frame can be decoded without any other.
    package var isKeyframe: Bool
    /// Whether the frame refers only to lower temporal layers.
    package var isLayerSync: Bool
    /// Whether no other frame refers to this one.
    package var isDiscardable: Bool
    /// Whether the frame shows the same picture as the one before, because the source found it unchanged.
    package var isRepeat: Bool
    /// Whether the picture stands in for those of the source.
    package var isSubstitute: Bool
    /// When the relay received this packet; `nil` before that.
    package var relayTime: RoomTime?
    /// The length of the header with its extensions, in bytes; the payload follows it.
    package var headerLength: Int
    /// The length of the payload, in bytes.
    package var payloadLength: Int

    /// The length of a header without extensions, in bytes.
    package static let fixedLength = 48

    /// Whether there are extensions between the fixed header and the payload.
    package var hasExtensions: Bool { headerLength > Self.fixedLength }

    /// Whether this is the frame's first chunk.
    package var isFirstChunk: Bool { chunkOffset == 0 }
    /// Whether this is the frame's last chunk.
    package var isLastChunk: Bool { Int(chunkOffset) + payloadLength == Int(frameLength) }

    private static let relayTimeOffset = 40

    private struct Flags: OptionSet {
        var rawValue: UInt8
        static let keyframe = Flags(rawValue: 1 << 0)
        static let layerSync = Flags(rawValue: 1 << 1)
        static let firstChunk = Flags(rawValue: 1 << 2)
        static let lastChunk = Flags(rawValue: 1 << 3)
        static let discardable = Flags(rawValue: 1 << 4)
        static let `repeat` = Flags(rawValue: 1 << 5)
        static let substitute = Flags(rawValue: 1 << 6)
    }

    /// Creates the header of the chunk of `frame` at `chunkOffset`, which has `payloadLength` bytes and comes after
    /// `extensionsLength` bytes of extensions.
    package init(
        frame: EncodedFrameInfo,
        trackAlias: UInt32,
        captureTime: RoomTime,
        encodeDelay: Duration,
        frameLength: Int,
        chunkOffset: Int,
        payloadLength: Int,
        extensionsLength: Int = 0
    ) {
        self.trackAlias = trackAlias
        self.frameNumber = frame.number
        self.captureTime = captureTime
        self.frameLength = UInt32(frameLength)
        self.chunkOffset = UInt32(chunkOffset)
        self.encodeDelay = UInt32(clamping: encodeDelay.wholeMicroseconds)
        self.baseLayerIndex = frame.baseLayerIndex
        self.simulcastLayer = frame.simulcastLayer
        self.temporalLayer = frame.temporalLayer
        self.isKeyframe = frame.isKeyframe
        self.isLayerSync = frame.isLayerSync
        self.isDiscardable = frame.isDiscardable
        self.isRepeat = frame.isRepeat
        self.isSubstitute = frame.isSubstitute
        self.relayTime = nil
        self.headerLength = Self.fixedLength + extensionsLength
        self.payloadLength = payloadLength
    }

    /// Reads the header of `message`, a whole binary message of kind `video` from a peer, which may have any content.
    package init(reading message: RawSpan) throws(MalformedPacket) {
        guard message.byteCount >= Self.fixedLength else {
            throw MalformedPacket("a packet of \(message.byteCount) bytes; the header alone has \(Self.fixedLength)")
        }
        // The relay forwards a packet unchanged, and a packet that is too long would end the sessions of its receivers.
        guard message.byteCount <= WireFormat.maximumBinaryMessage.bytes else {
            let limit = WireFormat.maximumBinaryMessage.bytes
            throw MalformedPacket("a packet of \(message.byteCount) bytes; at most \(limit) are allowed")
        }
        let version = message.byte(at: 0)
        guard version == UInt8(WireFormat.version) else {
            throw MalformedPacket("packet version \(version); this end speaks \(WireFormat.version)")
        }
        headerLength = Int(message.bigEndian(at: 2, as: UInt16.self))
        guard headerLength >= Self.fixedLength, headerLength <= message.byteCount else {
            throw MalformedPacket("a header length of \(headerLength) in a packet of \(message.byteCount) bytes")
        }
        payloadLength = message.byteCount - headerLength
        let flags = Flags(rawValue: message.byte(at: 4))
        simulcastLayer = message.byte(at: 5)
        temporalLayer = message.byte(at: 6)
        trackAlias = message.bigEndian(at: 8, as: UInt32.self)
        frameNumber = message.bigEndian(at: 12, as: UInt32.self)
        captureTime = RoomTime(microseconds: Int64(clamping: message.bigEndian(at: 16, as: UInt64.self)))
        frameLength = message.bigEndian(at: 24, as: UInt32.self)
        chunkOffset = message.bigEndian(at: 28, as: UInt32.self)
        encodeDelay = message.bigEndian(at: 32, as: UInt32.self)
        baseLayerIndex = message.bigEndian(at: 36, as: UInt16.self)
        let relayTime = message.bigEndian(at: Self.relayTimeOffset, as: UInt64.self)
        self.relayTime = relayTime == 0 ? nil : RoomTime(microseconds: Int64(clamping: relayTime))
        isKeyframe = flags.contains(.keyframe)
        isLayerSync = flags.contains(.layerSync)
        isDiscardable = flags.contains(.discardable)
        isRepeat = flags.contains(.repeat)
        isSubstitute = flags.contains(.substitute)
        try check(flags)
    }

    private func check(_ flags: Flags) throws(MalformedPacket) {
        guard frameLength > 0, Int(frameLength) <= WireFormat.maximumFrame.bytes else {
            throw MalformedPacket("a frame of \(frameLength) bytes; allowed are 1 to \(WireFormat.maximumFrame.bytes)")
        }
        guard payloadLength > 0, Int(chunkOffset) + payloadLength <= Int(frameLength) else {
            throw MalformedPacket("bytes \(chunkOffset) to \(Int(chunkOffset) + payloadLength) of \(frameLength)")
        }
        guard flags.contains(.firstChunk) == isFirstChunk, flags.contains(.lastChunk) == isLastChunk else {
            throw MalformedPacket("first and last flags that contradict offset and length")
        }
        guard isLastChunk || payloadLength >= WireFormat.minimumChunk.bytes else {
            let least = WireFormat.minimumChunk.bytes
            throw MalformedPacket(
                "a chunk of \(payloadLength) bytes; one that is not a frame's last has at least \(least)"
            )
        }
        guard !isKeyframe || temporalLayer == 0 else {
            throw MalformedPacket("a keyframe in temporal layer \(temporalLayer)")
        }
    }

    /// Writes the header to the beginning of `message`.
    package func write(to message: inout MutableRawSpan) {
        var flags: Flags = []
        if isKeyframe { flags.insert(.keyframe) }
        if isLayerSync { flags.insert(.layerSync) }
        if isDiscardable { flags.insert(.discardable) }
        if isRepeat { flags.insert(.repeat) }
        if isSubstitute { flags.insert(.substitute) }
        if isFirstChunk { flags.insert(.firstChunk) }
        if isLastChunk { flags.insert(.lastChunk) }
        message.storeBytes(of: UInt8(WireFormat.version), toByteOffset: 0, as: UInt8.self)
        message.storeBytes(of: BinaryMessageKind.video.rawValue, toByteOffset: 1, as: UInt8.self)
        message.storeBytes(of: UInt16(headerLength).bigEndian, toByteOffset: 2, as: UInt16.self)
        message.storeBytes(of: flags.rawValue, toByteOffset: 4, as: UInt8.self)
        message.storeBytes(of: simulcastLayer, toByteOffset: 5, as: UInt8.self)
        message.storeBytes(of: temporalLayer, toByteOffset: 6, as: UInt8.self)
        message.storeBytes(of: 0, toByteOffset: 7, as: UInt8.self)
        message.storeBytes(of: trackAlias.bigEndian, toByteOffset: 8, as: UInt32.self)
        message.storeBytes(of: frameNumber.bigEndian, toByteOffset: 12, as: UInt32.self)
        message.storeBytes(of: UInt64(clamping: captureTime.microseconds).bigEndian, toByteOffset: 16, as: UInt64.self)
        message.storeBytes(of: frameLength.bigEndian, toByteOffset: 24, as: UInt32.self)
        message.storeBytes(of: chunkOffset.bigEndian, toByteOffset: 28, as: UInt32.self)
        message.storeBytes(of: encodeDelay.bigEndian, toByteOffset: 32, as: UInt32.self)
        message.storeBytes(of: baseLayerIndex.bigEndian, toByteOffset: 36, as: UInt16.self)
        message.storeBytes(of: 0, toByteOffset: 38, as: UInt16.self)
        let relayTime = UInt64(clamping: relayTime?.microseconds ?? 0)
        message.storeBytes(of: relayTime.bigEndian, toByteOffset: Self.relayTimeOffset, as: UInt64.self)
    }

    /// Writes the relay time into a packet whose header has been read; the relay does this once for each packet.
    package static func stamp(_ message: inout MutableRawSpan, relayTime: RoomTime) {
        let time = UInt64(clamping: relayTime.microseconds)
        message.storeBytes(of: time.bigEndian, toByteOffset: relayTimeOffset, as: UInt64.self)
    }

    /// The frame's description from the header, with the capture time on this machine's clock.
    package func frameInfo(timestamp: MonotonicInstant) -> EncodedFrameInfo {
        var info = EncodedFrameInfo(
            number: frameNumber,
            simulcastLayer: simulcastLayer,
            timestamp: timestamp,
            isKeyframe: isKeyframe,
            temporalLayer: temporalLayer,
            isLayerSync: isLayerSync,
            isDiscardable: isDiscardable,
            baseLayerIndex: baseLayerIndex
        )
        info.isRepeat = isRepeat
        info.isSubstitute = isSubstitute
        return info
    }
}

extension RawSpan {
    /// The byte at `offset`; traps beyond the span.
    package func byte(at offset: Int) -> UInt8 {
        unsafe unsafeLoadUnaligned(fromByteOffset: checked(offset, 1), as: UInt8.self)
    }

    /// The big-endian number at `offset`; traps beyond the span.
    package func bigEndian<Number: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int,
        as type: Number.Type
    ) -> Number {
        Number(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: checked(offset, Number.bitWidth / 8), as: type))
    }

    private func checked(_ offset: Int, _ count: Int) -> Int {
        precondition(offset >= 0 && offset + count <= byteCount, "\(count) bytes at \(offset) of \(byteCount)")
        return offset
    }
}

/// The kind of a binary message; `nil` for one that this version does not know.
package func binaryMessageKind(of message: RawSpan) -> BinaryMessageKind? {
    message.byteCount > 1 ? BinaryMessageKind(rawValue: message.byte(at: 1)) : nil
}
