import ArgumentParser
import Charts
import Foundation
import MediaFiles
import RoomKit

/// `room-client verify`: checks dumps.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check a dump: is every frame there, once, in order, whole, and how old was it?",
        discussion: """
            Examples:
              room-client verify out
              room-client verify out/robot-pattern-PA_x.webm --json
              room-client verify out --plot out.svg

            Pictures of --source pattern contain a barcode that identifies the frame. For other sources, only the \
            frames' numbers are checked. "Lost" counts gaps in the frames' numbers, except those where a temporal \
            layer was left out. "Not sent" counts gaps in the barcodes alone: frames that the publisher left out. \
            "Not in the file" counts frames of the log (.frames.jsonl) that the file lacks.

            A freeze is a time between two shown pictures of at least three times the mean of the last 30, and at \
            least 150 ms longer than that mean. A time in which the publisher paused the track counts, too.

            Each frame is written to the file first and to the log second. So if a subscriber is killed, every frame \
            of the log is in the file, and at most one frame of the file is not in the log. The exit code is 65 if \
            more frames are missing, or if any frame was lost, doubled, reordered or torn.

            \(ExitStatus.pointer)
            """
    )

    @Argument(help: ArgumentHelp("A dump (.webm, .ivf, .y4m) or a directory of dumps.", valueName: "file or directory"))
    var path: String

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Draw frame age, rate, frame rate, size and freezes over time, from the frame logs; replaces an SVG file.",
            valueName: "file.svg"
        )
    )
    var plot: String?

    func validate() throws {
        guard plot?.lowercased().hasSuffix(".svg") != false else {
            throw ValidationError("--plot writes SVG: give a name that ends in .svg, such as --plot out.svg.")
        }
    }

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            let files = try dumps()
            // Draw first: a drawing helps most where the check finds faults.
            if let plot { try draw(files, to: plot, reporter) }
            var total = VerificationSummary()
            var failures: [ExitStatus] = []
            for file in files {
                do {
                    try checkName(of: file)
                    let outcome = try DumpVerifier(path: file).verify()
                    reporter.report(outcome.result, outcome.result.words)
                    total.add(outcome)
                } catch {
                    // Any error that is not a `MediaFileError` or `CommandFailure` means damaged content.
                    let isNamed = error is MediaFileError || error is CommandFailure
                    failures.append(isNamed ? ExitStatus(error) : .badData)
                    total.filesUnreadable += 1
                    reporter.report(UnreadableFile(file: file, error: "\(error)"), nil)
                    Terminal.complain("\(error)")
                }
            }
            total.finish()
            let isDamaged = total.hasFaults || failures.contains(.badData)
            let status = isDamaged ? ExitStatus.badData : failures.first
            if status != nil { reporter.report(FailureEvent(total.words), nil) }
            reporter.report(total, total.words)
            if let status { throw ExitCode(status.rawValue) }
        }
    }

    /// Checks that a name is not that of another part of a dump.
    private func checkName(of path: String) throws(CommandFailure) {
        if path.hasSuffix(".frames.jsonl") {
            let dump = "\(path.dropLast(".frames.jsonl".count)).webm"
            throw CommandFailure(.usage, "\(path) is the log beside a dump; name the dump, such as \(dump).")
        }
        if path.lowercased().hasSuffix(".png") {
            throw CommandFailure(.usage, "\(path): PNG files cannot be checked; record as webm, ivf or y4m.")
        }
    }

    private func draw(_ files: [String], to path: String, _ reporter: Reporter) throws {
        var drawing = DumpPlot()
        for file in files { try drawing.add(file) }
        guard !drawing.isEmpty else {
            throw MediaFileError(
                .notFound,
                .read,
                DumpPlot.log(of: files[0]),
                "without frames in it there is nothing to draw"
            )
        }
        try WholeFile.write(drawing.chart.svg, to: path)
        reporter.report(PlotEvent(file: path), "Drawn: \(path)")
    }

    /// The files to check: the file itself, or all dumps in the directory.
    private func dumps() throws -> [String] {
        var isDirectory: ObjCBool = false
        guard unsafe FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue
        else { return [path] }
        guard unsafe access(path, R_OK | X_OK) == 0 else { throw MediaFileError(.open, path, status: errno) }
        let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
        let files = names.filter { name in [".webm", ".ivf", ".y4m"].contains { name.hasSuffix($0) } }
        guard !files.isEmpty else {
            let isPictures = names.contains { $0.hasSuffix(".png") }
            let reason =
                isPictures
                ? "PNG files cannot be checked; record as webm, ivf or y4m" : "it has no .webm, .ivf or .y4m file"
            throw CommandFailure(.noInput, "There is nothing to check in \(path): \(reason).")
        }
        return files.map { "\(path)/\($0)" }
    }
}

