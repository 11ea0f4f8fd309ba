package import MediaCore

/// Assembles the packets of one track into frames.
///
/// The packets of a frame arrive in order, frame after frame. If the next frame begins before one is complete, the rest
/// of that one was abandoned on the way. A frame of one packet is not copied. If a track has several simulcast layers,
/// frames of one layer arrive at a time, and another layer begins with a keyframe.
package struct FrameAssembler: Sendable {
    /// A complete frame with the header of its first packet.
    package struct Frame: Sendable {
        /// The header of the frame's first packet.
        package var header: MediaPacketHeader
        /// The buffer that holds the frame's bytes.
        package var buffer: PacketBuffer
        /// The range of the frame's bytes in the buffer.
        package var range: Range<Int>
        /// The extensions of the frame's first packet.
        package var extensions = PacketExtensions()
    }

    /// What a packet did.
    package enum Outcome: Sendable {
        /// It completed a frame.
        case frame(Frame)
        /// Its frame is not whole yet, or was left out before.
        case incomplete
        /// It begins a frame of a simulcast layer other than the received one, which is left out.
        case foreign
        /// It begins a frame that is encrypted, which is left out.
        case encrypted

        /// The frame that was completed.
        package var frame: Frame? {
            guard case .frame(let frame) = self else { return nil }
            return frame
        }
    }

    private struct Partial {
        var header: MediaPacketHeader
        var extensions: PacketExtensions
        var buffer: PacketBuffer
        var received: Int
    }

    private var partial: Partial?
    /// The simulcast layer of the last whole keyframe, from which frames are taken; `nil` before the first.
    ///
    /// A keyframe that is abandoned does not change it: the frames that follow continue the layer from before.
    private var simulcastLayer: UInt8?

    /// Frames whose end never arrived.
    package private(set) var abandonedFrames = 0

    /// Creates an assembler that has not begun a frame.
    package init() {}

    /// Takes the next packet.
    ///
    /// Frames of another simulcast layer than the received one could not be decoded after its frames. Encrypted ones
    /// cannot be read by this version.
    ///
    /// - Parameters:
    ///   - packet: A binary message of kind `video` from the relay. It may have any content.
    ///   - header: The packet's header, already read.
    ///   - makeBuffer: Makes a buffer that nobody else holds, with `count` set to its argument.
    /// - Returns: What the packet did.
    /// - Throws: An error if the packet does not continue where the one before ended.
    package mutating func receive(
        _ packet: PacketBuffer,
        header: MediaPacketHeader,
        makeBuffer: (Int) -> PacketBuffer
    ) throws(MalformedPacket) -> Outcome {
        if header.isFirstChunk {
            if partial != nil { abandonedFrames += 1 }
            partial = nil
            guard header.isKeyframe || header.simulcastLayer == simulcastLayer ?? header.simulcastLayer else {
                return .foreign
            }
            let extensions =
                header.hasExtensions ? packet.withBytes { PacketExtensions(of: $0, header) } : PacketExtensions()
            guard !extensions.isEncrypted else { return .encrypted }
            if header.isLastChunk {
                let range = header.headerLength..<header.headerLength + header.payloadLength
                return completed(Frame(header: header, buffer: packet, range: range, extensions: extensions))
            }
            let buffer = makeBuffer(Int(header.frameLength))
            Self.copyPayload(of: packet, header: header, into: buffer)
            partial = Partial(header: header, extensions: extensions, buffer: buffer, received: header.payloadLength)
            return .incomplete
        }
        guard var frame = partial else { return .incomplete }
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
            let range = 0..<frame.received
            return completed(
                Frame(header: frame.header, buffer: frame.buffer, range: range, extensions: frame.extensions)
            )
        }
        partial = frame
        return .incomplete
    }

    private mutating func completed(_ frame: Frame) -> Outcome {
        if frame.header.isKeyframe { simulcastLayer = frame.header.simulcastLayer }
        return .frame(frame)
    }

    private static func copyPayload(of packet: PacketBuffer, header: MediaPacketHeader, into buffer: PacketBuffer) {
        packet.withBytes { message in
            let end = header.headerLength + header.payloadLength
            let payload = message.extracting(header.headerLength..<end)
            buffer.withMutableBytes { $0.copy(payload, at: Int(header.chunkOffset)) }
        }
    }
}
