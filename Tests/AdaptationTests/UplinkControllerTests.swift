import Adaptation
import MediaCore
import Testing

@Suite("Uplink controller", .timeLimit(.minutes(1)))
struct UplinkControllerTests {
    @Test("Nothing is encoded that nobody wants")
    func notWanted() {
        var bench = UplinkBench()
        let id = bench.add(wanted: false)
        #expect(bench.decide(id) == .notWanted)
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        #expect(bench.decide(id) != .notWanted)
        bench.uplink.setWanted(nil, of: id, at: bench.instant)
        #expect(bench.decide(id) == .notWanted)
        bench.uplink.remove(id, at: bench.instant)
        #expect(bench.decide(id) == .notWanted)
        #expect(bench.add() == id + 1)
    }

    @Test("The first keyframe goes at once; the next one of the lane a second later at the earliest")
    func keyframeInterval() throws {
        var bench = UplinkBench()
        let id = bench.add()
        guard case .encode = bench.decide(id, keyframeDue: true) else {
            Issue.record("the first keyframe waits")
            return
        }
        let first = bench.now
        bench.encoded(id, bytes: 6000, isKeyframe: true)
        bench.write(6000)
        bench.now += 100_000
        bench.acknowledge()
        #expect(!bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        let wait = MonotonicInstant(microseconds: first + 1_000_000)
        #expect(bench.decide(id, keyframeDue: true) == .wait(until: wait))
        #expect(bench.uplink.status.lanes[0].waiting == .keyframeInterval)
        guard case .encode = bench.decide(id, isNewFrame: false) else {
            Issue.record("other frames wait for a keyframe")
            return
        }
        bench.now = first + 1_000_000
        #expect(bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        guard case .encode = bench.decide(id, keyframeDue: true) else {
            Issue.record("the second keyframe waits for more than a second")
            return
        }
    }

    @Test("A picture that is tried again does not count as one more that was left out")
    func retries() {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 2)
        // 2 kB are on their way and stay there: too old, but few enough for a forced frame after three left out.
        bench.write(2000)
        bench.now += 400_000
        var isEncoded: [Bool] = []
        for _ in 0..<4 {
            if case .encode = bench.decide(id) { isEncoded.append(true) } else { isEncoded.append(false) }
            for _ in 0..<20 { if case .encode = bench.decide(id, isNewFrame: false) { isEncoded.append(true) } }
            bench.now += 33_333
        }
        #expect(isEncoded == [false, false, false, true])
    }
}
