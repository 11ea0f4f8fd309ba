package import MediaCore

extension Relay {
    /// Discards packets that have become too old for all subscribers, also those of silent publishers.
    ///
    /// Call it now and then. A new packet of a track also discards the track's older ones.
    package mutating func discardOldPackets(at now: MonotonicInstant) {
        for id in encodings.ids { changeStream(of: id) { $0.discardOld(at: now) } }
    }

    /// Changes an encoding's stored packets and updates the count of its memory.
    mutating func changeStream(of encoding: EncodingID, _ change: (inout TrackStream) -> Void) {
        let before = encodings.hot[encoding.index].stream.size.bytes
        change(&encodings.hot[encoding.index].stream)
        storedBytes += encodings.hot[encoding.index].stream.size.bytes - before
    }

    /// Keeps the packets of a track's encodings together within the memory of a track.
    mutating func keepWithinTrack(_ track: TrackID) {
        var total = 0
        var largest = tracks.hot[track.index].encodings[0]
        for encoding in tracks.hot[track.index].encodings {
            let size = encodings.hot[encoding.index].stream.size
            total += size.bytes
            if size > encodings.hot[largest.index].stream.size { largest = encoding }
        }
        let excess = total - settings.stream.maximumBytes.bytes
        guard excess > 0 else { return }
        changeStream(of: largest) { $0.discardOldest(excess) }
    }

    /// The memory to reach when packets are discarded.
    ///
    /// It leaves an eighth of the server's memory for packets free, so
    /// that the work is not repeated for each packet.
    private var targetBytes: Int { settings.maximumStoredBytes.bytes / 8 * 7 }

    /// Keeps the packets of all tracks within the server's memory for them.
    ///
    /// Late joiners lose their packets first, then the subscribers of the tracks with the most packets; these
    /// subscribers continue at a keyframe.
    mutating func makeRoomIfNeeded(at now: MonotonicInstant) {
        guard storedBytes > settings.maximumStoredBytes.bytes else { return }
        discardCaches(at: now)
        guard storedBytes > targetBytes else { return }
        var count = 0
        for encoding in encodingsBySize() where storedBytes > targetBytes {
            restart(encoding, because: .overBudget)
            if case .all = encodings.hot[encoding.index].acceptance {
                encodings.hot[encoding.index].acceptance = .fromKeyframe
            }
            if encodings.hot[encoding.index].hasUsers { wantKeyframe(of: encoding, notBefore: now, at: now) }
            count += 1
        }
        notices.append(.memoryUsedUp(tracks: count))
    }

    /// Makes room for another track, if there is none, by discarding the caches for late joiners.
    ///
    /// - Returns: Whether there is room.
    mutating func makeRoomForTrack(at now: MonotonicInstant) -> Bool {
        guard storedBytes > targetBytes else { return true }
        // Every refused track would look through all encodings of the server.
        if let cachesUsedUpAt, now.duration(since: cachesUsedUpAt) < Self.cacheInterval { return false }
        discardCaches(at: now)
        cachesUsedUpAt = storedBytes <= targetBytes ? nil : now
        return storedBytes <= targetBytes
    }

    /// Caches that could make room are not looked for again within this time.
    private static var cacheInterval: Duration { .milliseconds(100) }

    /// Discards the packets kept only for late joiners, from the largest tracks first.
    private mutating func discardCaches(at now: MonotonicInstant) {
        for encoding in encodingsBySize() where storedBytes > targetBytes {
            changeStream(of: encoding) { $0.discardCache(at: now) }
        }
    }

    private mutating func encodingsBySize() -> [EncodingID] {
        countedWork.memoryPasses += 1
        return encodings.ids.sorted { encodings.hot[$0.index].stream.size > encodings.hot[$1.index].stream.size }
    }
}
