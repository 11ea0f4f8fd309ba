import Adaptation
import AdaptationSimulation
import Foundation
import MediaCore

/// Random links of several kinds: the median of each figure, and the tail on its bad side.
struct LinkSweep {
    private static let kinds: [(name: String, link: @Sendable (UInt64) -> BenchCase)] = [
        ("cellular", cellular), ("steps", step), ("thin", thin), ("far", far), ("far steps", farStep),
        ("stalls", stalls),
        ("download", download),
    ]

    var count: UInt64 = 100

    func lines(_ settings: UplinkController.Settings) -> [String] {
        var lines = [
            "links     used        p50         p95         max         signal      frozen      fps         sizes"
                + "       means: used, p95, signal"
        ]
        for (name, link) in Self.kinds {
            let results = (0..<count).map { result(link($0), settings) }
            func cell(_ figure: (Result) -> Double, _ tail: Double, _ digits: Int) -> String {
                let sorted = results.map(figure).sorted()
                let values = [0.5, tail].map { sorted[Int(Double(sorted.count - 1) * $0)] }
                return values.map { BenchCase.text($0, digits) }.joined(separator: " ")
                    .padding(toLength: 12, withPad: " ", startingAt: 0)
            }
            lines.append(
                name.padding(toLength: 10, withPad: " ", startingAt: 0)
                    + cell({ $0.used }, 0.1, 2) + cell({ Double($0.figures.p50) }, 0.9, 0)
                    + cell({ Double($0.figures.p95) }, 0.9, 0) + cell({ Double($0.figures.largest) }, 0.9, 0)
                    + cell({ $0.figures.signalMean }, 0.9, 0) + cell({ Double($0.figures.frozen) }, 0.9, 0)
                    + cell({ $0.figures.frameRate }, 0.1, 1) + cell({ Double($0.figures.sizeChanges) }, 0.9, 0)
                    + means(results)
            )
        }
        return lines
    }

    /// Geometric means, which show smaller changes than a median does.
    private func means(_ results: [Result]) -> String {
        func mean(_ figure: (Result) -> Double) -> Double {
            exp(results.map { log(max(1e-3, figure($0))) }.reduce(0, +) / Double(results.count))
        }
        let values = [mean { Double($0.figures.p95) }, mean { $0.figures.signalMean }].map { BenchCase.text($0, 1) }
        return "       \(BenchCase.text(mean { $0.used }, 4)) \(values.joined(separator: " "))"
    }

    private struct Result {
        var figures: SimulationFigures
        var used: Double
    }

    private func result(_ link: BenchCase, _ settings: UplinkController.Settings) -> Result {
        var flow = link.flows[0]
        flow.settings = settings
        let results = LinkSimulation.run(link.trace, seconds: link.seconds, flows: [flow], bulk: link.bulk)
        let figures = SimulationFigures(results[0], from: link.warmUp, to: link.seconds)
        let limit = Double(flow.lane.highestBitrate.bitsPerSecond)
        var usable = link.trace.usable(from: link.warmUp, to: link.seconds, limit: limit)
        if link.bulk != nil { usable /= 2 }
        return Result(figures: figures, used: figures.rate / usable)
    }

    // MARK: Kinds

    @Sendable private static func cellular(_ seed: UInt64) -> BenchCase {
        var random = SimulationRandom(seed: seed)
        let burst = 5 + 60 * random.uniform()
        let trace = LinkTrace.markov(seed: 1000 + seed, burst: burst, outage: 0.08 * random.uniform())
        return link("cellular", trace, 100, cap: 1 + 3 * random.uniform(), &random)
    }

    @Sendable private static func step(_ seed: UInt64) -> BenchCase {
        let step = RandomStep(seed: 5000 + seed)
        return BenchCase(name: "steps", trace: step.trace, seconds: step.end, flows: [step.flow])
    }

    @Sendable private static func thin(_ seed: UInt64) -> BenchCase {
        var random = SimulationRandom(seed: seed)
        let trace = LinkTrace.constant(0.1 + 0.5 * random.uniform(), seconds: 60)
        return link("thin", trace, 60, cap: 2.5, &random)
    }

    @Sendable private static func farStep(_ seed: UInt64) -> BenchCase {
        let step = RandomStep(seed: 7000 + seed, isFar: true)
        return BenchCase(name: "far steps", trace: step.trace, seconds: step.end, flows: [step.flow])
    }

    /// Round trips of 160 to 640 ms, as over satellites and between continents.
    @Sendable private static func far(_ seed: UInt64) -> BenchCase {
        var random = SimulationRandom(seed: seed)
        let trace = LinkTrace.constant(0.4 + 2 * random.uniform(), seconds: 60)
        var far = link("far", trace, 60, cap: 2.5, &random)
        far.flows[0].delay = 80 + Int(240 * random.uniform())
        return far
    }

    @Sendable private static func stalls(_ seed: UInt64) -> BenchCase {
        var random = SimulationRandom(seed: seed)
        let trace = LinkTrace.constant(0.5 + 3 * random.uniform(), seconds: 60)
        let each = 0.5 + 3 * random.uniform()
        let length = 40 + Int(200 * random.uniform())
        return link("stalls", trace.withStalls(each: each, of: length, seed: seed), 60, cap: 2.5, &random)
    }

    @Sendable private static func download(_ seed: UInt64) -> BenchCase {
        var random = SimulationRandom(seed: seed)
        let trace = LinkTrace.constant(1 + 7 * random.uniform(), seconds: 90)
        let wait = 80 + Int(320 * random.uniform())
        var link = link("download", trace, 90, cap: 1 + 2 * random.uniform(), &random)
        link.bulk = SimulatedBulk(from: 10, to: 90, delay: link.flows[0].delay, longestWait: wait)
        link.warmUp = 25
        return link
    }

    private static func link(
        _ name: String,
        _ trace: LinkTrace,
        _ seconds: Double,
        cap: Double,
        _ random: inout SimulationRandom
    ) -> BenchCase {
        let delay = 5 + Int(75 * random.uniform())
        let contents = [0.006, 0.02, 0.065]
        var flow = BenchCase.flow(cap, delay: delay, floor: contents[Int(random.uniform() * 3)])
        flow.seed = 100
        return BenchCase(name: name, trace: trace, seconds: seconds, flows: [flow])
    }
}
