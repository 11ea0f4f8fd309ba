import MediaCore
import RelayCore
import Testing

@Suite("Keyframe request gate")
struct KeyframeRequestGateTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    @Test("A second request within the interval goes out when the interval is over")
    func coalesced() {
        var gate = KeyframeRequestGate()
        let isFirstSent = gate.wanted(notBefore: start, at: start)
        #expect(isFirstSent)
        gate.satisfied()
        let soon = start + .milliseconds(300)
        let isSecondSent = gate.wanted(notBefore: soon, at: soon)
        #expect(!isSecondSent)
        #expect(gate.nextDeadline == start + .seconds(1))
        let isSentWhenDue = gate.deadlineReached(at: start + .seconds(1))
        #expect(isSentWhenDue)
    }
}
