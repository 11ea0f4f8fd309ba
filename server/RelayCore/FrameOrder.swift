package import RoomProtocol

/// Checks that the packets of a track arrive in order: whole frames, one after the other, with rising numbers.
///
/// A publisher may abandon a frame that it has begun; the first packet of a later frame then follows.
package struct FrameOrder: Sendable {
    /// A frame that did not arrive completely.
    package struct AbandonedFrame: Hashable, Sendable {
        package var temporalLayer: UInt8
        package var isKeyframe: Bool
    }

    private var last: MediaPacketHeader?

    /// Creates the order of a track before its first packet.
    package init() {}

    /// Records the next packet.
    ///
    /// - Returns: The frame before this packet's, if this packet shows that it was abandoned.
    /// - Throws: An error if the packet neither continues where the one before ended nor begins a later frame.
    package mutating func advance(to header: MediaPacketHeader) throws(MalformedPacket) -> AbandonedFrame? {
        guard let last else {
            guard header.isFirstChunk else { throw MalformedPacket("a track that begins inside a frame") }
            self.last = header
            return nil
        }
        if header.isFirstChunk {
            guard header.frameNumber > last.frameNumber else {
                throw MalformedPacket("frame \(header.frameNumber) begins after frame \(last.frameNumber)")
            }
            self.last = header
            return last.isLastChunk ? nil : Self.abandoned(last)
        }
        guard !last.isLastChunk else {
            let place = "byte \(header.chunkOffset) of frame \(header.frameNumber)"
            throw MalformedPacket("\(place) after the end of frame \(last.frameNumber)")
        }
        guard
            header.frameNumber == last.frameNumber, header.frameLength == last.frameLength,
            Int(header.chunkOffset) == Int(last.chunkOffset) + last.payloadLength,
            header.temporalLayer == last.temporalLayer, header.isKeyframe == last.isKeyframe
        else {
            throw MalformedPacket(
                "byte \(header.chunkOffset) of frame \(header.frameNumber) where the rest of frame "
                    + "\(last.frameNumber) should come"
            )
        }
        self.last = header
        return nil
    }

    private static func abandoned(_ header: MediaPacketHeader) -> AbandonedFrame {
        AbandonedFrame(temporalLayer: header.temporalLayer, isKeyframe: header.isKeyframe)
    }
}
