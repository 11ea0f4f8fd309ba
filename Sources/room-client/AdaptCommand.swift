import Adaptation
import ArgumentParser
import Charts
import Foundation
import MediaCore
import MediaFiles
import RoomKit
import Wording

/// `room-client adapt`: looks into logs of `connect --adapt-log`.
struct AdaptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adapt",
        abstract: "Look into a recorded run of the adaptive control (connect --adapt-log).",
        discussion: """
            Examples:
              room-client connect --room my-room --adapt-log run.log
              room-client adapt plot run.log
              room-client adapt replay run.log
            """,
        subcommands: [Replay.self, Plot.self]
    )
}

extension AdaptCommand {
    /// `room-client adapt replay`: makes the decisions of a log again.
    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make the decisions of a log again, and compare them with the recorded ones.",
            discussion: """
                Prints each decision: when it was, which encoding it is about, what is done with the picture, and why: what it \
                waits for, or what last changed the size and the frame rate; and why the rate is what it is. If a decision \
                differs from the recorded one, both are printed. The same program makes the same decisions on every \
                machine. The exit code is 65 if one differs, or if the log is damaged or cut off.

                Example:
                  room-client adapt replay run.log --differences

                \(ExitStatus.pointer)
                """
        )

        @Argument(help: ArgumentHelp("A log of connect --adapt-log.", valueName: "file"))
        var path: String

        @Flag(help: "Print only decisions that are not the recorded ones.")
        var differences = false

        @Flag(help: "Write one JSON object per line instead of text for people.")
        var json = false

        func run() async throws {
            try await reportingErrors(isJSON: json) {
                let reporter = Reporter(isJSON: json)
                let file = try AdaptationLogFile(path)
                var replay = UplinkReplay(file.log)
                var summary = ReplaySummary(file: path, inputs: file.log.entries.count)
                while let step = replay.next() {
                    guard case .decide(let lane, _, _) = step.entry.input else { continue }
                    summary.decisions += 1
                    let event = DecisionEvent(step, lane: lane)
                    if !step.isSame {
                        summary.differences += 1
                        summary.firstDifference = summary.firstDifference ?? event.seconds
                    }
                    if !differences || !step.isSame { reporter.report(event, event.words) }
                }
                // What is wrong stands before the summary, which is the last line.
                if let damage = file.damage {
                    reporter.reportOnce(FailureEvent(damage))
                } else if summary.differences > 0 {
                    reporter.report(FailureEvent(summary.words), nil)
                }
                reporter.reportSummary(summary, summary.words)
                if let damage = file.damage { throw damage }
                if summary.differences > 0 { throw ExitCode(ExitStatus.badData.rawValue) }
            }
        }
    }

    /// `room-client adapt plot`: draws a log.
    struct Plot: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Draw a log as SVG: capacity estimate, rate, queue, size, frame rate and pictures left out over time.",
            discussion: """
                Example:
                  room-client adapt plot run.log -o run.svg

                The exit code is 65 if the log is damaged, or cut off; one that is cut off is drawn up to there.

                \(ExitStatus.pointer)
                """
        )

        @Argument(help: ArgumentHelp("A log of connect --adapt-log.", valueName: "file"))
        var path: String

        @Option(
            name: [.short, .long],
            help: ArgumentHelp(
                "The SVG file to write or replace, or - for standard output (default: the log's name with .svg).",
                valueName: "file.svg"
            )
        )
        var output: String?

        @Flag(help: "Write one JSON object per line instead of text for people.")
        var json = false

        func validate() throws {
            guard let output, output != "-", !output.lowercased().hasSuffix(".svg") else { return }
            throw ValidationError("-o writes SVG: give a name that ends in .svg, such as -o run.svg, or - to pipe it.")
        }

        func run() async throws {
            try await reportingErrors(isJSON: json) {
                let file = try AdaptationLogFile(path)
                let name = path == "-" ? "adaptation" : path
                let target = output ?? "\((name as NSString).deletingPathExtension).svg"
                guard target == "-" || !DumpFiles.isSame(path, target) else {
                    throw CommandFailure(.usage, "\(path) is the log itself; name the drawing with -o.")
                }
                let drawing = AdaptationPlot(file.log, title: (name as NSString).lastPathComponent)
                try WholeFile.write(drawing.chart.svg, to: target)
                if target != "-" { Reporter(isJSON: json).report(PlotEvent(file: target), "Drawn: \(target)") }
                if let damage = file.damage { throw damage }
            }
        }
    }
}

