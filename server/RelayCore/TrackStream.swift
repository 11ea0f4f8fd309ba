package import MediaCore
package import RoomProtocol

/// The recent packets of one track, stored once for all subscribers.
///
/// Packets stand at consecutive positions; a subscriber is a position in here, so that however many there are and
/// however slow, the memory is the same. Kept are the packets of the last moments, for subscribers that lag a little,
/// and for late joiners the last whole keyframe with the frames of temporal layer 0 since.
package struct TrackStream: Sendable {
    /// A packet and what the relay needs of its header.
    package struct Entry: Sendable {
        /// The packet; `nil` once it was left out of the cache for late joiners, or its frame was abandoned.
        package var packet: PacketBuffer?
        package var frameNumber: UInt32
        package var arrival: MonotonicInstant
        package var temporalLayer: UInt8
        package var isFirstChunk: Bool
        package var isLastChunk: Bool
        package var isKeyframe: Bool
        package var isLayerSync: Bool
        package var isDiscardable: Bool
        /// Whether the publisher abandoned the frame.
        package var isAbandoned = false
        fileprivate var bytes: Int32

        /// What an entry takes besides its packet's message: its place in memory, and the packet object with its
        /// headroom, 80 bytes and two headers of the allocator's.
        ///
        /// Counted so that a flood of tiny packets meets the bound too.
        fileprivate static let overhead = MemoryLayout<Entry?>.stride + 112
    }

    /// A point before which everything was forgotten at once.
    package struct Restart: Sendable {
        /// The position of the first packet after it.
        package var position: Int
        /// Why subscribers that had not reached it were not sent what came before.
        package var reason: DropReason
    }

    /// Packets at consecutive positions.
    ///
    /// Apart from the stream, so that little is copied when they are lent for each packet and subscriber.
    package struct Packets: Sendable {
        fileprivate var ring = RingBuffer<Entry>()
        /// The position of the oldest packet kept.
        package fileprivate(set) var startPosition = 0

        /// The position after the newest packet.
        package var endPosition: Int { startPosition + ring.count }

        /// The packet at `position`, which is from `startPosition` to `endPosition`, the latter left out.
        package subscript(_ position: Int) -> Entry { ring[position - startPosition] }
    }

    private let settings: TrackStreamSettings
    /// The packets kept.
    package private(set) var packets = Packets()
    private var bytes = 0
    /// Up to here, packets of higher temporal layers have been left out of the cache.
    private var thinnedPosition = 0
    /// Where the last whole keyframe begins.
    private var wholeKeyframe: Int?
    /// Where the frame begins of which the last packet has not come yet, if its first one did.
    private var unfinishedFrame: Int?

    /// The number of the newest whole frame of temporal layer 0.
    package private(set) var newestBaseFrame: UInt32?
    /// The last time that all packets were forgotten at once.
    package private(set) var lastRestart = Restart(position: 0, reason: .disabled)

    /// An empty stream.
    package init(_ settings: TrackStreamSettings = TrackStreamSettings()) {
        self.settings = settings
    }

    /// The position of the oldest packet kept.
    package var startPosition: Int { packets.startPosition }

    /// The position after the newest packet.
    package var endPosition: Int { packets.endPosition }

    /// Bytes kept.
    package var size: DataSize { DataSize(bytes: bytes) }

    /// The packet at `position`, which is from `startPosition` to `endPosition`, the latter left out.
    package subscript(_ position: Int) -> Entry { packets[position] }

    /// Where the last keyframe begins, of whatever age and whole or not, if its beginning is still here.
    package var newestKeyframe: Int? {
        (incomingKeyframe ?? wholeKeyframe).flatMap { $0 >= startPosition ? $0 : nil }
    }

    /// Where the last keyframe begins, if it and the frames of temporal layer 0 since are all here.
    package func cachedKeyframe(at now: MonotonicInstant) -> Int? {
        fresh(incomingKeyframe, at: now) ?? fresh(wholeKeyframe, at: now)
    }

    /// Where a keyframe begins that is not whole yet.
    private var incomingKeyframe: Int? {
        guard let start = unfinishedFrame, start >= startPosition, self[start].isKeyframe else { return nil }
        return start
    }

    /// `position` if it is still here, and no older than keyframes are kept for late joiners.
    private func fresh(_ position: Int?, at now: MonotonicInstant) -> Int? {
        guard let position, position >= startPosition else { return nil }
        return now.duration(since: self[position].arrival) <= settings.cacheAge ? position : nil
    }

    /// Stores the next packet, which is in order.
    package mutating func append(_ packet: PacketBuffer, header: MediaPacketHeader, at now: MonotonicInstant) {
        if header.isFirstChunk { unfinishedFrame = endPosition }
        if header.isLastChunk, let start = unfinishedFrame {
            unfinishedFrame = nil
            if header.isKeyframe { wholeKeyframe = start }
            if header.temporalLayer == 0 { newestBaseFrame = header.frameNumber }
        }
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
        packets.ring.append(entry)
        bytes += packet.capacity + Entry.overhead
        discardOld(at: now)
    }

    /// Lets go of the unfinished frame, because its publisher abandoned it: it counts as left out.
    package mutating func abandonFrame() {
        guard let start = unfinishedFrame else { return }
        unfinishedFrame = nil
        for position in max(start, startPosition)..<endPosition {
            dropPacket(at: position)
            packets.ring.modify(position - startPosition) { $0.isAbandoned = true }
        }
    }

    /// Forgets all packets; the next frame must be a keyframe to be of use.
    ///
    /// Subscribers find out by themselves, when they go on, that they are to wait for it; `reason` is what is counted.
    package mutating func restart(because reason: DropReason) {
        packets.startPosition = endPosition
        packets.ring.removeAll()
        bytes = 0
        wholeKeyframe = nil
        unfinishedFrame = nil
        newestBaseFrame = nil
        lastRestart = Restart(position: startPosition, reason: reason)
    }

    /// Lets go of what has become too old by `now`.
    package mutating func discardOld(at now: MonotonicInstant) {
        let cacheStart = fresh(wholeKeyframe, at: now) ?? fresh(incomingKeyframe, at: now) ?? endPosition
        let horizon = now - settings.liveWindow
        thinnedPosition = max(thinnedPosition, startPosition)
        while thinnedPosition < endPosition, self[thinnedPosition].arrival < horizon {
            if self[thinnedPosition].temporalLayer > 0 { dropPacket(at: thinnedPosition) }
            thinnedPosition += 1
        }
        while let oldest = packets.ring.first {
            let isNeeded = oldest.arrival >= horizon || startPosition >= cacheStart
            if isNeeded && bytes <= settings.maximumBytes.bytes { break }
            removeOldest()
        }
    }

    /// Lets go of what is kept for late joiners alone; what subscribers that lag may still be sent stays.
    package mutating func discardCache(at now: MonotonicInstant) {
        let horizon = now - settings.liveWindow
        while let oldest = packets.ring.first, oldest.arrival < horizon { removeOldest() }
    }

    private mutating func removeOldest() {
        dropPacket(at: startPosition)
        packets.ring.removeFirst()
        bytes -= Entry.overhead
        packets.startPosition += 1
    }

    private mutating func dropPacket(at position: Int) {
        packets.ring.modify(position - startPosition) { entry in
            guard entry.packet != nil else { return }
            entry.packet = nil
            bytes -= Int(entry.bytes)
        }
    }
}
