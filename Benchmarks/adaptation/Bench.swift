import Adaptation
import AdaptationSimulation
import ArgumentParser
import Charts
import Foundation

/// Plays the rows of `docs/adaptation.md` over simulated links, and prints a line for each.
@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adaptation-bench",
        abstract: "Play the adaptive decisions over simulated links.",
        discussion: """
            Without words, every case is played. Words choose:

              step, rfc5.1, …     cases by their names
              FOLDER/TRACE@1.7    a mahimahi trace, with a highest rate in Mbit/s
              NAME=VALUE          a setting, as in logs: rate.targetQueue=60000
              states              long gaps too, and the state every 0.5 s
              golden              what the unit tests expect
              links, steps, thin  medians and tails over random links
            """
    )

    /// What is played.
    private enum Play: String {
        case cases, golden, steps, links, thin
    }

    @Argument(help: ArgumentHelp("Cases, traces and settings.", valueName: "word"))
    var words: [String] = []

    @Flag(help: "Print one line of JSON for each flow, with the names and units of Benchmarks/network.")
    var json = false

    @Option(help: ArgumentHelp("Draw each case as NAME.svg in this folder.", valueName: "folder"))
    var draw: String?

    func run() throws {
        var settings = UplinkController.Settings()
        var cases = BenchCase.all
        var wanted: [String] = []
        var play = Play.cases
        var changes: [String] = []
        var printsStates = false
        for word in words {
            let parts = word.split(separator: "=")
            if parts.count == 2 {
                guard settings.set(String(parts[0]), to: String(parts[1])) else {
                    throw ValidationError("“\(word)” is no setting with a value")
                }
                changes.append(word)
            } else if word.contains("/") {
                do {
                    cases.append(try BenchCase.trace(word))
                } catch {
                    let reason = (error as NSError).userInfo[NSUnderlyingErrorKey] ?? error
                    throw ValidationError("\(word) cannot be read: \(reason)")
                }
                wanted.append(cases[cases.count - 1].name)
            } else if word == "states" {
                printsStates = true
            } else if let other = Play(rawValue: word) {
                play = other
            } else {
                guard cases.contains(where: { $0.name == word }) else {
                    let names = cases.map(\.name).joined(separator: ", ")
                    throw ValidationError("there is no case “\(word)”; the cases are \(names)")
                }
                wanted.append(word)
            }
        }
        switch play {
        case .golden: for item in SimulationCase.all { print(item.name, item.result) }
        case .steps: for line in StepSweep().lines(settings, printsEach: printsStates) { print(line) }
        case .links: for line in LinkSweep().lines(settings) { print(line) }
        case .thin: for line in ThinSweep().lines(settings) { print(line) }
        case .cases:
            let chosen = cases.filter { wanted.isEmpty || wanted.contains($0.name) }
            try run(chosen, settings, changes, printsStates: printsStates)
        }
    }

    private func run(
        _ cases: [BenchCase],
        _ settings: UplinkController.Settings,
        _ changes: [String],
        printsStates: Bool
    ) throws {
        if !json { print(BenchCase.heading) }
        var summary = BenchSummary()
        for item in cases {
            let result = item.play(settings)
            summary.add(result)
            if json {
                for record in result.records(changes) { print(try record.line) }
            } else {
                for line in result.lines(printsStates: printsStates) { print(line) }
            }
            guard let draw else { continue }
            try FileManager.default.createDirectory(atPath: draw, withIntermediateDirectories: true)
            let file = URL(filePath: draw).appending(component: "\(item.name).svg")
            try result.chart.svg.write(to: file, atomically: true, encoding: .utf8)
        }
        if !json { print(summary.line) }
    }
}