/// A log that was read up to its end, or up to where it is cut off.
private struct AdaptationLogFile {
    var log: AdaptationLog
    /// Why the log ends where it does, if it is cut off.
    var damage: MediaFileError?

    init(_ path: String) throws {
        let bytes = try WholeFile.read(path)
        guard !bytes.isEmpty else { throw MediaFileError(.damaged, .read, path, "it is empty") }
        do throws(AdaptationLog.Malformed) {
            log = try AdaptationLog(reading: bytes)
        } catch {
            let damage = MediaFileError(.damaged, .read, path, Self.clause(error))
            // A program that is killed leaves a log without its end.
            guard let part = try? AdaptationLog(reading: bytes, acceptsCutOff: true) else { throw damage }
            log = part
            self.damage = damage
        }
    }

    /// The sentence as the end of another one.
    private static func clause(_ error: AdaptationLog.Malformed) -> String {
        var text = error.description
        if text.last == "." { text.removeLast() }
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}

/// A decision of a replay.
private struct DecisionEvent: Encodable {
    var event = "decision"
    /// Seconds of the publisher's clock.
    var seconds: Double
    /// The encoding, as numbered in the log.
    var lane: Int
    /// What is decided now.
    var decision: String
    /// Why a picture waits, or what last changed the size and the frame rate; `null` for none.
    @Nullable var reason: String?
    /// Why the connection's rate is what it is.
    var rateReason: String
    /// What was decided when the log was made; `null` if that is the same.
    @Nullable var recorded: String?

    init(_ step: UplinkReplay.Step, lane: Int) {
        seconds = Double(step.entry.time) / 1e6
        self.lane = lane
        decision = Self.words(step.decision)
        reason = step.reason
        rateReason = step.rateReason.rawValue
        recorded = step.isSame ? nil : Self.words(step.entry.decision)
    }

    /// The decision as text for people.
    var words: String {
        let difference = recorded.map { "; recorded: \($0)" } ?? ""
        let cause = reason.map { " (\($0))" } ?? ""
        let time = String(format: "%.6f", seconds)
        return "\(time) encoding \(lane): \(decision)\(cause); rate: \(rateReason)\(difference)"
    }

    private static func words(_ decision: FrameDecision?) -> String {
        switch decision {
        case .encode(let target):
            let limit = target.largestFrame.map { ", at most \($0.bytes) B" } ?? ""
            let layers = target.temporalLayerCount == 1 ? "" : ", \(target.temporalLayerCount) temporal layers"
            let rate = "\(target.bitrate.bitsPerSecond) bit/s"
            return "encode \(target.dimensions) at \(target.frameRate) fps, \(rate)\(limit)\(layers)"
        case .wait(let time?): return "wait until " + String(format: "%.6f", Double(time.microseconds) / 1e6)
        case .wait(nil): return "wait"
        case .notWanted: return "not wanted"
        case nil: return "none"
        }
    }
}

/// The result of a replay.
private struct ReplaySummary: Encodable {
    var event = "summary"
    var file: String
    var inputs: Int
    var decisions = 0
    /// Decisions that are not the recorded ones.
    var differences = 0
    /// When the first of these was, in seconds of the publisher's clock.
    @Nullable var firstDifference: Double?

    init(file: String, inputs: Int) {
        self.file = file
        self.inputs = inputs
    }

    /// The result as text for people.
    var words: String {
        let start = "\(file): \(counted(inputs, "input")), \(counted(decisions, "decision"))"
        guard let firstDifference else { return "\(start), all as recorded." }
        let time = String(format: "%.6f", firstDifference)
        return "\(start), \(differences) not as recorded, the first at \(time) s."
    }
}
