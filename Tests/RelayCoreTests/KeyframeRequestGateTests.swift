import MediaCore
import RelayCore
import TestTools
import Testing

@Suite("Keyframe request gate", .timeLimit(.minutes(1)))
struct KeyframeRequestGateTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func instant(_ milliseconds: Int) -> MonotonicInstant { start + .milliseconds(milliseconds) }

    @Test("A second request within the interval goes out when the interval is over")
    func coalesced() {
        var gate = KeyframeRequestGate()
        let isFirstSent = gate.wanted(notBefore: start, at: start)
        #expect(isFirstSent)
        gate.satisfied()
        let isSecondSent = gate.wanted(notBefore: instant(300), at: instant(300))
        #expect(!isSecondSent)
        #expect(gate.nextDeadline == instant(1000))
        let isSentEarly = gate.deadlineReached(at: instant(999))
        let isSentWhenDue = gate.deadlineReached(at: instant(1000))
        #expect(!isSentEarly && isSentWhenDue)
    }

    @Test("A request that nothing answers is repeated each second, until a keyframe comes")
    func repeated() {
        var gate = KeyframeRequestGate()
        _ = gate.wanted(notBefore: start, at: start)
        var sent: [Int] = []
        for millisecond in stride(from: 0, through: 3500, by: 100) {
            let isSent = gate.deadlineReached(at: instant(millisecond))
            if isSent { sent.append(millisecond) }
        }
        #expect(sent == [1000, 2000, 3000])
        gate.satisfied()
        #expect(gate.nextDeadline == nil)
        let isSent = gate.deadlineReached(at: instant(9000))
        #expect(!isSent)
    }

    @Test("A publisher that never answers is asked less and less often, and each second again after a keyframe")
    func neverAnswered() {
        var gate = KeyframeRequestGate()
        func requests(_ seconds: Range<Int>) -> [Int] {
            seconds.filter { second in
                let now = instant(second * 1000)
                // Somebody joins every second.
                let isSentForJoin = gate.wanted(notBefore: now, at: now)
                let isRepeated = gate.deadlineReached(at: now)
                return isSentForJoin || isRepeated
            }
        }
        #expect(requests(0..<200) == [0, 1, 2, 3, 4, 6, 10, 18, 34, 66, 98, 130, 162, 194])
        gate.keyframeArrived()
        #expect(gate.nextDeadline == nil)
        #expect(requests(300..<304) == [300, 301, 302, 303])
    }

    @Test("The earliest of several wishes counts, and one that is put off does not hold up another")
    func earliest() {
        var gate = KeyframeRequestGate()
        let isLateSent = gate.wanted(notBefore: instant(4000), at: start)
        #expect(!isLateSent && gate.nextDeadline == instant(4000))
        let isSoonSent = gate.wanted(notBefore: instant(50), at: instant(50))
        #expect(isSoonSent && gate.nextDeadline == instant(1050))
    }

    @Test("A keyframe that is expected anyway is asked for only when it does not come")
    func expected() {
        var gate = KeyframeRequestGate()
        gate.keyframeExpected(at: start)
        let isSent = gate.wanted(notBefore: instant(10), at: instant(10))
        #expect(!isSent && gate.nextDeadline == instant(1000))
        let isSentWhenDue = gate.deadlineReached(at: instant(1000))
        #expect(isSentWhenDue)
    }

    @Test("A clock that stands or goes back sends nothing twice")
    func backwards() {
        var gate = KeyframeRequestGate()
        _ = gate.wanted(notBefore: instant(500), at: instant(500))
        for millisecond in [500, 499, 0, 500] {
            let isWanted = gate.wanted(notBefore: instant(millisecond), at: instant(millisecond))
            let isReached = gate.deadlineReached(at: instant(millisecond))
            #expect(!isWanted && !isReached)
        }
    }

    @Test("Whatever is wanted whenever, at most one request a second goes out")
    func rate() {
        var generator = SeededGenerator(seed: 12)
        var gate = KeyframeRequestGate()
        var sent: [Int] = []
        for millisecond in 0..<20_000 {
            let now = instant(millisecond)
            var isSent = false
            switch Int.random(in: 0..<40, using: &generator) {
            case 0:
                let delay = Int.random(in: 0..<3000, using: &generator)
                isSent = gate.wanted(notBefore: now + .milliseconds(delay), at: now)
            case 1 where Int.random(in: 0..<10, using: &generator) == 0: gate.satisfied()
            case 2 where Int.random(in: 0..<200, using: &generator) == 0: gate.keyframeExpected(at: now)
            default: isSent = gate.deadlineReached(at: now)
            }
            if isSent { sent.append(millisecond) }
        }
        #expect(sent.count > 5)
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $1 - $0 >= 1000 })
    }
}

