package import RoomProtocol

/// Checks that the packets of a track arrive in order: whole frames, one after the other, with rising numbers.
///
/// A publisher may abandon a frame that it has begun; the first packet of a later frame then follows.
package struct FrameOrder: Sendable {
    private var last: MediaPacketHeader?

    /// Creates the order of a track before its first packet.
    package init() {}

    /// Records the next packet.
    ///
    /// - Returns: The temporal layer of the frame before this packet's, if this packet shows that it was abandoned.
    /// - Throws: An error if the packet neither continues where the one before ended nor begins a later frame.
    package mutating func advance(to header: MediaPacketHeader) throws(MalformedPacket) -> UInt8? {
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
            return last.isLastChunk ? nil : last.temporalLayer
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
}
