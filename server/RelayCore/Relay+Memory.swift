package import MediaCore

extension Relay {
    /// Discards packets that have become too old for all subscribers, also those of silent publishers.
    ///
    /// Call it now and then. A new packet of a track also discards the track's older ones.
    package mutating func discardOldPackets(at now: MonotonicInstant) {
        for id in tracks.ids { changeStream(of: id) { $0.discardOld(at: now) } }
    }

    /// Changes a track's stored packets and updates the count of its memory.
    mutating func changeStream(of track: TrackID, _ change: (inout TrackStream) -> Void) {
        let before = tracks.hot[track.index].stream.size.bytes
        change(&tracks.hot[track.index].stream)
        storedBytes += tracks.hot[track.index].stream.size.bytes - before
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
        for track in tracksBySize() where storedBytes > targetBytes {
            restart(track, because: .overBudget)
            if case .all = tracks.hot[track.index].acceptance { tracks.hot[track.index].acceptance = .fromKeyframe }
            if !tracks.hot[track.index].subscribers.isEmpty { wantKeyframe(of: track, notBefore: now, at: now) }
            count += 1
        }
        notices.append(.memoryUsedUp(tracks: count))
    }

    /// Whether there is memory for another track.
    mutating func hasRoomForTrack(at now: MonotonicInstant) -> Bool {
        if storedBytes > targetBytes { discardCaches(at: now) }
        return storedBytes <= targetBytes
    }

    /// Discards the packets kept only for late joiners, from the largest tracks first.
    private mutating func discardCaches(at now: MonotonicInstant) {
        for track in tracksBySize() where storedBytes > targetBytes {
            changeStream(of: track) { $0.discardCache(at: now) }
        }
    }

    private mutating func tracksBySize() -> [TrackID] {
        countedWork.memoryPasses += 1
        return tracks.ids.sorted { tracks.hot[$0.index].stream.size > tracks.hot[$1.index].stream.size }
    }
}
