/// The numbers of connections, rooms, tracks and subscriptions at a relay, and the memory of its packets.
package struct RelayStatistics: Hashable, Sendable {
    package var connections: Int
    package var rooms: Int
    package var tracks: Int
    /// Tracks that participants receive or have paused, each counted for each of them.
    package var subscriptions: Int
    /// The memory of packets stored for subscribers, in bytes.
    package var storedBytes: Int
    /// Acknowledgements so far that could not be true, and were disregarded.
    package var disregardedAcknowledgements: Int

    /// Creates statistics with the given numbers.
    package init(
        connections: Int = 0,
        rooms: Int = 0,
        tracks: Int = 0,
        subscriptions: Int = 0,
        storedBytes: Int = 0,
        disregardedAcknowledgements: Int = 0
    ) {
        self.connections = connections
        self.rooms = rooms
        self.tracks = tracks
        self.subscriptions = subscriptions
        self.storedBytes = storedBytes
        self.disregardedAcknowledgements = disregardedAcknowledgements
    }
}

/// Counts the relay's operations that could become too expensive, for tests of the cost.
package struct RelayWork: Hashable, Sendable {
    /// Signaling messages that were encoded as JSON.
    package var encodings = 0
    /// Signaling messages that were put into an outbox; how long one waits is told by this, too (`Outbox.waitsSince`).
    package var deliveries = 0
    /// Subscribers that were checked because a packet arrived.
    package var wakes = 0
    /// Steps in the queues of the deadlines of connections and tracks.
    package var deadlineSteps = 0
    /// Steps in the queue of the times at which participants' networks are looked at.
    package var reviewSteps = 0
    /// Passes over all tracks or connections to free memory.
    package var memoryPasses = 0
    /// Subscribers that were looked at to find the bounds of a track.
    package var boundsSteps = 0
    /// Searches for the track with the next turn on a path that its tracks share.
    package var shareSearches = 0
    /// Tracks that were looked at in these searches.
    package var shareSteps = 0

    /// Creates counts of zero.
    package init() {}

    /// The work between two counts.
    package static func - (lhs: RelayWork, rhs: RelayWork) -> RelayWork {
        var result = lhs
        result.encodings -= rhs.encodings
        result.deliveries -= rhs.deliveries
        result.wakes -= rhs.wakes
        result.deadlineSteps -= rhs.deadlineSteps
        result.reviewSteps -= rhs.reviewSteps
        result.memoryPasses -= rhs.memoryPasses
        result.boundsSteps -= rhs.boundsSteps
        result.shareSearches -= rhs.shareSearches
        result.shareSteps -= rhs.shareSteps
        return result
    }
}
