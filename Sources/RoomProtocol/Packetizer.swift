package import MediaCore

/// Cuts compressed frames into media packets.
package struct Packetizer: Sendable {
    /// The server's short number for the track.
    package let trackAlias: UInt32

    /// The most payload bytes in a packet without extensions.
    package static let maximumPayload = WireFormat.maximumBinaryMessage.bytes - MediaPacketHeader.fixedLength

    /// Creates a packetizer for the track with alias `trackAlias`.
    package init(trackAlias: UInt32) {
        self.trackAlias = trackAlias
    }

    /// Cuts one frame into packets and passes them to `emit` in order; each byte of the frame is copied once.
    ///
    /// `bytes` is the compressed frame, with 1 to `WireFormat.maximumFrame` bytes. `makeBuffer` makes a buffer that
    /// nobody else holds, with `count` set to its argument. `emit` takes a finished packet. The first packet carries
    /// `extensions`.
    package func packetize(
        _ frame: EncodedFrameInfo,
        bytes: RawSpan,
        captureTime: RoomTime,
        encodeDelay: Duration,
        extensions: PacketExtensions = PacketExtensions(),
        makeBuffer: (Int) -> PacketBuffer,
        emit: (PacketBuffer) -> Void
    ) {
        var offset = 0
        while offset < bytes.byteCount {
            let extensionsLength = offset == 0 ? extensions.length : 0
            let length = min(Self.maximumPayload - extensionsLength, bytes.byteCount - offset)
            let header = MediaPacketHeader(
                frame: frame,
                trackAlias: trackAlias,
                captureTime: captureTime,
                encodeDelay: encodeDelay,
                frameLength: bytes.byteCount,
                chunkOffset: offset,
                payloadLength: length,
                extensionsLength: extensionsLength
            )
            let packet = makeBuffer(header.headerLength + length)
            packet.withMutableBytes { message in
                header.write(to: &message)
                if extensionsLength > 0 { extensions.write(to: &message) }
                message.copy(bytes.extracting(offset..<offset + length), at: header.headerLength)
            }
            emit(packet)
            offset += length
        }
    }
}

extension MutableRawSpan {
    /// Copies all of `source` to `offset`; traps if it does not fit.
    package mutating func copy(_ source: RawSpan, at offset: Int) {
        precondition(offset >= 0 && offset + source.byteCount <= byteCount, "\(source.byteCount) bytes at \(offset)")
        unsafe withUnsafeMutableBytes { target in
            unsafe source.withUnsafeBytes { bytes in
                guard let from = bytes.baseAddress, let base = target.baseAddress else { return }
                unsafe (base + offset).copyMemory(from: from, byteCount: bytes.count)
            }
        }
    }
}
