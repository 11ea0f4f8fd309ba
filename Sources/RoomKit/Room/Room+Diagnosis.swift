package import RoomProtocol

/// Properties for a diagnosis of the connection.
extension Room {
    /// Program and version of the server, as it states them.
    package var serverVersion: String { link.server }

    /// The last round trips over the open connection, oldest first.
    package var roundTrips: [Duration] { link.session.roundTrips }

    /// The present estimate of the server's clock; any thread may read this.
    package nonisolated var clockEstimate: ClockEstimate { clock.estimate }
}
