/// The order in which the members of a group get their turns, so that none starves another.
///
/// The members have indices from 0. Members may come and go: at worst, one waits for an extra round.
@usableFromInline package struct RoundRobin: Sendable {
    /// The index after that of the member that was served last.
    @usableFromInline var next = 0

    /// Creates an order that begins with the first member.
    @inlinable package init() {}

    /// The index of the member to ask at position `offset` of the order, for a group of `count` members.
    @inlinable package func index(_ offset: Int, of count: Int) -> Int {
        (next + offset) % count
    }

    /// Notes that the member at `index` was served; the next order begins with the member after it.
    @inlinable package mutating func served(_ index: Int) {
        next = index + 1
    }
}
