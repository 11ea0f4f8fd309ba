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

    static func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    /// Plays it.
    func play(_ settings: UplinkController.Settings) -> BenchResult {
        var flows = flows
        for index in flows.indices {
            flows[index].settings = settings
            flows[index].seed = 100 + UInt64(index)
        }
        return BenchResult(of: self, LinkSimulation.run(trace, seconds: seconds, flows: flows, bulk: bulk))
    }
}
