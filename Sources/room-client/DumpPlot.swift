import Charts
import Foundation
import MediaCore
import MediaFiles
import RoomKit

/// Draws the frame logs of dumps: age, rate, frame rate and size over time, with freezes.
struct DumpPlot {
    /// What the drawing needs of a line of a frame log; times in microseconds.
    ///
    /// Fields that not all versions of the program write are optional.
    private struct Frame: Decodable {
        var bytes: Int
        var captured: Int64
        var received: Int64
        var decoded: Int64?
        var catchUp: Bool
        var shown: Bool?
        var width: Int?
        var height: Int?
        var clock: String
        var clockError: Int64?

        var isShown: Bool { (shown ?? !catchUp) && decoded != nil }
    }

    private var dumps: [(name: String, frames: [Frame])] = []

    /// Whether there is nothing to draw.
    var isEmpty: Bool { dumps.allSatisfy(\.frames.isEmpty) }

    /// The log beside the dump `path`.
    static func log(of path: String) -> String { "\((path as NSString).deletingPathExtension).frames.jsonl" }

    /// Adds the dump `path`, if there is a log beside it; an incomplete last line is left out.
    mutating func add(_ path: String) throws {
        let log = Self.log(of: path)
        guard unsafe access(log, F_OK) == 0 else { return }
        let lines = try WholeFile.read(log).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let decoder = JSONDecoder()
        do {
            let frames = try lines.dropLast().filter { !$0.isEmpty }.map {
                try decoder.decode(Frame.self, from: Data($0))
            }
            dumps.append(((path as NSString).lastPathComponent, frames))
        } catch {
            throw MediaFileError(.damaged, .read, log, "a line is no frame's; it cannot be drawn")
        }
    }

    /// The chart of all dumps, whose times begin with the first frame of all of them.
    var chart: TimeChart {
        let origin = dumps.flatMap(\.frames).map { Double($0.received) }.min() ?? 0
        let sections = dumps.map { TimeChart.Section($0.name, panels: panels(of: $0.frames, origin)) }
        let frames = dumps.map(\.frames.count).reduce(0, +)
        return TimeChart(
            title: dumps.count == 1 ? "Dump" : "\(dumps.count) dumps",
            subtitle: "\(frames) frames; a frame's age is the time from its capture until it was decoded",
            sections: sections
        )
    }

    private func panels(of frames: [Frame], _ origin: Double) -> [TimeChart.Panel] {
        func seconds(_ time: Int64) -> Double { (Double(time) - origin) / 1e6 }
        var rate = AmountsOverTime(window: 0.5)
        var frameRate = AmountsOverTime(window: 1)
        var ages: [TimeChart.Point] = []
        var sizes: [TimeChart.Point] = []
        var freezes: [TimeChart.Span] = []
        var detector = FreezeDetector()
        for frame in frames {
            rate.add(Double(frame.bytes), at: seconds(frame.received))
            if let height = frame.height { sizes.append(TimeChart.Point(seconds(frame.received), Double(height))) }
            guard frame.isShown, let decoded = frame.decoded else { continue }
            let time = seconds(decoded)
            frameRate.add(1, at: time)
            ages.append(TimeChart.Point(time, (Double(decoded) - Double(frame.captured)) / 1000))
            if let freeze = detector.shown(at: MonotonicInstant(microseconds: decoded)) {
                freezes.append(TimeChart.Span(time - freeze.seconds, time))
            }
        }
        let age = TimeChart.Panel(
            "Frame age",
            unit: "ms",
            note: note(frames, ages.map(\.value)),
            series: [TimeChart.Series("", .dots, ages)],
            spans: freezes,
            spanName: "freeze (\(detector.count), \(String(format: "%.1f", detector.totalDuration.seconds)) s)"
        )
        var panels = [age.scaledToValues()]
        panels.append(panel("Rate", "kbit/s", [("", .steps, rate.points(factor: 8 / 1000))]))
        panels.append(panel("Shown frames", "1/s", [("", .steps, frameRate.points())]))
        if !sizes.isEmpty { panels.append(panel("Height", "pixels", [("", .steps, sizes)])) }
        return panels
    }

    private func panel(
        _ title: String,
        _ unit: String,
        _ series: [(name: String, style: TimeChart.Style, points: [TimeChart.Point])]
    ) -> TimeChart.Panel {
        TimeChart.Panel(title, unit: unit, series: series.map { TimeChart.Series($0.name, $0.style, $0.points) })
    }

    private func note(_ frames: [Frame], _ ages: [Double]) -> String {
        guard let figures = Percentiles(of: ages) else { return "" }
        let shown = frames.filter(\.isShown)
        let clock = shown.allSatisfy { $0.clock == "same-host" } ? "same-host" : "estimated"
        let error = shown.compactMap(\.clockError).max().map { Double($0) / 1000 }
        return String(format: "p50 %.1f, p95 %.1f, max %.1f, ", figures.p50, figures.p95, figures.max ?? figures.p95)
            + clockWords(clock, errorMs: error)
    }
}
