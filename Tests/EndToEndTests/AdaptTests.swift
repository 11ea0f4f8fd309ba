import Adaptation
import Glibc
import MediaCore
import RoomProtocol
import TestSupport
import Testing

@Suite("room-client adapt", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct AdaptTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A run of 30 s over a path that carries 2 Mbit/s, and 0.4 Mbit/s from the tenth to the twentieth second.
    private func recordedRun() -> AdaptationLog {
        let settings = UplinkController.Settings()
        var controller = UplinkController(settings)
        var entries: [AdaptationLog.Entry] = []
        let lane = UplinkController.Lane(
            largestDimensions: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(2500)
        )
        let start: Int64 = 50_000_000
        func instant(_ time: Int64) -> MonotonicInstant { MonotonicInstant(microseconds: time) }
        entries.append(AdaptationLog.Entry(time: start, input: .added(lane)))
        let id = controller.add(lane, at: instant(start))
        entries.append(AdaptationLog.Entry(time: start, input: .wanted(LayerBounds(), id)))
        controller.setWanted(LayerBounds(), of: id, at: instant(start))
        // When the path is done with all that was written, and the acknowledgements on their way.
        var idle = start
        var written: UInt64 = 0
        var acknowledgements: [(time: Int64, bytes: UInt64)] = []
        for frame in 0..<900 {
            let now = start + Int64(frame) * 33_333
            while let next = acknowledgements.first, next.time <= now {
                acknowledgements.removeFirst()
                let value = MediaAcknowledgement(
                    cumulativeBytes: next.bytes,
                    receiveTime: .init(microseconds: UInt64(next.time)),
                    trackAlias: 1,
                    frameNumber: 0
                )
                entries.append(AdaptationLog.Entry(time: next.time, input: .acknowledged(value)))
                controller.acknowledged(value, at: instant(next.time))
            }
            let decision = controller.decide(id, isNewFrame: true, keyframeDue: frame == 0, at: instant(now))
            let question = UplinkInput.decide(id, isNewFrame: true, keyframeDue: frame == 0)
            entries.append(AdaptationLog.Entry(time: now, input: question, decision: decision))
            guard case .encode(let target) = decision else { continue }
            let bytes = max(200, target.bitrate.bitsPerSecond / 240)
            let report = EncodingReport(
                bytes: bytes,
                isKeyframe: frame == 0,
                quantizer: 40,
                encodeDuration: .milliseconds(5),
                dimensions: target.dimensions
            )
            entries.append(AdaptationLog.Entry(time: now, input: .encoded(report, id)))
            controller.encoded(report, of: id, at: instant(now))
            entries.append(AdaptationLog.Entry(time: now, input: .wrote(bytes)))
            controller.wrote(bytes, at: instant(now))
            let isThin = (300..<600).contains(frame)
            idle = max(idle, now) + Int64(bytes * 8) * (isThin ? 5 : 1) / 2
            written += UInt64(bytes)
            acknowledgements.append((idle + 20_000, written))
        }
        return AdaptationLog(settings: settings, entries: entries)
    }

    private func store(_ log: String) throws -> String {
        let path = "\(directory.path)/run.log"
        try TestSupport.store(Array(log.utf8), at: path)
        return path
    }

    private func run(_ arguments: [String]) async throws -> (ending: Program.Ending, program: Program) {
        let program = try Program("room-client", ["adapt"] + arguments)
        return (try await program.end(), program)
    }

    @Test("A log replays to the decisions that it holds, and is drawn")
    func replayAndPlot() async throws {
        let path = try store(recordedRun().text)
        let (ending, program) = try await run(["replay", path, "--json"])
        #expect(ending == .exit(0), "\(program.errors)")
        let events = try program.events()
        let summary = try #require(events.last)
        #expect(summary.number("decisions") == 900 && summary.number("differences") == 0)
        #expect(events.count == 901 && events.first?.string("event") == "decision")
        let reasons = Set(events.compactMap { $0.string("rateReason") })
        #expect(reasons.contains("growth") && reasons.allSatisfy { RateReason(rawValue: $0) != nil }, "\(reasons)")
        let (drawn, plot) = try await run(["plot", path])
        #expect(drawn == .exit(0), "\(plot.errors)")
        let svg = try text(of: "\(directory.path)/run.svg")
        for part in ["Rate, kbit/s", "capacity estimate", "Queue, ms", "Height, pixels", "Frame rate, 1/s"] {
            #expect(svg.contains(part), "\(part)")
        }
        #expect(svg.utf8.count < 200_000)
    }

    // Only the texts of the two names were compared, so another name of the log, or another log, was overwritten.
    @Test("No drawing is written over a log")
    func drawingOverLog() async throws {
        let log = recordedRun().text
        let path = try store(log)
        try #require(link(path, directory("same.svg")) == 0)
        for (target, words) in [
            (directory("./run.log"), "-o writes SVG: give a name that ends in .svg"),
            (directory("other.log"), "-o writes SVG: give a name that ends in .svg"),
            (directory("./same.svg"), "is the log itself; name the drawing with -o"),
        ] {
            let (ending, program) = try await run(["plot", path, "-o", target])
            #expect(ending == .exit(64), "\(target): \(program.errors)")
            #expect(program.errors.contains(words), "\(program.errors)")
        }
        #expect(directory.names == ["run.log", "same.svg"])
        #expect(try text(of: path) == log)
        let (ending, program) = try await run(["plot", path, "-o", "-"])
        #expect(ending == .exit(0) && program.text.contains("<svg"), "\(program.errors)")
    }

    @Test("A decision that is not the recorded one is shown with both, and the exit code is 65")
    func differences() async throws {
        var log = recordedRun()
        let index = try #require(log.entries.lastIndex { $0.decision != nil })
        log.entries[index].decision = .notWanted
        let (ending, program) = try await run(["replay", try store(log.text), "--differences"])
        #expect(ending == .exit(65))
        let lines = program.text.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].contains("recorded: not wanted"), "\(program.text)")
        #expect(lines.last?.contains("1 not as recorded") == true)
        // There was no failure, although the exit code was 65.
        let (_, again) = try await run(["replay", try store(log.text), "--differences", "--json"])
        let events = try again.events()
        #expect(events.map { $0.string("event") } == ["decision", "failure", "summary"], "\(again.text)")
        #expect(events.dropFirst().first?.string("error")?.contains("1 not as recorded") == true, "\(again.text)")
        #expect(again.errors == "")
    }

    @Test("A log that is cut off is used up to there, and said to be cut off")
    func cutOff() async throws {
        let text = recordedRun().text
        for part in [text.dropLast(3), text.prefix(text.count / 2), text.dropLast(9)] {
            let path = try store(String(part))
            for command in ["replay", "plot"] {
                let (ending, program) = try await run([command, path])
                #expect(ending == .exit(65))
                #expect(program.errors.contains("cut off"), "\(program.errors)")
                #expect(program.text.contains(command == "plot" ? "Drawn" : "all as recorded"))
            }
            // The failure stood behind the summary.
            let (_, program) = try await run(["replay", path, "--json"])
            #expect(try program.events().suffix(2).map { $0.string("event") } == ["failure", "summary"])
        }
    }

    @Test("Foreign, empty and missing files are told apart")
    func foreign() async throws {
        let cases: [(content: String, words: String)] = [
            ("", "it is empty"), ("RIFF\u{0}\u{1}\u{2}", "no adaptation log"),
            ("{\"number\": 1}\n", "no adaptation log"), (recordedRun().text + "5 wrote 3\n", "follows the end"),
            (recordedRun().text.replacing(" ask ", with: " task ", maxReplacements: 1), "line"),
        ]
        for (content, words) in cases {
            let path = try store(content)
            for command in ["replay", "plot"] {
                let (ending, program) = try await run([command, path])
                #expect(ending == .exit(65), "\(words)")
                #expect(program.errors.lowercased().contains(words), "\(program.errors)")
            }
        }
        let (missing, program) = try await run(["replay", "\(directory.path)/none"])
        #expect(missing == .exit(66) && program.errors.contains("no such file"))
        let (isDirectory, other) = try await run(["plot", directory.path])
        #expect(isDirectory == .exit(74) && other.errors.contains("it is a directory"))
    }
}