@Suite("Keyframe backoff", .timeLimit(.minutes(1)))
struct KeyframeBackoffTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func instant(_ milliseconds: Int) -> MonotonicInstant { start + .milliseconds(milliseconds) }

    /// The seconds for which each of eight needs waits that come as soon as the one before was served.
    private func waits(because need: KeyframeBackoff.Need, othersPay: Bool) -> [Double] {
        var backoff = KeyframeBackoff()
        var now = start
        return (0..<8).map { _ in
            let granted = backoff.needed(because: need, othersPay: othersPay, at: now)
            defer { now = granted + .nanoseconds(1) }
            return granted.duration(since: now).seconds.rounded()
        }
    }

    /// Outages of the network used to freeze the picture for up to 32 s, long after they were over.
    @Test("One that keeps needing keyframes waits 1, 2, 4 … seconds: up to 4 after outages, else up to 32")
    func doubling() {
        #expect(waits(because: .other, othersPay: true) == [0, 1, 2, 4, 8, 16, 32, 32])
        #expect(waits(because: .outage, othersPay: true) == [0, 1, 2, 4, 4, 4, 4, 4])
    }

    @Test("One that alone pays for its keyframes does not wait, and what it needed does not count when others come")
    func alone() {
        for need in [KeyframeBackoff.Need.outage, .other] {
            #expect(waits(because: need, othersPay: false).allSatisfy { $0 == 0 })
        }
        var backoff = KeyframeBackoff()
        for second in 0..<10 {
            _ = backoff.needed(because: .other, othersPay: false, at: instant(second * 1000))
        }
        let granted = backoff.needed(because: .other, othersPay: true, at: instant(10_000))
        #expect(granted == instant(10_000))
    }

    @Test("Asking does not put off a keyframe that an outage makes necessary")
    func apart() {
        var backoff = KeyframeBackoff()
        for second in 0..<20 { _ = backoff.needed(because: .other, othersPay: true, at: instant(second * 1000)) }
        let granted = backoff.needed(because: .outage, othersPay: true, at: instant(20_000))
        #expect(granted == instant(20_000))
    }

    /// Each repetition used to put the next keyframe off further, up to many minutes.
    @Test("One that repeats itself while it waits is not put off further")
    func repetition() {
        var backoff = KeyframeBackoff()
        let first = backoff.needed(because: .other, othersPay: true, at: start)
        let again = backoff.needed(because: .other, othersPay: true, at: start)
        #expect(first == start && again == start)
        for millisecond in 1...1000 {
            let granted = backoff.needed(because: .other, othersPay: true, at: instant(millisecond))
            #expect(granted == instant(1000))
        }
        let later = backoff.needed(because: .other, othersPay: true, at: instant(1001))
        #expect(later == instant(3000))
    }

    @Test("One that has gone without for four times its interval starts afresh")
    func afresh() {
        var backoff = KeyframeBackoff()
        _ = backoff.needed(because: .other, othersPay: true, at: start)
        _ = backoff.needed(because: .other, othersPay: true, at: instant(1))
        // Granted at 1 s with an interval of 2 s: afresh from 1 + 2 + 8 = 11 s on.
        var before = backoff
        let early = before.needed(because: .other, othersPay: true, at: instant(10_999))
        let afterEarly = before.needed(because: .other, othersPay: true, at: instant(11_000))
        #expect(early == instant(10_999) && afterEarly == instant(14_999))
        let late = backoff.needed(because: .other, othersPay: true, at: instant(11_000))
        let afterLate = backoff.needed(because: .other, othersPay: true, at: instant(11_001))
        #expect(late == instant(11_000) && afterLate == instant(12_000))
    }

    @Test("A clock that goes back neither traps nor gives leave earlier")
    func backwards() {
        var backoff = KeyframeBackoff()
        _ = backoff.needed(because: .outage, othersPay: true, at: start)
        let granted = backoff.needed(because: .outage, othersPay: true, at: start - .seconds(5))
        #expect(granted == start)
    }
}
