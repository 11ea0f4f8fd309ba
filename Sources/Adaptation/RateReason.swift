/// Why a connection's rate is what it is.
package enum RateReason: String, Hashable, Sendable, CaseIterable {
    /// Nothing is known of the path yet.
    case start
    /// No queue stands, so the rate grows.
    case growth
    /// The rate returns to what the path last carried.
    case recovery
    /// Less is sent than the rate allows, so that a higher one would not be tested.
    case unused
    /// It is the most that there is to send, or that anybody receives.
    case highestRate
    /// A queue stands.
    case queue
    /// The path delivered nothing for a while.
    case stall
    /// A small isolated write was late.
    case lateWrite
    /// Others fill the queue, such as a download.
    case competition
    /// The other end acknowledges nothing, and the socket tells what it takes.
    case socket
}
