import Adaptation
import AdaptationSimulation
import Foundation
import MediaCore

/// A link with its flows.
struct BenchCase {
    var name: String
    var trace: LinkTrace
    var seconds: Double
    var flows: [SimulatedFlow.Configuration]
    /// A download beside them.
    var bulk: SimulatedBulk?
    /// Figures begin here, in seconds after the last flow's start.
    var warmUp = 5.0
    /// When the link comes back to a rate, and the rate; the time to reach it is printed.
    var recovery: (after: Double, rate: Double)?

    static let heading = "case            Mbit/s  used  p50  p95  p99   max  sig  s95  fps  frz frozen  key size ack/s"

    /// A flow with an encoding up to `megabits`.
    static func flow(
        _ megabits: Double = 2.5,
        delay: Int = 20,
        start: Double = 0,
        size: (Int, Int) = (1280, 720),
        floor: Double = 0.02
    ) -> SimulatedFlow.Configuration {
        var flow = SimulatedFlow.Configuration()
        flow.lane = UplinkController.Lane(
            largestDimensions: Dimensions(width: size.0, height: size.1),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(Int(megabits * 1000))
        )
        flow.delay = delay
        flow.start = start
        flow.floor = floor
        // A flow without a floor takes whatever it gets.
        flow.ceiling = floor > 0 ? 30 * floor : 4
        return flow
    }

    static func trace(_ path: String) throws -> BenchCase {
        // PATH or PATH@CAP
        let parts = path.split(separator: "@")
        let text = try String(contentsOfFile: String(parts[0]), encoding: .utf8)
        let cap = parts.count > 1 ? Double(parts[1]) ?? 4 : 4
        let name = parts[0].split(separator: "/").last.map(String.init) ?? path
        let trace = try LinkTrace(text: text)
        return BenchCase(
            name: parts.count > 1 ? "\(name)@\(parts[1])" : name,
            trace: trace,
            seconds: min(120, Double(trace.duration) / 1000),
            flows: [flow(cap)]
        )
    }

    func run(
        _ settings: UplinkController.Settings,
        printsStates: Bool,
        into summary: inout BenchSummary
    ) -> [String] {
        var flows = flows
        for index in flows.indices {
            flows[index].settings = settings
            flows[index].seed = 100 + UInt64(index)
        }
        let results = LinkSimulation.run(trace, seconds: seconds, flows: flows, bulk: bulk)
        var lines: [String] = []
        let start = (flows.map(\.start).max() ?? 0) + warmUp
        var rates: [Double] = []
        for (index, flow) in results.enumerated() {
            let figures = SimulationFigures(flow, from: start, to: seconds)
            let limit = Double(flow.configuration.lane.highestBitrate.bitsPerSecond)
            let usable = trace.usable(from: start, to: seconds, limit: limit * Double(flows.count))
            rates.append(figures.rate)
            if flows.count == 1 { summary.add(figures, used: figures.rate / usable) }
            let label = flows.count == 1 ? name : "\(name)/\(index)"
            lines.append(line(label, figures, used: figures.rate / usable, flow))
            for (earlier, later) in zip(flow.arrivals, flow.arrivals.dropFirst())
            where printsStates && later.arrived - earlier.arrived > 150 {
                let frame =
                    "\(later.size) bytes\(later.isKeyframe ? ", keyframe," : "") captured at \(later.captured) ms"
                lines.append("  \(later.arrived) ms: after \(later.arrived - earlier.arrived) ms \(frame)")
            }
            for state in flow.states where printsStates && state.time % 500 == 0 {
                let rates = "\(state.rate / 1000) of \(state.capacity / 1000) kbit/s"
                lines.append(
                    "  \(Double(state.time) / 1000) s \(rates), queue \(state.queue / 1000) ms"
                        + ", \(state.target)"
                )
            }
        }
        if flows.count > 1 {
            lines.append("  Jain \(Self.text(SimulationFigures.jain(rates), 3))")
        }
        return lines
    }

    private func line(
        _ label: String,
        _ figures: SimulationFigures,
        used: Double,
        _ flow: SimulatedFlow
    ) -> String {
        var line = label.padding(toLength: 15, withPad: " ", startingAt: 0)
        line += Self.cell(Self.text(figures.rate / 1e6, 2), 7) + Self.cell(Self.text(used, 2), 6)
        for value in [figures.p50, figures.p95, figures.p99] { line += Self.cell("\(value)", 5) }
        line += Self.cell("\(figures.largest)", 6)
        line += Self.cell(Self.text(figures.signalMean, 0), 5) + Self.cell("\(figures.signal95)", 5)
        line += Self.cell(Self.text(figures.frameRate, 1), 5) + Self.cell("\(figures.freezes)", 5)
        line += Self.cell("\(figures.frozen)", 7) + Self.cell("\(figures.keyframes)", 5)
        line += Self.cell("\(figures.sizeChanges)", 5)
        line += Self.cell(Self.text(Double(flow.acknowledgements) / seconds, 1), 6)
        if let recovery {
            let reached = flow.states.first {
                Double($0.time) >= recovery.after * 1000 && Double($0.rate) >= recovery.rate
            }
            line += "  back " + (reached.map { Self.text(Double($0.time) / 1000 - recovery.after, 1) } ?? "never")
        }
        return line
    }

    static func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    private static func cell(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}

/// The means of the cases with one flow.
struct BenchSummary {
    private var count = 0.0
    private var sums = [0.0, 0.0, 0.0, 0.0, 0.0]
    private var freezes = 0

    mutating func add(_ figures: SimulationFigures, used: Double) {
        count += 1
        let values = [used, Double(figures.p50), Double(figures.p95), figures.signalMean, Double(figures.p99)]
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
