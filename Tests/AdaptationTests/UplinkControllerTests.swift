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

    // A screen full of text begins with a frame that takes seconds at the rate at which a connection begins. Nothing is
    // acknowledged in these seconds, so the rate stayed as it was.
    @Test("A first frame far above the rate shows what the path carries", arguments: [40_000, 115_000, 400_000])
    func largeFirstFrame(bytes: Int) {
        let start = Double(UplinkController.Settings().rate.startRate)
        for milliseconds in [1, 10, 100, 300, 1000, 3000] as [Int64] {
            var bench = UplinkBench()
            let id = bench.add(6000)
            bench.playTrain(id, bytes: bytes, milliseconds: milliseconds)
            let rate = Double(bench.uplink.status.rate.bitsPerSecond)
            // The first bytes may have come at the time of the first one.
            let shown = Double(bytes - 16_384) * 8000 / Double(milliseconds)
            #expect(rate <= max(start, 0.9 * shown) + 1, "\(milliseconds) ms: \(rate)")
            // As in the time that the frame takes at the first rate, at a factor of five each second.
            let time = min(0.6, Double(bytes - 16_384) * 8 / start)
            let grown = start * (1 + 4 * time)
            if shown > 2 * start { #expect(rate >= min(grown, 0.9 * shown) - 1, "\(milliseconds) ms: \(rate)") }
            if shown < 2 * start { #expect(rate == start, "\(milliseconds) ms: \(rate)") }
        }
    }

    @Test("A path that has shown its limit is not believed to carry more because a frame came at once")
    func largeFrameAfterQueue() {
        var bench = UplinkBench()
        let id = bench.add(6000)
        // A second of frames, each later than the one before.
        for index in 0..<30 {
            if case .encode = bench.decide(id) { bench.encoded(id, bytes: 2500) }
            bench.write(2500)
            bench.now += 33_333
            bench.acknowledge(delay: max(0, 500_000 - Int64(index) * 20_000))
        }
        bench.now += 100_000
        let before = bench.uplink.status.rate
        bench.playTrain(id, bytes: 115_000, milliseconds: 5)
        #expect(bench.uplink.status.rate <= before)
    }

    // What waited for the end of a stall comes at the rate of the last hop, whatever the rest of the path carries.
    @Test("A frame that came at once behind a stall does not show what the path carries", arguments: [300, 400, 1000])
    func largeFrameAfterStall(milliseconds: Int64) {
        var bench = UplinkBench()
        let id = bench.add(6000)
        _ = bench.play(id, seconds: 0.3)
        let before = bench.uplink.status.rate
        bench.playTrain(id, bytes: 115_000, milliseconds: 5, after: milliseconds)
        #expect(bench.uplink.status.rate <= before)
    }
}