/// A drawing that was written.
struct PlotEvent: Encodable {
    var event = "plot"
    var file: String
}

/// A dump that could not be read.
struct UnreadableFile: Encodable {
    var event = "file"
    var file: String
    var error: String
}

/// The result for one dump.
struct VerificationResult: Encodable {
    var event = "file"
    var file: String
    var width: Int
    var height: Int
    var frames = 0
    /// Frames that were captured but left out by the publisher.
    var notSent = 0
    /// Gaps in the frames' numbers that leaving out a temporal layer does not explain.
    var lost = 0
    /// Frames of higher temporal layers that the relay left out.
    var layersLeftOut = 0
    var duplicated = 0
    var reordered = 0
    var torn = 0
    /// Pictures without a readable barcode; all of them, if the source is not the pattern.
    var unreadable = 0
    var frozen = 0
    /// Frames from the relay's cache, which were decoded but not shown.
    var catchUp = 0
    /// Other frames that were decoded but not shown: a newer picture was there already, or they were too late.
    var notShown = 0
    /// How many times a picture had another size than the one before.
    var sizeChanges = 0
    /// How many times the frames changed to another simulcast layer.
    var simulcastSwitches = 0
    /// The counts for each simulcast layer, in which frame numbers count; empty without a log.
    var simulcastLayers: [FrameLogCheck.Layer] = []
    /// The freezes between shown pictures, by W3C's definition; `null` without a log.
    @Nullable var freezeCount: Int? = nil
    /// The time of these freezes, in seconds.
    @Nullable var totalFreezesDuration: Double? = nil
    /// Frames of the log that the file lacks.
    var notInFile = 0
    /// Frames of the file that the log lacks.
    var notInLog = 0
    @Nullable var clock: String? = nil
    @Nullable var clockErrorMs: Double? = nil
    @Nullable var latencyMs: Percentiles? = nil

    /// The largest number of frames that the log may lack.
    ///
    /// A frame is written to the file before its line is written to the log, each by one system call
    /// (`RecordingFiles.write`). A program that is killed between the two leaves one frame without a line, and never a
    /// line without its frame.
    private static let notLoggedAtMost = 1

    /// Whether anything is wrong.
    var hasFaults: Bool {
        lost + duplicated + reordered + torn + notInFile > 0 || notInLog > Self.notLoggedAtMost
    }

    /// The result as text for people.
    var words: String {
        let latency = latencyMs.map {
            String(format: ", latency p50 %.1f p95 %.1f p99 %.1f ms, ", $0.p50, $0.p95, $0.p99 ?? $0.p95)
                + clockWords(clock ?? "estimated", errorMs: clockErrorMs)
        }
        let missing =
            (notInFile > 0 ? ", \(notInFile) of the log not in the file" : "")
            + (notInLog > 0 ? ", \(notInLog) not in the log" : "")
        let smoothness =
            (sizeChanges > 0 ? ", size changes: \(sizeChanges)" : "")
            + (simulcastSwitches > 0 ? ", simulcast switches: \(simulcastSwitches)" : "")
            + freezeWords(freezeCount, seconds: totalFreezesDuration)
        let barcode = unreadable == 0 ? "" : unreadable == frames ? ", no barcodes" : ", \(unreadable) unreadable"
        return """
            \(file): \(width)x\(height), \(frames) frames, \(lost) lost, \(duplicated) doubled, \(reordered) reordered, \
            \(torn) torn, \(notSent) not sent\(missing)\(barcode)\(smoothness)\(latency ?? "")
            """
    }
}

