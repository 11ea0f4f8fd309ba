import RelayCore
import Testing

@testable import RelayServer

@Suite("The server's table of connections")
struct ConnectionTableTests {
    private final class Connection {}

    /// Names with one index: the second one is that of the connection that came after the first one's end.
    private let former = SlotID(rawValue: 3)
    private let later = SlotID(rawValue: 1 << 32 | 3)

    // It was found by its index alone.
    @Test("The name of a connection that is gone does not find the one that has its place now, and does not remove it")
    func formerName() {
        var table = ConnectionTable<Connection>()
        let (first, second) = (Connection(), Connection())
        #expect(table[former] == nil)
        table.seat(first, as: former)
        #expect(table[former] === first && table[later] == nil && table[SlotID(rawValue: 2)] == nil)
        table.remove(former)
        #expect(table[former] == nil)
        table.seat(second, as: later)
        table.remove(former)
        #expect(table[former] == nil && table[later] === second)
    }
}
