import Charts
import Foundation
import MediaCore
import MediaFiles
import RoomKit
import Wording

/// Draws the frame logs of dumps: age, rate, frame rate and size over time, with freezes.
struct DumpPlot {
    private var dumps: [(name: String, frames: [FrameLogEntry])] = []

    /// Whether there is nothing to draw.
    var isEmpty: Bool { dumps.allSatisfy(\.frames.isEmpty) }

    /// Adds the dump `path`, if there is a log beside it; an incomplete last line is left out.
    mutating func add(_ path: String) throws(MediaFileError) {
        guard let frames = try DumpFiles.readLog(of: path) else { return }
        dumps.append(((path as NSString).lastPathComponent, frames))
    }

    /// The chart of all dumps.
    ///
    /// The times of dumps that were recorded at the same time begin with the first frame of all of them, so that they can
    /// be compared. Those of other dumps begin with their own first frame: days may lie between them.
    var chart: TimeChart {
        let sections = zip(dumps, origins).map { dump, origin in
            TimeChart.Section(dump.name, panels: panels(of: dump.frames, origin))
        }
        let frames = dumps.map(\.frames.count).reduce(0, +)
        return TimeChart(
            title: dumps.count == 1 ? "Dump" : "\(dumps.count) dumps",
            subtitle: "\(counted(frames, "frame")); a frame's age is the time from its capture until it was decoded",
            sections: sections
        )
    }

    /// The time at which the axis of each dump begins, in microseconds.
    private var origins: [Double] {
        let spans = dumps.map { dump in
            let times = dump.frames.map { Double($0.received) }
            return (begin: times.min() ?? 0, end: times.max() ?? 0)
        }
        var origins = spans.map(\.begin)
        var (origin, end) = (0.0, -Double.infinity)
        let inOrder = spans.indices.sorted { spans[$0].begin < spans[$1].begin }
        for index in inOrder where !dumps[index].frames.isEmpty {
            if spans[index].begin > end { origin = spans[index].begin }
            end = max(end, spans[index].end)
            origins[index] = origin
        }
        return origins
    }

    private func panels(of frames: [FrameLogEntry], _ origin: Double) -> [TimeChart.Panel] {
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
            if let freeze = detector.shown(frame.shownFrame, at: MonotonicInstant(microseconds: decoded)) {
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

    private func note(_ frames: [FrameLogEntry], _ ages: [Double]) -> String {
        guard let figures = Percentiles(of: ages) else { return "" }
        let shown = frames.filter(\.isShown)
        let clock = shown.allSatisfy { $0.clock == "same-host" } ? "same-host" : "estimated"
        let error = shown.compactMap(\.clockError).max().map { Double($0) / 1000 }
        return String(format: "p50 %.1f, p95 %.1f, max %.1f, ", figures.p50, figures.p95, figures.max ?? figures.p95)
            + clockWords(clock, errorMs: error)
    }
}
