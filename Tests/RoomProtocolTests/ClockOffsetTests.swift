import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite("Clock offset", .timeLimit(.minutes(1)))
struct ClockOffsetTests {
    /// A round trip to a server whose clock is `truth` ahead, in microseconds.
    private func roundTrip(
        _ estimator: inout ClockOffsetEstimator,
        outward: Int64,
        back: Int64,
        truth: Int64,
        at start: Int64 = 1000
    ) {
        let sent = MonotonicInstant(microseconds: start)
        estimator.receive(
            sent: sent,
            serverTime: RoomTime(microseconds: sent.microseconds + outward + truth),
            received: sent + .microseconds(outward + back)
        )
    }

    @Test("The shortest round trip of the window wins")
    func shortestWins() throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: false)
        #expect(estimator.estimate == nil)
        for (outward, back) in [(100, 900), (20, 20), (500, 0)] as [(Int64, Int64)] {
            roundTrip(&estimator, outward: outward, back: back, truth: 5_000_000)
        }
        let estimate = try #require(estimator.estimate)
        #expect(estimate.offset == .microseconds(5_000_000))
        #expect(estimate.errorBound == .microseconds(20))
        #expect(estimate.basis == .estimated)
    }

    @Test("The truth lies within the error bound, however uneven the ways")
    func errorBound() throws {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<500 {
            var estimator = ClockOffsetEstimator(claimsSameHost: false)
            let truth = Int64.random(in: -1_000_000_000...1_000_000_000, using: &generator)
            for _ in 0..<Int.random(in: 1...20, using: &generator) {
                let outward = Int64.random(in: 0...50_000, using: &generator)
                let back = Int64.random(in: 0...50_000, using: &generator)
                roundTrip(&estimator, outward: outward, back: back, truth: truth)
            }
            let estimate = try #require(estimator.estimate)
            let error = estimate.offset - .microseconds(truth)
            #expect(error <= estimate.errorBound + .microseconds(1))
            #expect(error >= .zero - estimate.errorBound - .microseconds(1))
        }
    }

    @Test("A short round trip leaves the window, so that a drifting clock is followed")
    func window() throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: false)
        roundTrip(&estimator, outward: 1, back: 1, truth: 100)
        for _ in 0..<7 { roundTrip(&estimator, outward: 500, back: 500, truth: 900) }
        #expect(estimator.estimate?.offset == .microseconds(100))
        roundTrip(&estimator, outward: 500, back: 500, truth: 900)
        #expect(estimator.estimate?.offset == .microseconds(900))
        #expect(estimator.sampleCount == 9)
    }

    // A machine that was suspended stamped its frames with the time before for up to 40 s, and claimed a small error.
    @Test("After a leap of a clock the first round trip counts, however long", arguments: [-9_000_000, 90_000])
    func leap(by leap: Int64) throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: false)
        for _ in 0..<8 { roundTrip(&estimator, outward: 100, back: 100, truth: 1000) }
        roundTrip(&estimator, outward: 20_000, back: 60_000, truth: 1000 + leap)
        let estimate = try #require(estimator.estimate)
        #expect(estimate.errorBound == .microseconds(40_000))
        #expect(estimate.offset == .microseconds(1000 + leap - 20_000))
        // Without a leap, those that take longer say nothing.
        roundTrip(&estimator, outward: 100, back: 100, truth: 1000 + leap)
        roundTrip(&estimator, outward: 20_000, back: 60_000, truth: 1000 + leap)
        #expect(estimator.estimate?.offset == .microseconds(1000 + leap))
    }

    @Test("An answer from before its question is left out")
    func backwards() {
        var estimator = ClockOffsetEstimator(claimsSameHost: false)
        estimator.receive(
            sent: MonotonicInstant(microseconds: 10),
            serverTime: RoomTime(microseconds: 10),
            received: MonotonicInstant(microseconds: 9)
        )
        #expect(estimator.estimate == nil && estimator.sampleCount == 0)
    }

    @Test("On the same host the offset is exact from the beginning")
    func sameHost() throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: true)
        #expect(estimator.estimate == ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero))
        roundTrip(&estimator, outward: 300, back: 10, truth: 0)
        #expect(estimator.estimate?.basis == .sameHost)
    }

    @Test("A server that only claims to be on the same host is found out")
    func contradiction() throws {
        var estimator = ClockOffsetEstimator(claimsSameHost: true)
        roundTrip(&estimator, outward: 100, back: 100, truth: 3_000_000)
        let estimate = try #require(estimator.estimate)
        #expect(estimate.basis == .estimated && estimate.offset == .seconds(3))
    }

    @Test("Room time and local time turn into each other")
    func conversion() {
        let estimate = ClockEstimate(basis: .estimated, offset: .seconds(-3), errorBound: .zero)
        let instant = MonotonicInstant(microseconds: 10_000_000)
        #expect(estimate.roomTime(at: instant) == RoomTime(microseconds: 7_000_000))
        #expect(estimate.instant(at: RoomTime(microseconds: 7_000_000)) == instant)
    }

    @Test("Clocks at the ends of their range neither trap nor poison a later estimate")
    func extremes() {
        var estimator = ClockOffsetEstimator(claimsSameHost: true)
        for sent in [Int64.min, -1, 0, .max] {
            for server in [Int64.min, 0, .max] {
                estimator.receive(
                    sent: MonotonicInstant(microseconds: sent),
                    serverTime: RoomTime(microseconds: server),
                    received: MonotonicInstant(microseconds: 5)
                )
                _ = estimator.estimate
            }
        }
        for _ in 0..<8 { roundTrip(&estimator, outward: 1, back: 1, truth: 0) }
        #expect(estimator.estimate?.basis == .sameHost)
    }
}
