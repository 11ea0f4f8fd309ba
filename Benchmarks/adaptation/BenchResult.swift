import Adaptation
import AdaptationSimulation
import Charts
import Foundation
import MediaCore

/// What became of the flows of a case.
struct BenchResult {
    /// A flow with its figures.
    struct Flow {
        var name: String
        var flow: SimulatedFlow
        var figures: SimulationFigures
        /// The part of what the link and the flow's highest bitrate allow that arrived.
        var used: Double
        /// How long the rate took to come back, in seconds; `nil` if it did not, or never had to.
        var recovered: Double?
    }

    let item: BenchCase
    let flows: [Flow]

    /// Takes the figures of flows that were played.
    init(of item: BenchCase, _ results: [SimulatedFlow]) {
        self.item = item
        let start = (results.map(\.configuration.start).max() ?? 0) + item.warmUp
        flows = results.enumerated()
            .map { index, flow in
                let figures = SimulationFigures(flow, from: start, to: item.seconds)
                let limit = Double(flow.configuration.lane.highestBitrate.bitsPerSecond * results.count)
                let usable = item.trace.usable(from: start, to: item.seconds, limit: limit)
                let recovered = item.recovery.flatMap { recovery in
                    flow.states.first {
                        Double($0.time) >= recovery.after * 1000 && Double($0.rate) >= recovery.rate
                    }
                    .map { Double($0.time) / 1000 - recovery.after }
                }
                return Flow(
                    name: results.count == 1 ? item.name : "\(item.name)/\(index)",
                    flow: flow,
                    figures: figures,
                    used: usable > 0 ? figures.rate / usable : 0,
                    recovered: recovered
                )
            }
    }

    /// Jain's index of fairness among several flows.
    private var jain: Double? {
        let rates = flows.map(\.figures.rate)
        return rates.count > 1 && rates.contains { $0 > 0 } ? SimulationFigures.jain(rates) : nil
    }

    // MARK: Lines

    /// A line for each flow, and one for what they share.
    func lines(printsStates: Bool) -> [String] {
        var lines: [String] = []
        for flow in flows {
            lines.append(line(flow))
            if printsStates { lines += states(flow.flow) }
        }
        if let jain { lines.append("  Jain \(BenchCase.text(jain, 3))") }
        return lines
    }

    private func states(_ flow: SimulatedFlow) -> [String] {
        var lines: [String] = []
        for (earlier, later) in zip(flow.arrivals, flow.arrivals.dropFirst())
        where later.arrived - earlier.arrived > 150 {
            let frame = "\(later.size) bytes\(later.isKeyframe ? ", keyframe," : "") captured at \(later.captured) ms"
            lines.append("  \(later.arrived) ms: after \(later.arrived - earlier.arrived) ms \(frame)")
        }
        for state in flow.states where state.time % 500 == 0 {
            let rates = "\(state.rate / 1000) of \(state.capacity / 1000) kbit/s"
            lines.append(
                "  \(Double(state.time) / 1000) s \(rates), queue \(state.queue / 1000) ms, \(state.target)"
            )
        }
        return lines
    }

    private func line(_ flow: Flow) -> String {
        let figures = flow.figures
        var line = flow.name.padding(toLength: 15, withPad: " ", startingAt: 0)
        line += Self.cell(BenchCase.text(figures.rate / 1e6, 2), 7) + Self.cell(BenchCase.text(flow.used, 2), 6)
        for value in [figures.p50, figures.p95, figures.p99] { line += Self.cell("\(value)", 5) }
        line += Self.cell("\(figures.largest)", 6)
        line += Self.cell(BenchCase.text(figures.signalMean, 0), 5) + Self.cell("\(figures.signal95)", 5)
        line += Self.cell(BenchCase.text(figures.frameRate, 1), 5) + Self.cell("\(figures.freezes)", 5)
        line += Self.cell("\(figures.frozen)", 7) + Self.cell("\(figures.keyframes)", 5)
        line += Self.cell("\(figures.sizeChanges)", 5)
        line += Self.cell(BenchCase.text(Double(flow.flow.acknowledgements) / item.seconds, 1), 6)
        if item.recovery != nil { line += "  back " + (flow.recovered.map { BenchCase.text($0, 1) } ?? "never") }
        return line
    }

    private static func cell(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }

    // MARK: Records

    /// A flow's figures as one line of JSON, with the names and units of `Benchmarks/network`.
    struct Record: Encodable {
        var benchmark = "simulation"
        var `case`: String
        var flow: String
        var seed: UInt64
        /// The settings that are not the usual ones, as `name=value`.
        var settings: [String]
        var mbps: Double
        var linkUse: Double
        var p50Ms: Int
        var p95Ms: Int
        var p99Ms: Int
        var maxMs: Int
        var signalMeanMs: Double
        var signalP95Ms: Int
        var fps: Double
        var harmonicFps: Double
        var freezes: Int
        var frozenSeconds: Double
        var keyframes: Int
        var sizeChanges: Int
        /// From the beginning on, as the acknowledgements.
        var picturesLeftOut: Int
        var acknowledgementsPerSecond: Double
        /// `nil` if the rate did not come back, or never had to.
        var recoverSeconds: Double?
        var jain: Double?

