import ArgumentParser
import Charts
import Foundation
import MediaFiles
import RoomKit

/// `room-client verify`: checks dumps.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check a dump for lost, doubled, reordered and torn frames, and say how old the frames were.",
        discussion: """
            Examples:
              room-client verify out
              room-client verify out/robot-pattern-PA_x.webm --json
              room-client verify out --plot out.svg

            Pictures of --source pattern contain a barcode that identifies the frame. For other sources, only the \
            frames' numbers are checked. "Lost" counts gaps in the frames' numbers after which the next frame cannot \
            be decoded. "Left out" counts the other gaps: a temporal layer, or everything up to a keyframe, because \
            it was too late for this subscriber. "Not recorded" counts the gaps of a Y4M dump, whose frames were all \
            decoded: pictures that came faster than the disk took them. "Not sent" counts gaps in the barcodes alone: \
            frames that the publisher left out. "Not in the file" counts frames of the log (.frames.jsonl) that the \
            file lacks, "not as in the log" frames of another length or kind than their line says.

            A picture that was captured before one that is already there is out of order, however old it is. Barcodes \
            that count from the beginning again, with later capture times, are those of a source that was started \
            again, which is no fault. A looped clip of pictures with barcodes goes back in time, too, and so counts as \
            out of order.

            A freeze is a time between two shown pictures of at least three times the mean of the last 30, and at \
            least 150 ms longer than that mean. A time in which the publisher paused the track counts, too.

            Each frame is written to the file first and to the log second. So if a subscriber is killed, every frame \
            of the log is in the file, at most one frame of the file is not in the log, and the file may end inside \
            one more frame.

            The exit code is 65 if one of these is true:
              More frames than that are missing.
              A frame was lost, doubled, reordered, torn or not as in the log.
              There is no frame.
              A file without a log is cut off: nothing says what it lacks.
              Another file was appended to the file.

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
            reporter.reportSummary(total, total.words)
            if let status { throw ExitCode(status.rawValue) }
        }
    }

    /// Checks that a name is not that of another part of a dump, and that it names a file.
    private func checkName(of path: String) throws(CommandFailure) {
        if path.hasSuffix(".frames.jsonl") {
            let dump = "\(path.dropLast(".frames.jsonl".count)).webm"
            throw CommandFailure(.usage, "\(path) is the log beside a dump; name the dump, such as \(dump).")
        }
        if path.lowercased().hasSuffix(".png") {
            throw CommandFailure(.usage, "\(path): PNG files cannot be checked; record as webm, ivf or y4m.")
        }
        guard DumpFiles.isFile(path) else {
            throw CommandFailure(.usage, "\(path) is a pipe or a device; store the dump in a file, and name that.")
        }
    }

    private func draw(_ files: [String], to path: String, _ reporter: Reporter) throws {
        var drawing = DumpPlot()
        var failure: MediaFileError?
        for file in files {
            do throws(MediaFileError) {
                try drawing.add(file)
            } catch {
                // The others are worth drawing; the check complains about this one.
                failure = failure ?? error
            }
        }
        guard !drawing.isEmpty else {
            if let failure { throw failure }
            // If there is no dump, that is what is wrong.
            for file in files where unsafe access(file, R_OK) != 0 {
                throw MediaFileError(.open, file, status: errno)
            }
            throw MediaFileError(
                .notFound,
                .read,
                DumpFiles.log(of: files[0]),
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
        let files = names.filter { name in [".webm", ".ivf", ".y4m"].contains { name.lowercased().hasSuffix($0) } }
        guard !files.isEmpty else {
            let isPictures = names.contains { $0.lowercased().hasSuffix(".png") }
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