/// The result for all dumps.
struct VerificationSummary: Encodable {
    var event = "summary"
    var files = 0
    /// Files that are not among `files`, because they could not be read.
    var filesUnreadable = 0
    var frames = 0
    var notSent = 0
    var lost = 0
    var duplicated = 0
    var reordered = 0
    var torn = 0
    var notInFile = 0
    var notInLog = 0
    var notShown = 0
    var sizeChanges = 0
    var simulcastSwitches = 0
    /// The freezes of all files; `null` if none has a log.
    @Nullable var freezeCount: Int? = nil
    /// The time of these freezes, in seconds.
    @Nullable var totalFreezesDuration: Double? = nil
    /// The worst clock of all files.
    @Nullable var clock: String? = nil
    @Nullable var clockErrorMs: Double? = nil
    @Nullable var latencyMs: Percentiles? = nil

    private enum CodingKeys: CodingKey {
        case event, files, filesUnreadable, frames, notSent, lost, duplicated, reordered, torn, notInFile, notInLog
        case clock, clockErrorMs
        case notShown, sizeChanges, simulcastSwitches, freezeCount, totalFreezesDuration, latencyMs
    }

    private var latencies: [Double] = []

    /// Whether anything is wrong in one of the files.
    private(set) var hasFaults = false

    mutating func add(_ outcome: DumpVerifier.Outcome) {
        let result = outcome.result
        files += 1
        frames += result.frames
        notSent += result.notSent
        lost += result.lost
        duplicated += result.duplicated
        reordered += result.reordered
        torn += result.torn
        notInFile += result.notInFile
        notInLog += result.notInLog
        notShown += result.notShown
        sizeChanges += result.sizeChanges
        simulcastSwitches += result.simulcastSwitches
        if let theirs = result.freezeCount { freezeCount = (freezeCount ?? 0) + theirs }
        if let theirs = result.totalFreezesDuration { totalFreezesDuration = (totalFreezesDuration ?? 0) + theirs }
        hasFaults = hasFaults || result.hasFaults
        if let theirs = result.clock, clock != "estimated" { clock = theirs }
        clockErrorMs = [clockErrorMs, result.clockErrorMs].compactMap(\.self).max()
        latencies += outcome.latencies
    }

    mutating func finish() {
        latencyMs = Percentiles(of: latencies)
    }

    /// The summary as text for people.
    var words: String {
        let unreadable = filesUnreadable == 0 ? "" : "\(counted(filesUnreadable, "file")) could not be read."
        guard files > 0 else { return unreadable }
        let missing = notInFile > 0 ? ", \(notInFile) not in their files" : ""
        let ages = latencyMs.map {
            String(format: ", latency p50 %.1f p95 %.1f max %.1f ms, ", $0.p50, $0.p95, $0.max ?? $0.p95)
                + clockWords(clock ?? "estimated", errorMs: clockErrorMs)
        }
        let result = """
            \(counted(files, "file")), \(counted(frames, "frame")): \(lost) lost, \(duplicated) doubled, \
            \(reordered) reordered, \(torn) torn\(missing), size changes: \(sizeChanges)\
            \(freezeWords(freezeCount, seconds: totalFreezesDuration))\(ages ?? "").
            """
        return unreadable.isEmpty ? result : "\(result) \(unreadable)"
    }
}

/// The freezes as text for people; empty if they are not known.
private func freezeWords(_ count: Int?, seconds: Double?) -> String {
    guard let count else { return "" }
    return ", freezes: \(count)" + (count > 0 ? String(format: " (%.2f s)", seconds ?? 0) : "")
}

extension Percentiles {
    /// Computes the percentiles of samples in milliseconds, by nearest rank; `nil` without samples.
    init?(of samples: [Double]) {
        guard !samples.isEmpty else { return nil }
        let sorted = samples.sorted()
        func rank(_ percent: Double) -> Double {
            sorted[Swift.max(0, Int((percent / 100 * Double(sorted.count)).rounded(.up)) - 1)]
        }
        self.init(p50: rank(50), p95: rank(95), p99: rank(99), max: sorted[sorted.count - 1])
    }
}