        /// The line.
        var line: String {
            get throws {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys]
                return String(decoding: try encoder.encode(self), as: UTF8.self)
            }
        }
    }

    /// The records of the flows, which were played with other `settings` than usual.
    ///
    /// - Returns: One for each flow.
    func records(_ settings: [String]) -> [Record] {
        flows.map { flow in
            let figures = flow.figures
            return Record(
                case: item.name,
                flow: flow.name,
                seed: flow.flow.configuration.seed,
                settings: settings,
                mbps: Self.rounded(figures.rate / 1e6, 4),
                linkUse: Self.rounded(flow.used, 3),
                p50Ms: figures.p50,
                p95Ms: figures.p95,
                p99Ms: figures.p99,
                maxMs: figures.largest,
                signalMeanMs: Self.rounded(figures.signalMean, 1),
                signalP95Ms: figures.signal95,
                fps: Self.rounded(figures.frameRate, 2),
                harmonicFps: Self.rounded(figures.harmonicFrameRate, 2),
                freezes: figures.freezes,
                frozenSeconds: Double(figures.frozen) / 1000,
                keyframes: figures.keyframes,
                sizeChanges: figures.sizeChanges,
                picturesLeftOut: flow.flow.picturesLeftOut,
                acknowledgementsPerSecond: Self.rounded(Double(flow.flow.acknowledgements) / item.seconds, 2),
                recoverSeconds: flow.recovered.map { Self.rounded($0, 1) },
                jain: jain.map { Self.rounded($0, 4) }
            )
        }
    }

    private static func rounded(_ value: Double, _ digits: Int) -> Double {
        let factor = pow(10, Double(digits))
        return (value * factor).rounded() / factor
    }

    // MARK: Drawing

    /// Rate, queue, age and size over time.
    var chart: TimeChart {
        typealias Point = TimeChart.Point
        let capacity = stride(from: 0, to: item.seconds, by: 0.5)
            .map { Point($0, item.trace.usable(from: $0, to: $0 + 0.5, limit: .infinity) / 1000) }
        let sections = flows.map { flow in
            let states = flow.flow.states
            let arrivals = flow.flow.arrivals
            func points(_ value: (SimulatedFlow.State) -> Int) -> [Point] {
                states.map { Point(Double($0.time) / 1000, Double(value($0)) / 1000) }
            }
            let ages = arrivals.map { Point(Double($0.arrived) / 1000, Double($0.arrived - $0.captured)) }
            let heights = arrivals.map { Point(Double($0.arrived) / 1000, Double($0.dimensions.height)) }
            return TimeChart.Section(
                flows.count == 1 ? "" : flow.name,
                panels: [
                    TimeChart.Panel(
                        "Rate",
                        unit: "kbit/s",
                        series: [
                            TimeChart.Series("link", .steps, capacity),
                            TimeChart.Series("chosen", .line, points(\.rate)),
                        ]
                    ),
                    TimeChart.Panel(
                        "Queue estimate",
                        unit: "ms",
                        series: [TimeChart.Series("", .line, points(\.queue))]
                    ),
                    TimeChart.Panel(
                        "Age on arrival",
                        unit: "ms",
                        note: "p50 \(flow.figures.p50), p95 \(flow.figures.p95), max \(flow.figures.largest)",
                        series: [TimeChart.Series("", .dots, ages)]
                    ),
                    TimeChart.Panel("Height", unit: "pixels", series: [TimeChart.Series("", .steps, heights)]),
                ]
            )
        }
        return TimeChart(title: "\(item.name), simulated", sections: sections)
    }
}

/// The means of the cases with one flow.
struct BenchSummary {
    private var count = 0.0
    private var sums = [0.0, 0.0, 0.0, 0.0, 0.0]
    private var freezes = 0

    mutating func add(_ result: BenchResult) {
        guard result.flows.count == 1, let flow = result.flows.first else { return }
        let figures = flow.figures
        count += 1
        let values = [flow.used, Double(figures.p50), Double(figures.p95), figures.signalMean, Double(figures.p99)]
        for (index, value) in values.enumerated() { sums[index] += log(max(1e-3, value)) }
        freezes += figures.freezes
    }

    var line: String {
        guard count > 0 else { return "" }
        let means = sums.map { exp($0 / count) }
        let score = (sums[0] - 0.5 * sums[2] - 0.5 * sums[3] - 0.02 * Double(freezes)) / count
        let names = ["used", "p50", "p95", "signal", "p99"]
        let parts = zip(names, means).map { "\($0) \(BenchCase.text($1, $0 == "used" ? 3 : 0))" }
        return "mean \(parts.joined(separator: " ")) freezes \(freezes) score \(BenchCase.text(score, 3))"
    }
}
