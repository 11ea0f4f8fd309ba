import MediaCore
import RoomProtocol
import Testing

@Suite("Clock offset")
struct ClockOffsetTests {
    @Test("The shortest round trip of the window wins")
    func shortestWins() throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: false)
        #expect(estimator.estimate == nil)
        let truth: Int64 = 5_000_000
        for (outward, back) in [(100, 900), (20, 20), (500, 0)] as [(Int64, Int64)] {
            let sent = MonotonicInstant(microseconds: 1000)
            estimator.receive(
                sent: sent,
                serverTime: RoomTime(microseconds: sent.microseconds + outward + truth),
                received: sent + .microseconds(outward + back)
            )
        }
        let estimate = try #require(estimator.estimate)
        #expect(estimate.offset == .microseconds(truth))
        #expect(estimate.errorBound == .microseconds(20))
        #expect(estimate.basis == .estimated)
    }
}
