import Testing

@testable import Adaptation

/// Messages that each come after a gap.
@Suite("Slow messages")
struct SlownessTests {
    /// A gap before `bytes` that come at `kilobits` per second.
    private func gap(_ bytes: Int64, _ kilobits: Int64) -> PathEstimator.Gap {
        let time = bytes * 8000 / kilobits
        return PathEstimator.Gap(time: time, bytes: bytes, isLong: time > PathEstimator.Settings().slowGap)
    }

    private func rate(after gaps: PathEstimator.Gap?...) -> Double? {
        var slowness = Slowness()
        for (index, gap) in gaps.enumerated() { slowness.note(gap, at: Int64(index) * 200_000) }
        return slowness.rate
    }

    @Test("Three messages after long gaps show the rate", arguments: [100, 200, 400] as [Int64])
    func threeMessages(kilobits: Int64) {
        let message = gap(16_000, kilobits)
        #expect(rate(after: message, message) == nil)
        #expect(rate(after: message, message, message) == Double(kilobits) * 1000)
    }

    // The last message of each frame began the row anew, so that no row of three came about.
    @Test("The shorter last message of a frame leaves the row as it is", arguments: [500, 2000, 5000] as [Int64])
    func rest(bytes: Int64) {
        let (message, rest) = (gap(16_000, 500), gap(bytes, 500))
        #expect(rate(after: message, rest, message, rest, message, rest) == 500_000)
        // Packets come a little closer or further from each other.
        #expect(rate(after: message, gap(bytes, 700), message, gap(bytes, 400), message) == 500_000)
    }

    @Test("What comes fast after a gap, as after a silence of the link, ends the row", arguments: [1000, 5000, 50_000])
    func burst(kilobits: Int64) {
        let message = gap(16_000, 500)
        #expect(rate(after: message, message, gap(16_000, kilobits), message) == nil)
        #expect(rate(after: message, message, nil, message) == nil)
    }

    @Test("A short gap after messages of few bytes, as cellular links bring them, ends the row")
    func fewBytes() {
        let (message, other) = (gap(1400, 56), gap(700, 56))
        #expect(rate(after: message, message, message) == 56_000)
        #expect(rate(after: message, message, other, message) == nil)
    }
}
