import MediaCore
import Testing
import Threading

@testable import WebSockets

@Suite("The order of a server's addresses")
struct AddressScheduleTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    /// The addresses that are tried if none answers, with the milliseconds that each gets.
    private func tries(of addresses: [String], within limit: Duration) -> [String] {
        var now = start
        var schedule = AddressSchedule(addresses, until: now + limit)
        var tries: [String] = []
        while now < schedule.deadline, let next = schedule.next(at: now) {
            tries.append("\(next.address) \(next.limit.wholeMicroseconds / 1000)")
            now = now + next.limit
            schedule.gaveWay()
        }
        return tries
    }

    @Test("The only address gets all the time; several get a first try of up to 1 s, then shares of the rest")
    func silent() {
        #expect(tries(of: ["a"], within: .seconds(5)) == ["a 5000"])
        #expect(tries(of: ["a", "b"], within: .seconds(5)) == ["a 1000", "b 1000", "a 1500", "b 1500"])
        #expect(tries(of: ["a", "b"], within: .seconds(1)).prefix(2) == ["a 500", "b 250"])
        #expect(tries(of: [], within: .seconds(5)).isEmpty)
    }

    @Test("Many addresses get tries that are not too short for a far server, as long as there is time")
    func many() {
        let tries = tries(of: (0..<64).map { "\($0)" }, within: .seconds(5))
        #expect(tries == (0..<20).map { "\($0) 250" })
    }

    @Test("An address that refuses is not tried again, and one that was silent gets the rest of the time")
    func refused() {
        var schedule = AddressSchedule(["silent", "refusing"], until: start + .seconds(5))
        #expect(schedule.next(at: start)?.address == "silent")
        schedule.gaveWay()
        #expect(schedule.next(at: start + .seconds(1))?.address == "refusing")
        let last = schedule.next(at: start + .seconds(1))
        #expect(last?.address == "silent" && last?.limit == .seconds(4))
        #expect(!schedule.hasNext && schedule.next(at: start + .seconds(2)) == nil)
    }

    @Test("Once the schedule is ended, there is no address to go on to")
    func end() {
        var schedule = AddressSchedule(["a", "b", "c"], until: start + .seconds(5))
        _ = schedule.next(at: start)
        schedule.gaveWay()
        schedule.end()
        #expect(!schedule.hasNext && schedule.next(at: start) == nil)
    }
}
