import MediaCore
import RelayCore
import Testing

@Suite("Keyframe request gate")
struct KeyframeRequestGateTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    @Test("A second request within the interval goes out when the interval is over")
    func coalesced() {
        var gate = KeyframeRequestGate()
        #expect(gate.wanted(notBefore: start, at: start))
        gate.satisfied()
        let soon = start + .milliseconds(300)
        #expect(!gate.wanted(notBefore: soon, at: soon))
        #expect(gate.nextDeadline == start + .seconds(1))
        #expect(gate.deadlineReached(at: start + .seconds(1)))
    }
}
