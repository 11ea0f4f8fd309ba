package import RoomProtocol

extension AcknowledgementSchedule.Chunk {
    /// The chunk of a packet; `sentTime` as in `AcknowledgementSchedule.Chunk`.
    package init(_ header: MediaPacketHeader, simulcastLayer: UInt8 = 0, sentTime: Int64?) {
        self.init(
            trackAlias: header.trackAlias,
            simulcastLayer: simulcastLayer,
            frameNumber: header.frameNumber,
            isFirst: header.isFirstChunk,
            isLast: header.isLastChunk,
            sentTime: sentTime
        )
    }
}
