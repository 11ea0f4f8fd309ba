import MediaCore
import Testing

@Suite("Turns")
struct RoundRobinTests {
    /// Serves `rounds` times the first ready member, and returns the members that were served.
    private func served(_ rounds: Int, of count: Int, ready: Set<Int>, turns: inout RoundRobin) -> [Int] {
        (0..<rounds).compactMap { _ in
            let order = (0..<count).map { turns.index($0, of: count) }
            #expect(order.sorted() == Array(0..<count), "each member once: \(order)")
            let member = order.first { ready.contains($0) }
            if let member { turns.served(member) }
            return member
        }
    }

    @Test("Members that are always ready get the same number of turns")
    func fairness() {
        var turns = RoundRobin()
        #expect(served(7, of: 3, ready: [0, 1, 2], turns: &turns) == [0, 1, 2, 0, 1, 2, 0])
    }

    @Test("A member that is not ready is passed over")
    func passing() {
        var turns = RoundRobin()
        #expect(served(5, of: 4, ready: [1, 3], turns: &turns) == [1, 3, 1, 3, 1])
    }

    @Test("After members have gone, all that are left are asked")
    func shrinking() {
        var turns = RoundRobin()
        turns.served(4)
        #expect(served(3, of: 2, ready: [0, 1], turns: &turns) == [1, 0, 1])
    }
}
