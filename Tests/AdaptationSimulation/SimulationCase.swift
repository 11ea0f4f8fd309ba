import Adaptation
import MediaCore

/// A simulated run whose result is known exactly.
package struct SimulationCase: Sendable {
    /// The name.
    package var name: String
    /// The link.
    package var trace: LinkTrace
    /// The length in seconds.
    package var seconds: Double
    /// The flows.
    package var flows: [SimulatedFlow.Configuration]

    /// Generated links, each with a flow of 1280x720 up to 2.5 Mbit/s.
    package static var all: [SimulationCase] {
        let step: [LinkTrace.Stretch] = [.init(2.5, seconds: 20), .init(0.5, seconds: 20), .init(2.5, seconds: 20)]
        let outage: [LinkTrace.Stretch] = [.init(2, seconds: 20), .init(0, seconds: 3), .init(2, seconds: 20)]
        let stalls = LinkTrace.constant(2, seconds: 40).withStalls(each: 2, of: 80, seed: 3)
        return [
            SimulationCase("step", LinkTrace(step), 60, delay: 50),
            SimulationCase("ramp", .ramp(from: 0.5, to: 3, seconds: 40), 40),
            SimulationCase("onOff", .onOff(3, seconds: 40, seed: 9), 40),
            SimulationCase("outage", LinkTrace(outage), 43),
            SimulationCase("markov1", .markov(seed: 1, seconds: 60), 60),
            SimulationCase("markov2", .markov(seed: 2, seconds: 60, burst: 50), 60),
            SimulationCase("stalls", stalls, 40, delay: 25),
            SimulationCase("thin", .constant(0.2, seconds: 40), 40, delay: 50),
            SimulationCase("wide", .constant(50, seconds: 20), 20, delay: 5),
        ]
    }

    /// The case of that name.
    package static func named(_ name: String) -> SimulationCase? { all.first { $0.name == name } }

    /// A case with one flow.
    package init(_ name: String, _ trace: LinkTrace, _ seconds: Double, delay: Int = 20) {
        self.name = name
        self.trace = trace
        self.seconds = seconds
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        flows = [flow]
    }

    /// Runs the case.
    package func run(log: Bool = false) -> [SimulatedFlow] {
        LinkSimulation.run(trace, seconds: seconds, flows: flows, log: log)
    }

    /// Frames, bytes, the sum of the delays in milliseconds, keyframes, the rate at the end.
    package var result: [Int] {
        let flow = run()[0]
        var result = [flow.arrivals.count, 0, 0, 0, flow.states.last?.rate ?? 0]
        for arrival in flow.arrivals {
            result[1] += arrival.size
            result[2] += arrival.arrived - arrival.captured
            if arrival.isKeyframe { result[3] += 1 }
        }
        return result
    }
}
