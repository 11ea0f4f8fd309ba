import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("Latency statistics", .timeLimit(.minutes(1)))
struct LatencyStatisticsTests {
    @Test("Without samples there are no figures")
    func empty() {
        let statistics = LatencyStatistics()
        #expect(statistics.percentile(50) == nil && statistics.maximum == nil && statistics.mean == nil)
    }

    @Test("Percentiles lie within 1/64 of the exact nearest rank", arguments: [1, 2, 3])
    func percentiles(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var statistics = LatencyStatistics()
        let samples = (0..<5000).map { _ in Int64.random(in: 0...1 << Int64.random(in: 1...30, using: &generator)) }
        for sample in samples { statistics.record(.microseconds(sample)) }
        let sorted = samples.sorted()
        for percent in [0.0, 1, 50, 95, 99, 99.9, 100] {
            let exact = sorted[max(0, Int((percent / 100 * 5000).rounded(.up)) - 1)]
            let estimate = try #require(statistics.percentile(percent)).wholeMicroseconds
            #expect(estimate >= exact && estimate - exact <= exact / 64)
        }
        #expect(statistics.maximum == sorted.last.map { .microseconds($0) })
        #expect(statistics.minimum == sorted.first.map { .microseconds($0) })
        #expect(statistics.count == 5000)
    }

    @Test("Negative and absurd samples are taken", arguments: [Int64.min / 1000, -5, Int64.max / 1000])
    func extremes(microseconds: Int64) {
        var statistics = LatencyStatistics()
        statistics.record(.microseconds(microseconds))
        #expect(statistics.maximum == .microseconds(microseconds) && statistics.percentile(50) != nil)
    }
}
