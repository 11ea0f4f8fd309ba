package import MediaCore
package import RoomProtocol

/// The recent packets of one track, stored once for all subscribers.
///
/// Packets stand at consecutive positions; a subscriber is a position in here, so that however many there are and
/// however slow, the memory is the same. Kept are the packets of the last moments, for subscribers that lag a little,
/// and for late joiners the last keyframe with the frames of temporal layer 0 since.
package struct TrackStream: Sendable {
    /// A packet and what the relay needs of its header.
    package struct Entry: Sendable {
        /// The packet; `nil` once it was left out of the cache for late joiners.
        package var packet: PacketBuffer?
        package var frameNumber: UInt32
        package var arrival: MonotonicInstant
        package var temporalLayer: UInt8
        package var isFirstChunk: Bool
        package var isLastChunk: Bool
        package var isKeyframe: Bool
        package var isLayerSync: Bool
        package var isDiscardable: Bool
        fileprivate var bytes: Int32

        /// What an entry takes besides its packet's message: its place in memory, and the packet object with its
        /// headroom, 80 bytes and two headers of the allocator's.
        ///
        /// Counted so that a flood of tiny packets meets the bound too.
        fileprivate static let overhead = MemoryLayout<Entry?>.stride + 112
    }

    private let settings: TrackStreamSettings
    private var ring = RingBuffer<Entry>()
    private var bytes = 0
    /// Up to here, packets of higher temporal layers have been left out of the cache.
    private var thinnedPosition = 0
    private var keyframeStart: Int?
    private var lastHeader: MediaPacketHeader?

    /// The position of the oldest packet kept.
    package private(set) var startPosition = 0
    /// The number of the newest whole frame of temporal layer 0.
    package private(set) var newestBaseFrame: UInt32?

    /// An empty stream.
    package init(_ settings: TrackStreamSettings = TrackStreamSettings()) {
        self.settings = settings
    }

    /// The position after the newest packet.
    package var endPosition: Int { startPosition + ring.count }

    /// Bytes kept.
    package var size: DataSize { DataSize(bytes: bytes) }

    /// The packet at `position`, which is from `startPosition` to `endPosition`, the latter left out.
    package subscript(_ position: Int) -> Entry { ring[position - startPosition] }

    /// Where the last keyframe begins, of whatever age and whole or not, if its beginning is still here.
    package var newestKeyframe: Int? {
        keyframeStart.flatMap { $0 >= startPosition ? $0 : nil }
    }

    /// Where the last keyframe begins, if it and the frames of temporal layer 0 since are all here.
    package func cachedKeyframe(at now: MonotonicInstant) -> Int? {
        guard let keyframe = newestKeyframe else { return nil }
        return now.duration(since: self[keyframe].arrival) <= settings.cacheAge ? keyframe : nil
    }

    /// Stores the next packet.
    ///
    /// - Throws: When the packet does not go on where the one before ended.
    package mutating func append(
        _ packet: PacketBuffer,
        header: MediaPacketHeader,
        at now: MonotonicInstant
    ) throws(MalformedPacket) {
        try checkOrder(header)
        lastHeader = header
        if header.isFirstChunk && header.isKeyframe { keyframeStart = endPosition }
        if header.isLastChunk && header.temporalLayer == 0 { newestBaseFrame = header.frameNumber }
        let entry = Entry(
            packet: packet,
            frameNumber: header.frameNumber,
            arrival: now,
            temporalLayer: header.temporalLayer,
            isFirstChunk: header.isFirstChunk,
            isLastChunk: header.isLastChunk,
            isKeyframe: header.isKeyframe,
            isLayerSync: header.isLayerSync,
            isDiscardable: header.isDiscardable,
            bytes: Int32(packet.capacity)
        )
        ring.append(entry)
        bytes += packet.capacity + Entry.overhead
        discardOld(at: now)
    }

    /// Forgets all packets, as when the publisher pauses; the next frame must be a keyframe to be of use.
    package mutating func clear() {
        startPosition = endPosition
        ring.removeAll()
        bytes = 0
        keyframeStart = nil
        newestBaseFrame = nil
    }

    private func checkOrder(_ header: MediaPacketHeader) throws(MalformedPacket) {
        guard let last = lastHeader else {
            guard header.isFirstChunk else { throw MalformedPacket("a track that begins inside a frame") }
            return
        }
        if last.isLastChunk {
            guard header.isFirstChunk, header.frameNumber > last.frameNumber else {
                throw MalformedPacket(
                    "byte \(header.chunkOffset) of frame \(header.frameNumber) after the end of frame "
                        + "\(last.frameNumber)"
                )
            }
            return
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
    }

    /// Lets go of what has become too old by `now`.
    package mutating func discardOld(at now: MonotonicInstant) {
        let horizon = now - settings.liveWindow
        let cacheStart = cachedKeyframe(at: now) ?? endPosition
        thinnedPosition = max(thinnedPosition, startPosition)
        while thinnedPosition < endPosition, self[thinnedPosition].arrival < horizon {
            if self[thinnedPosition].temporalLayer > 0 { dropPacket(at: thinnedPosition) }
            thinnedPosition += 1
        }
        while let oldest = ring.first {
            let isNeeded = oldest.arrival >= horizon || startPosition >= cacheStart
            if isNeeded && bytes <= settings.maximumBytes.bytes { break }
            dropPacket(at: startPosition)
            ring.removeFirst()
            bytes -= Entry.overhead
            startPosition += 1
        }
    }

    private mutating func dropPacket(at position: Int) {
        ring.modify(position - startPosition) { entry in
            guard entry.packet != nil else { return }
            entry.packet = nil
            bytes -= Int(entry.bytes)
        }
    }
}
