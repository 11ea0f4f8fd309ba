import Adaptation
import AdaptationSimulation
import MediaCore

/// Plays the rows of `docs/adaptation.md` over simulated links, and prints a line for each.
///
/// Arguments are names of cases (all without any), paths of mahimahi traces, and settings as `name=value`, as logs have
/// them. `states` prints gaps between frames, and what the controllers knew, twice a second. `golden` prints what the
/// unit tests expect. `steps` prints what the way back costs after random breakdowns, and with `states` each of them.
/// `links` prints medians and tails over random links of several kinds. `thin` prints what is believed of thin links.
@main
struct Bench {
    static func main() {
        var settings = UplinkController.Settings()
        var wanted: [String] = []
        var printsStates = false
        var printsSteps = false
        var printsLinks = false
        var printsThin = false
        var cases = BenchCase.all
        for argument in CommandLine.arguments.dropFirst() {
            let parts = argument.split(separator: "=")
            if parts.count == 2 {
                guard settings.set(String(parts[0]), to: String(parts[1])) else {
                    print("“\(argument)” is no setting with a value")
                    return
                }
            } else if argument.contains("/") {
                do {
                    cases.append(try BenchCase.trace(argument))
                    wanted.append(cases[cases.count - 1].name)
                } catch {
                    print("\(argument): \(error)")
                    return
                }
            } else if argument == "golden" {
                for item in SimulationCase.all { print(item.name, item.result) }
                return
            } else if argument == "steps" {
                printsSteps = true
            } else if argument == "links" {
                printsLinks = true
            } else if argument == "thin" {
                printsThin = true
            } else if argument == "states" {
                printsStates = true
            } else {
                wanted.append(argument)
            }
        }
        if printsSteps {
            for line in StepSweep().lines(settings, printsEach: printsStates) { print(line) }
            return
        }
        if printsThin {
            for line in ThinSweep().lines(settings) { print(line) }
            return
        }
        if printsLinks {
            for line in LinkSweep().lines(settings) { print(line) }
            return
        }
        print(BenchCase.heading)
        var summary = BenchSummary()
        for item in cases where wanted.isEmpty || wanted.contains(item.name) {
            for line in item.run(settings, printsStates: printsStates, into: &summary) { print(line) }
        }
        print(summary.line)
    }
}
