import Adaptation
import AdaptationSimulation
import Foundation
import MediaCore

/// Links of 80 to 400 kbit/s, from the beginning or after a fall from 1.5 Mbit/s: what is believed of them, how old the
/// frames are, and how much of the link is used.
struct ThinSweep {
    private static let rates = [0.08, 0.1, 0.15, 0.2, 0.25, 0.4]
    private static let delays = [20, 50, 100]
    /// Bits per pixel at the coarsest quantizer.
    private static let contents = [0.006, 0.02]
    private static let fall = 20.0
    private static let length = 60.0
    /// The belief counts from this long after the beginning or the fall on, in seconds.
    private static let settling = 10.0

    func lines(_ settings: UplinkController.Settings) -> [String] {
        var lines = ["link              rate  most  capacity    p50   p95    max  used  frozen   fps  sizes"]
        for (name, falls, lost) in [
            ("steady", false, 0.0), ("steady, 1 % lost", false, 0.01), ("fall", true, 0),
            ("fall, 1 % lost", true, 0.01),
        ] {
            var all: [Result] = []
            lines.append(name)
            for rate in Self.rates {
                var results: [Result] = []
                for delay in Self.delays {
                    for floor in Self.contents {
                        results.append(result(rate, delay, floor, falls, lost, settings))
                    }
                }
                lines.append(Self.line("  \(BenchCase.text(rate * 1000, 0)) kbit/s", results))
                all += results
            }
            lines.append(Self.line("  all", all))
        }
        return lines
    }

    private struct Result {
        var figures: SimulationFigures
        /// What the rate and the capacity estimate are on average, over what the link carries.
        var rate = 0.0
        var capacity = 0.0
        var used = 0.0
    }

    private func result(
        _ megabits: Double,
        _ delay: Int,
        _ floor: Double,
        _ falls: Bool,
        _ lost: Double,
        _ settings: UplinkController.Settings
    ) -> Result {
        var flow = BenchCase.flow(delay: delay, floor: floor)
        flow.settings = settings
        flow.lostPart = lost
        var stretches = [LinkTrace.Stretch(megabits, seconds: Self.length)]
        if falls { stretches.insert(.init(1.5, seconds: Self.fall), at: 0) }
        let end = Self.length + (falls ? Self.fall : 0)
        let begin = falls ? Self.fall : 0
        let trace = LinkTrace(stretches, bytes: 50)
        let run = LinkSimulation.run(trace, seconds: end, flows: [flow])[0]
        var result = Result(figures: SimulationFigures(run, from: begin, to: end))
        // At 80 kbit/s, the queue from before the fall takes seven seconds.
        let states = run.states.filter { Double($0.time) >= (begin + Self.settling) * 1000 }
        for state in states {
            result.rate += Double(state.rate) / (megabits * 1e6) / Double(states.count)
            result.capacity += Double(state.capacity) / (megabits * 1e6) / Double(states.count)
        }
        result.used = result.figures.rate / (megabits * 1e6)
        return result
    }

    private static func line(_ name: String, _ results: [Result]) -> String {
        func mean(_ figure: (Result) -> Double) -> Double {
            results.map(figure).reduce(0, +) / Double(results.count)
        }
        let cells = [
            (mean { $0.rate }, 2, 6), (results.map(\.rate).max() ?? 0, 2, 6), (mean { $0.capacity }, 2, 10),
            (mean { Double($0.figures.p50) }, 0, 7), (mean { Double($0.figures.p95) }, 0, 6),
            (mean { Double($0.figures.largest) }, 0, 7),
            (mean { $0.used }, 2, 6), (mean { Double($0.figures.frozen) }, 0, 8),
            (mean { $0.figures.frameRate }, 1, 6), (mean { Double($0.figures.sizeChanges) }, 1, 7),
        ]
        var line = name.padding(toLength: 16, withPad: " ", startingAt: 0)
        for (value, digits, width) in cells {
            let text = BenchCase.text(value, digits)
            line += String(repeating: " ", count: max(1, width - text.count)) + text
        }
        return line
    }
}
