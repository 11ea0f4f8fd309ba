package import MediaCore

/// Puts the packets of one track together into frames again.
///
/// Packets of a frame come in order, frame after frame; the beginning of the next frame means that the rest of an
/// unfinished one was given up on the way. A frame of one packet is not copied. Where a track has several simulcast
/// layers, frames of one of them come at a time, and another one begins with a keyframe.
package struct FrameAssembler: Sendable {
    /// A whole frame and what its first packet said.
    package struct Frame: Sendable {
        /// The header of the frame's first packet.
        package var header: MediaPacketHeader
        /// The buffer that holds the frame's bytes.
        package var buffer: PacketBuffer
        /// Where in the buffer they lie.
        package var range: Range<Int>
    }

    private struct Partial {
        var header: MediaPacketHeader
        var buffer: PacketBuffer
        var received: Int
    }

    private var partial: Partial?
    /// The separate encoding that frames are taken from; `nil` until the first frame begins.
    private var simulcastLayer: UInt8?

    /// Frames of which the end never came.
    package private(set) var abandonedFrames = 0
    /// Frames of another separate encoding than the one that is received, which could not be decoded after its frames.
    package private(set) var foreignFrames = 0

    /// Frames that are encrypted, which this version cannot read.
    package private(set) var encryptedFrames = 0

    /// An assembler without a frame begun.
    package init() {}

    /// Takes the next packet, and gives the frame that it completes.
    ///
    /// - Parameters:
    ///   - packet: A binary message of kind `video`, from the relay: anything may be in it.
    ///   - header: The packet's header, as read.
    ///   - makeBuffer: Gives a buffer whose `count` is its argument and that nobody else holds.
    /// - Returns: The frame that the packet completes.
    /// - Throws: When the packet does not go on where the one before ended.
    package mutating func receive(
        _ packet: PacketBuffer,
        header: MediaPacketHeader,
        makeBuffer: (Int) -> PacketBuffer
    ) throws(MalformedPacket) -> Frame? {
        if header.isFirstChunk {
            if partial != nil { abandonedFrames += 1 }
            partial = nil
            guard header.isKeyframe || header.simulcastLayer == simulcastLayer ?? header.simulcastLayer else {
                foreignFrames += 1
                return nil
            }
            simulcastLayer = header.simulcastLayer
            guard !header.hasExtensions || !packet.withBytes({ PacketExtensions(of: $0, header).isEncrypted }) else {
                encryptedFrames += 1
                return nil
            }
            if header.isLastChunk {
                let end = header.headerLength + header.payloadLength
                return Frame(header: header, buffer: packet, range: header.headerLength..<end)
            }
            let buffer = makeBuffer(Int(header.frameLength))
            Self.copyPayload(of: packet, header: header, into: buffer)
            partial = Partial(header: header, buffer: buffer, received: header.payloadLength)
            return nil
        }
        guard var frame = partial else { return nil }
        partial = nil
        guard
            frame.header.frameNumber == header.frameNumber, frame.header.frameLength == header.frameLength,
            frame.header.simulcastLayer == header.simulcastLayer, frame.received == Int(header.chunkOffset)
        else {
            abandonedFrames += 1
            throw MalformedPacket(
                "byte \(header.chunkOffset) of frame \(header.frameNumber) after byte \(frame.received) of frame "
                    + "\(frame.header.frameNumber)"
            )
        }
        Self.copyPayload(of: packet, header: header, into: frame.buffer)
        frame.received += header.payloadLength
        if header.isLastChunk {
            return Frame(header: frame.header, buffer: frame.buffer, range: 0..<frame.received)
        }
        partial = frame
        return nil
    }

    private static func copyPayload(of packet: PacketBuffer, header: MediaPacketHeader, into buffer: PacketBuffer) {
        packet.withBytes { message in
            let end = header.headerLength + header.payloadLength
            let payload = message.extracting(header.headerLength..<end)
            buffer.withMutableBytes { $0.copy(payload, at: Int(header.chunkOffset)) }
        }
    }
}
