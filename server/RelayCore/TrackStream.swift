package import MediaCore
package import RoomProtocol

/// The recent packets of one track, stored once for all subscribers.
///
/// Packets have consecutive positions, and a subscriber is a position in the stream. The memory is therefore the same
/// for any number of subscribers, however slow. The stream keeps the packets of the last moments, for subscribers that
/// lag a little. For late joiners it keeps the last whole keyframe and the later frames of temporal layer 0: for a few
/// seconds, or as long as the picture stands still and they are few.
package struct TrackStream: Sendable {
    /// A packet and the fields of its header that the relay needs.
    package struct Entry: Sendable {
        /// The packet; `nil` if it was removed from the cache for late joiners, or if its frame was abandoned.
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
        /// The bytes of the packets of temporal layer 0 before this one, without abandoned frames, modulo 2^32.
        fileprivate var baseOffset: UInt32
        /// The bytes of all packets of the track before this one.
        fileprivate var offset: Int

        /// The memory of an entry besides its packet's message.
        ///
        /// It is the entry's slot and the packet object with its headroom: 80 bytes and two headers of the allocator.
        /// It is counted so that a flood of tiny packets also reaches the bound.
        fileprivate static let overhead = MemoryLayout<Entry?>.stride + 112
    }

    /// A position before which all packets were discarded at once.
    package struct Restart: Sendable {
        /// The position of the first packet after it.
        package var position: Int
        /// The reason counted for subscribers that were not sent packets before it.
        package var reason: DropReason
    }

    /// Packets at consecutive positions.
    ///
    /// They are kept apart from the stream, so that little is copied when they are lent for each packet and subscriber.
    package struct Packets: Sendable {
        fileprivate var ring = RingBuffer<Entry>()
        /// The position of the oldest stored packet.
        package fileprivate(set) var startPosition = 0

        /// The position after the newest packet.
        package var endPosition: Int { startPosition + ring.count }

        /// The bytes of all packets that ever were in the stream.
        fileprivate var total = 0
        /// Of these, the bytes of temporal layer 0 without abandoned frames, modulo 2^32.
        fileprivate var baseTotal: UInt32 = 0

        /// The packet at `position`, from `startPosition` up to but not including `endPosition`.
        package subscript(_ position: Int) -> Entry { ring[position - startPosition] }

        /// The position after the newest packet of a higher temporal layer.
        fileprivate var layersEnd = 0

        /// Whether packets of higher temporal layers came at `position` or after it.
        package func hasLayers(from position: Int) -> Bool { layersEnd > position }

        /// The bytes of the packets from `position` on, except those that the stream has left behind; packets that were
        /// removed from between them count.
        package func bytes(from position: Int) -> Int {
            let first = max(position, startPosition)
            // All packets may have been discarded at once, with a subscriber still before them.
            guard first < endPosition else { return 0 }
            return total - self[first].offset
        }

        /// As `bytes(from:)`, of the frames of temporal layer 0 alone that were not abandoned: what is sent of a cache.
        package func baseBytes(from position: Int) -> Int {
            let first = max(position, startPosition)
            guard first < endPosition else { return 0 }
            return Int(baseTotal &- self[first].baseOffset)
        }
    }

    private let settings: TrackStreamSettings
    /// The stored packets.
    package private(set) var packets = Packets()
    private var bytes = 0
    /// Before this position, packets of higher temporal layers have been removed from the cache.
    private var thinnedPosition = 0
    /// The position at which the last whole keyframe begins.
    private var wholeKeyframe: Int?
    /// The bytes of its packets.
    private var wholeKeyframeSize = 0
    /// The frames of temporal layer 0 since, and their bytes.
    private var sinceKeyframe = (frames: 0, bytes: 0)
    /// When a repeat of a picture that stands still last came.
    private var lastRepeat: MonotonicInstant?
    /// The position at which the incomplete frame begins, if its first packet has arrived.
    private var unfinishedFrame: Int?
    /// Until when the last keyframe is kept although it is older than `cacheAge`.
    private var pinnedUntil: MonotonicInstant?

    /// The number of the newest whole frame of temporal layer 0.
    package private(set) var newestBaseFrame: UInt32?
    /// The last time when all packets were discarded at once.
    package private(set) var lastRestart = Restart(position: 0, reason: .disabled)

    /// Creates an empty stream.
    package init(_ settings: TrackStreamSettings = TrackStreamSettings()) {
        self.settings = settings
    }

    /// The position of the oldest stored packet.
    package var startPosition: Int { packets.startPosition }

    /// The position after the newest packet.
    package var endPosition: Int { packets.endPosition }

    /// The number of stored bytes.
    package var size: DataSize { DataSize(bytes: bytes) }

    /// The packet at `position`, from `startPosition` up to but not including `endPosition`.
    package subscript(_ position: Int) -> Entry { packets[position] }

    /// The position at which the last keyframe begins, of any age, whole or not, if its beginning is still stored.
    package var newestKeyframe: Int? {
        (incomingKeyframe ?? wholeKeyframe).flatMap { $0 >= startPosition ? $0 : nil }
    }

    /// The bytes of the packets of the last keyframe that have come; 0 if its beginning is no longer stored.
    package var newestKeyframeSize: Int {
        guard let start = newestKeyframe else { return 0 }
        return incomingKeyframe == nil ? wholeKeyframeSize : packets.bytes(from: start)
    }

    /// The position at which the last keyframe begins, if it and all later frames of temporal layer 0 are stored and
    /// lead to the present picture soon.
    package func cachedKeyframe(at now: MonotonicInstant) -> Int? {
        freshIncomingKeyframe(at: now) ?? wholeKeyframe(noOlderThan: settings.cacheAge, at: now)
    }

    /// The position at which an incomplete keyframe begins.
    private var incomingKeyframe: Int? {
        guard let start = unfinishedFrame, start >= startPosition, self[start].isKeyframe else { return nil }
        return start
    }

    /// The position at which an incomplete keyframe begins, if that is not too old for late joiners.
    private func freshIncomingKeyframe(at now: MonotonicInstant) -> Int? {
        incomingKeyframe.flatMap { now.duration(since: self[$0].arrival) <= settings.cacheAge ? $0 : nil }
    }

    /// The position at which the last whole keyframe begins, if it is still stored and no older than `age`.
    ///
    /// While the picture stands still, the keyframe does not grow old, unless much has followed it.
    private func wholeKeyframe(noOlderThan age: Duration, at now: MonotonicInstant) -> Int? {
        guard let start = wholeKeyframe, start >= startPosition else { return nil }
        var newest = self[start].arrival
        let isSoonDecoded =
            sinceKeyframe.frames <= settings.stillFrames && sinceKeyframe.bytes <= settings.stillBytes.bytes
        if let lastRepeat, isSoonDecoded { newest = max(newest, lastRepeat) }
        return now.duration(since: newest) <= age ? start : nil
    }

    /// Keeps the last keyframe and the frames of temporal layer 0 since for a subscriber that is catching up from it.
    ///
    /// It keeps them up to `pinnedAge`, and no longer than until the next keyframe.
    package mutating func pin(until end: MonotonicInstant) {
        pinnedUntil = max(pinnedUntil ?? end, end)
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
            bytes: Int32(packet.capacity),
            baseOffset: packets.baseTotal,
            offset: packets.total
        )
        packets.ring.append(entry)
        packets.total += packet.count
        if header.temporalLayer == 0 { packets.baseTotal &+= UInt32(packet.count) }
        if header.isKeyframe, header.isLastChunk, let start = wholeKeyframe {
            wholeKeyframeSize = packets.bytes(from: start)
            sinceKeyframe = (0, 0)
        } else if header.temporalLayer == 0, !header.isKeyframe {
            if header.isLastChunk { sinceKeyframe.frames += 1 }
            sinceKeyframe.bytes += packet.count
        }
        if header.isRepeat { lastRepeat = now }
        if header.temporalLayer > 0 { packets.layersEnd = endPosition }
        bytes += packet.capacity + Entry.overhead
        discardOld(at: now)
    }

    /// Discards the unfinished frame, because its publisher abandoned it; it counts as left out.
    package mutating func abandonFrame() {
        guard let start = unfinishedFrame else { return }
        unfinishedFrame = nil
        let first = max(start, startPosition)
        guard first < endPosition else { return }
        let offset = self[first].baseOffset
        packets.baseTotal = offset
        for position in first..<endPosition {
            dropPacket(at: position)
            packets.ring.modify(position - startPosition) { ($0.isAbandoned, $0.baseOffset) = (true, offset) }
        }
    }

    /// Discards all packets; the next useful frame must be a keyframe.
    ///
    /// Subscribers notice by themselves, at their next step, that they must wait for it; `reason` is counted for them.
    package mutating func restart(because reason: DropReason) {
        packets.startPosition = endPosition
        packets.ring.removeAll()
        bytes = 0
        wholeKeyframe = nil
        unfinishedFrame = nil
        newestBaseFrame = nil
        lastRepeat = nil
        lastRestart = Restart(position: startPosition, reason: reason)
    }

    /// Discards what has become too old by `now`.
    package mutating func discardOld(at now: MonotonicInstant) {
        if let pinnedUntil, pinnedUntil < now { self.pinnedUntil = nil }
        let age = pinnedUntil == nil ? settings.cacheAge : settings.pinnedAge
        let cacheStart = wholeKeyframe(noOlderThan: age, at: now) ?? freshIncomingKeyframe(at: now) ?? endPosition
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

    /// Discards the packets kept only for late joiners; packets for subscribers that lag stay.
    package mutating func discardCache(at now: MonotonicInstant) {
        let horizon = now - settings.liveWindow
        while let oldest = packets.ring.first, oldest.arrival < horizon { removeOldest() }
    }

    /// Discards the oldest packets until `count` bytes are free, or nothing is left.
    package mutating func discardOldest(_ count: Int) {
        let end = max(0, bytes - count)
        while bytes > end, packets.ring.first != nil { removeOldest() }
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
