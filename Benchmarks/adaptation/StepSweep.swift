import Adaptation
import AdaptationSimulation

/// Many links that break down and come back (`RandomStep`): what the way back up costs.
struct StepSweep {
    var count: UInt64 = 300

    func lines(_ settings: UplinkController.Settings, printsEach: Bool) -> [String] {
        [("steps", false), ("unsteady links", true)].flatMap { name, isUnsteady in
            [name] + lines(settings, isUnsteady: isUnsteady, printsEach: printsEach)
        }
    }

    private func lines(_ settings: UplinkController.Settings, isUnsteady: Bool, printsEach: Bool) -> [String] {
        var lines: [String] = []
        var changes: [Int] = []
        var frozen: [Int] = []
        var times: [Double] = []
        var never = 0
        var most = 0
        for seed in 0..<count {
            let step = RandomStep(seed: seed, isUnsteady: isUnsteady)
            let rise = step.run(settings)
            changes.append(rise.sizeChanges)
            frozen.append(rise.frozen)
            if let seconds = rise.secondsToFull { times.append(seconds) } else { never += 1 }
            most = max(most, rise.changesInMinute)
            guard printsEach else { continue }
            lines.append(
                "\(seed): \(BenchCase.text(step.high, 2)) -> \(BenchCase.text(step.low, 2)) for "
                    + "\(BenchCase.text(step.rise - step.fall, 0)) s, \(step.flow.delay) ms, \(step.flow.ceiling) bits: \(rise)"
            )
        }
        times.sort()
        let runs = Double(count)
        let part = { (hits: Int) in BenchCase.text(100 * Double(hits) / runs, 1) + " %" }
        lines.append(
            "  on the way back: no size change \(part(changes.count { $0 == 0 })), one \(part(changes.count { $0 == 1 }))"
                + ", two \(part(changes.count { $0 == 2 })), more \(part(changes.count { $0 > 2 }))"
        )
        lines.append(
            "  with a freeze \(part(frozen.count { $0 > 0 })), frozen \(frozen.reduce(0, +) / Int(count)) ms in the mean, "
                + "\(frozen.max() ?? 0) at most"
        )
        let median = times.isEmpty ? 0 : times[times.count / 2]
        let late = times.isEmpty ? 0 : times[times.count * 95 / 100]
        lines.append(
            "  back at the size of before after \(BenchCase.text(median, 1)) s, 95 % \(BenchCase.text(late, 1)) s, "
                + "never \(part(never)); at most \(most) changes in a minute"
        )
        return lines
    }
}
