/// Draws a chart; lengths in pixels.
struct Drawing {
    private static let width = 1000.0
    private static let left = 64.0
    private static let right = 984.0
    private static let panelHeight = 104.0
    /// Above a panel, for its title and legend.
    private static let panelHead = 30.0
    private static let sectionHead = 30.0
    /// The shades of series that share a panel, also for people who cannot tell all colours apart (Okabe and Ito).
    private static let colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
    private static let spanColour = "#d55e00"

    private let chart: TimeChart
    private let time: Axis
    private var body = ""
    /// Where the next thing is drawn.
    private var y = 0.0

    init(_ chart: TimeChart) {
        self.chart = chart
        var first = Double.infinity
        var last = -Double.infinity
        func include(_ time: Double) {
            guard time.isFinite else { return }
            first = min(first, time)
            last = max(last, time)
        }
        for panel in chart.sections.flatMap(\.panels) {
            for series in panel.series { for point in series.points { include(point.time) } }
            for span in panel.spans {
                include(span.start)
                include(span.end)
            }
        }
        // Differences of larger times would not be finite.
        let limit = 1e15
        time = first <= last ? .time(from: max(-limit, first), to: min(limit, last)) : .time(from: 0, to: 1)
    }

    mutating func draw() -> String {
        y = 32
        text(chart.title, x: 16, y: y, "class=\"title\"")
        if !chart.subtitle.isEmpty {
            y += 20
            text(chart.subtitle, x: 16, y: y, "class=\"note\"")
        }
        for section in chart.sections { draw(section) }
        y += 40
        let (width, height) = (NumberText.coordinate(Self.width), NumberText.coordinate(y))
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)">
            <style>
            text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: #333 }
            .title { font-size: 17px; font-weight: 600; fill: #111 }
            .heading { font-size: 14px; font-weight: 600; fill: #111 }
            .panel { font-size: 12px; font-weight: 600 }
            .note { fill: #666 }
            .grid { stroke: #e4e4e4; stroke-width: 1; fill: none }
            .frame { stroke: #999; stroke-width: 1; fill: none }
            .curve { stroke-width: 1.4; fill: none; stroke-linejoin: round }
            </style>
            <rect width="100%" height="100%" fill="#fff"/>
            \(body)</svg>

            """
    }

    private mutating func draw(_ section: TimeChart.Section) {
        if !section.heading.isEmpty {
            y += Self.sectionHead
            text(section.heading, x: 16, y: y, "class=\"heading\"")
        }
        for (index, panel) in section.panels.enumerated() {
            draw(panel, hasTimes: index == section.panels.count - 1)
        }
        y += 18
    }

    private mutating func draw(_ panel: TimeChart.Panel, hasTimes: Bool) {
        let values = panel.series.flatMap { series in series.points.map(\.value) }.filter { abs($0) < 1e15 }
        let isLogarithmic = panel.scale == .logarithmic && values.contains { $0 > 0 }
        let axis: Axis = isLogarithmic ? .logarithmic(for: values) : .linear(for: values)
        y += Self.panelHead
        let top = y
        let bottom = top + Self.panelHeight
        drawHead(of: panel, y: top - 7)
        drawGrid(axis, top: top, bottom: bottom, hasTimes: hasTimes)
        for span in panel.spans where span.start.isFinite && span.end.isFinite {
            let x = horizontal(min(span.start, span.end))
            let width = max(1, horizontal(max(span.start, span.end)) - x)
            body += "<rect x=\"\(number(x))\" y=\"\(number(top))\" width=\"\(number(width))\""
            body += " height=\"\(number(Self.panelHeight))\" fill=\"\(Self.spanColour)\" opacity=\"0.22\"/>\n"
        }
        for (index, series) in panel.series.enumerated() {
            draw(series, axis, top: top, bottom: bottom, colour: Self.colours[index % Self.colours.count])
        }
        if values.isEmpty, panel.spans.isEmpty {
            let middle = (Self.left + Self.right) / 2
            text("no data", x: middle, y: (top + bottom) / 2, "class=\"note\" text-anchor=\"middle\"")
        }
        y = bottom + (hasTimes ? 18 : 0)
    }

    private mutating func drawHead(of panel: TimeChart.Panel, y: Double) {
        let title = panel.unit.isEmpty ? panel.title : "\(panel.title), \(panel.unit)"
        text(title, x: Self.left, y: y, "class=\"panel\"")
        if !panel.note.isEmpty {
            text(panel.note, x: Self.left + Self.length(title, 7.4) + 12, y: y, "class=\"note\"")
        }
        var entries = panel.series.enumerated()
            .map { (name: $1.name, colour: Self.colours[$0 % Self.colours.count], opacity: "1") }
        entries.removeAll { $0.name.isEmpty }
        if !panel.spans.isEmpty, !panel.spanName.isEmpty { entries.append((panel.spanName, Self.spanColour, "0.35")) }
        var x = Self.right + 12
        for entry in entries.reversed() {
            x -= Self.length(entry.name, 6.6) + 29
            body += "<rect x=\"\(number(x))\" y=\"\(number(y - 8))\" width=\"11\" height=\"8\""
            body += " fill=\"\(entry.colour)\" opacity=\"\(entry.opacity)\"/>\n"
            text(entry.name, x: x + 15, y: y, "")
        }
    }

    private mutating func drawGrid(_ axis: Axis, top: Double, bottom: Double, hasTimes: Bool) {
        var path = ""
        for tick in axis.ticks {
            let y = bottom - axis.position(of: tick.value) * (bottom - top)
            path += "M\(number(Self.left)) \(number(y))H\(number(Self.right))"
            text(tick.label, x: Self.left - 6, y: y + 4, "text-anchor=\"end\"")
        }
        for tick in time.ticks {
            let x = horizontal(tick.value)
            path += "M\(number(x)) \(number(top))V\(number(bottom))"
            if hasTimes { text(tick.label, x: x, y: bottom + 14, "text-anchor=\"middle\"") }
        }
        body += "<path class=\"grid\" d=\"\(path)\"/>\n"
        body +=
            "<path class=\"frame\" d=\"M\(number(Self.left)) \(number(top))V\(number(bottom))H\(number(Self.right))\"/>\n"
    }

    private mutating func draw(
        _ series: TimeChart.Series,
        _ axis: Axis,
        top: Double,
        bottom: Double,
        colour: String
    ) {
        let curve = Curve(series.points) { point in
            guard abs(point.value) < 1e15 else { return nil }
            let y = bottom - axis.position(of: point.value) * (bottom - top)
            return Curve.Position(x: horizontal(point.time), y: y)
        }
        let zero = number(bottom - axis.position(of: max(0, axis.lower)) * (bottom - top))
        var path = ""
        for run in curve.runs {
            switch series.style {
            case .dots: for point in run { path += "M\(number(point.x)) \(number(point.y))h0" }
            case .bars: for point in run { path += "M\(number(point.x)) \(zero)V\(number(point.y))" }
            case .line: path += line(run, isStepped: false)
            case .steps: path += line(run, isStepped: true)
            }
        }
        guard !path.isEmpty else { return }
        let dots = series.style == .dots ? " stroke-linecap=\"round\" style=\"stroke-width:2.6\"" : ""
        body += "<path class=\"curve\" stroke=\"\(colour)\"\(dots) d=\"\(path)\"/>\n"
    }

    private func line(_ run: [Curve.Position], isStepped: Bool) -> String {
        var path = "M\(number(run[0].x)) \(number(run[0].y))"
        // A single point would not show.
        if run.count == 1 { path += "h1" }
        for point in run.dropFirst() {
            path += isStepped ? "H\(number(point.x))V\(number(point.y))" : "L\(number(point.x)) \(number(point.y))"
        }
        return path
    }

    private func horizontal(_ seconds: Double) -> Double {
        Self.left + time.position(of: seconds) * (Self.right - Self.left)
    }

    private func number(_ value: Double) -> String { NumberText.coordinate(value) }

    private mutating func text(_ text: String, x: Double, y: Double, _ attributes: String) {
        body += "<text x=\"\(number(x))\" y=\"\(number(y))\" \(attributes)>\(Self.escaped(text))</text>\n"
    }

    /// The approximate length of a text whose characters have the width `character` on average.
    private static func length(_ text: String, _ character: Double) -> Double { Double(text.count) * character }

    /// `text` as the content of an element; characters that XML does not have are left out.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{FFFE}", "\u{FFFF}": escaped += " "
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
