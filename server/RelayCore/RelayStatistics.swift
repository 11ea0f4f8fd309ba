/// How many of everything there are at a relay.
package struct RelayStatistics: Hashable, Sendable {
    package var connections: Int
    package var rooms: Int
    package var tracks: Int
    /// Memory that packets kept for subscribers take, in bytes.
    package var storedBytes: Int

    /// Statistics with the given numbers.
    package init(connections: Int = 0, rooms: Int = 0, tracks: Int = 0, storedBytes: Int = 0) {
        self.connections = connections
        self.rooms = rooms
        self.tracks = tracks
        self.storedBytes = storedBytes
    }
}

/// How often a relay has done what could cost more than it should, for tests of the cost.
package struct RelayWork: Hashable, Sendable {
    /// Signaling messages that were put into JSON.
    package var encodings = 0
    /// Signaling messages that were put into an outbox.
    package var deliveries = 0
    /// Subscribers that were looked at because a packet came.
    package var wakes = 0
    /// Steps in the queues of deadlines.
    package var deadlineSteps = 0
    /// Passes over all tracks to free memory.
    package var memoryPasses = 0

    /// Nothing yet.
    package init() {}

    /// The work between two counts.
    package static func - (lhs: RelayWork, rhs: RelayWork) -> RelayWork {
        var result = lhs
        result.encodings -= rhs.encodings
        result.deliveries -= rhs.deliveries
        result.wakes -= rhs.wakes
        result.deadlineSteps -= rhs.deadlineSteps
        result.memoryPasses -= rhs.memoryPasses
        return result
    }
}
