import Foundation
import FoundationXML
import TestTools
import Testing

@testable import Charts

/// What an XML parser finds in a drawing.
private final class Elements: NSObject, XMLParserDelegate {
    var elements: [(name: String, attributes: [String: String], text: String)] = []
    var isWhole = false

    init(_ svg: String) {
        super.init()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = self
        isWhole = parser.parse()
    }

    func parser(
        _ parser: XMLParser,
        didStartElement name: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        elements.append((name, attributes, ""))
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        elements[elements.count - 1].text += string
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        // What follows an element up to the next one is not its text.
        elements.append(("", [:], ""))
    }

    var texts: [String] { elements.filter { $0.name == "text" }.map(\.text) }

    /// The paths of the series, in their order.
    var curves: [String] {
        elements.filter { $0.attributes["class"] == "curve" }.compactMap { $0.attributes["d"] }
    }

    /// The points of a path that is made of `M` and `L`.
    static func points(_ path: String) -> [(x: Double, y: Double)] {
        path.split { $0 == "M" || $0 == "L" }.map { point in
            let sides = point.split(separator: " ").compactMap { Double($0) }
            return (sides[0], sides[1])
        }
    }
}

@Suite("Time charts", .timeLimit(.minutes(1)))
struct TimeChartTests {
    private func chart(
        _ points: [(Double, Double)],
        _ style: TimeChart.Style = .line,
        scale: TimeChart.Scale = .linear
    ) -> TimeChart {
        let series = TimeChart.Series("rate", style, points.map { TimeChart.Point($0.0, $0.1) })
        let panel = TimeChart.Panel("Rate", unit: "kbit/s", scale: scale, series: [series])
        return TimeChart(title: "A run", sections: [TimeChart.Section(panels: [panel])])
    }

    @Test("A line goes through its points, on axes with round numbers")
    func line() throws {
        let elements = Elements(chart([(0, 0), (30, 1500), (60, 750)]).svg)
        #expect(elements.isWhole)
        #expect(elements.texts.contains("A run") && elements.texts.contains("Rate, kbit/s"))
        for label in ["0", "500", "1000", "1500", "0 s", "30 s", "60 s"] { #expect(elements.texts.contains(label)) }
        let points = Elements.points(try #require(elements.curves.first))
        #expect(points.count == 3)
        #expect(points[0].x == 64 && points[1].x == 524 && points[2].x == 984)
        #expect(points[0].y > points[2].y && points[2].y > points[1].y)
        #expect(abs(points[0].y + points[1].y - 2 * points[2].y) < 0.2)
    }

    @Test("A value that is not finite interrupts the line, and zero lies at the bottom of a logarithmic axis")
    func gaps() {
        let values = [(0.0, 1.0), (1, 2), (2, .nan), (3, 3), (4, .infinity), (5, 1), (6, 2)]
        #expect(Elements(chart(values).svg).curves[0].count { $0 == "M" } == 3)
        let elements = Elements(chart([(0, 10), (1, 0), (2, 1000)], scale: .logarithmic).svg)
        let points = Elements.points(elements.curves[0])
        #expect(points.count == 3 && points[0].y == points[1].y && points[2].y < points[1].y)
        for label in ["10", "100", "1000"] { #expect(elements.texts.contains(label)) }
    }

    @Test("Steps hold their value, bars stand on zero, dots stand alone")
    func styles() {
        let values = [(0.0, 2.0), (1, 4)]
        let steps = Elements(chart(values, .steps).svg).curves[0]
        #expect(steps.contains("H984V"))
        #expect(Elements(chart(values, .bars).svg).curves[0].count { $0 == "V" } == 2)
        #expect(Elements(chart(values, .dots).svg).curves[0].count { $0 == "h" } == 2)
    }

    @Test("Any number of points makes a small file, which still shows every spike")
    func manyPoints() {
        var random = SeededGenerator(seed: 7)
        var points = (0..<200_000).map { (Double($0) / 100, Double.random(in: 10...20, using: &random)) }
        points[123_456].1 = 100
        let svg = chart(points).svg
        #expect(svg.utf8.count < 60_000)
        let heights = Elements.points(Elements(svg).curves[0]).map(\.y)
        // The axis ends at 100.
        let top = heights.min() ?? 0
        #expect(heights.count { $0 < top + 50 } == 1)
    }

    @Test("Times in any order are drawn in theirs")
    func unsorted() {
        let sorted = chart([(0, 1), (1, 2), (2, 3)]).svg
        #expect(chart([(2, 3), (0, 1), (1, 2)]).svg == sorted)
    }

    @Test("Nothing to draw is said")
    func empty() {
        let nothing: [[(Double, Double)]] = [[], [(0, .nan)], [(.nan, 1)]]
        for points in nothing {
            let elements = Elements(chart(points).svg)
            #expect(elements.isWhole && elements.curves.isEmpty)
        }
        #expect(Elements(chart([]).svg).texts.contains("no data"))
        #expect(Elements(TimeChart(title: "", sections: []).svg).isWhole)
    }

    @Test("Texts of any content are shown as they are")
    func hostileTexts() {
        let text = "<a href=\"x\">&amp; ]]> ö 視\u{0}\u{1B}\u{FFFF}</a>"
        let panel = TimeChart.Panel(
            text,
            unit: text,
            note: text,
            series: [TimeChart.Series(text, .line, [TimeChart.Point(0, 1)]), TimeChart.Series(text, .line, [])],
            spans: [TimeChart.Span(0, 1)],
            spanName: text
        )
        let chart = TimeChart(title: text, subtitle: text, sections: [TimeChart.Section(text, panels: [panel])])
        let elements = Elements(chart.svg)
        #expect(elements.isWhole)
        #expect(elements.texts.count { $0.hasPrefix("<a href=\"x\">&amp; ]]> ö 視") } == 8)
        #expect(!elements.elements.contains { $0.name == "a" })
    }

    @Test("Any values and times stay inside their panel", arguments: 0..<60 as Range<UInt64>)
    func anyValues(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func any() -> Double {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: Double(bitPattern: .random(in: 0...UInt64.max, using: &random))
            case 1:
                [0, -0.0, .infinity, -.infinity, .nan, 1e300, -1e300, .leastNonzeroMagnitude].randomElement(
                    using: &random
                ) ?? 0
            case 2: -Double.random(in: 0...1e4, using: &random)
            default: Double.random(in: 0...1e4, using: &random)
            }
        }
        let styles: [TimeChart.Style] = [.line, .line, .steps, .dots, .bars]
        let panels = (0..<6).map { _ in
            let series = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                let count = Int.random(in: 0...200, using: &random)
                let points = (0..<count).map { _ in TimeChart.Point(any(), any()) }
                return TimeChart.Series("s", styles.randomElement(using: &random) ?? .line, points)
            }
            let spans = (0..<3).map { _ in TimeChart.Span(any(), any()) }
            let isLogarithmic = Bool.random(using: &random)
            return TimeChart.Panel(
                "p",
                unit: "u",
                scale: isLogarithmic ? .logarithmic : .linear,
                series: series,
                spans: spans
            )
        }
        let svg = TimeChart(title: "t", sections: [TimeChart.Section(panels: panels)]).svg
        let elements = Elements(svg)
        #expect(elements.isWhole)
        let height = Double(elements.elements.first?.attributes["height"] ?? "") ?? 0
        for curve in elements.curves where !curve.contains(where: { "HVh".contains($0) }) {
            for point in Elements.points(curve) {
                #expect((64...984).contains(point.x) && (0...height).contains(point.y))
            }
        }
        for element in elements.elements where element.name == "rect" && element.attributes["x"] != nil {
            let x = Double(element.attributes["x"] ?? "") ?? -1
            let width = Double(element.attributes["width"] ?? "") ?? -1
            #expect(x >= 0 && width > 0 && x + width <= 986)
        }
    }

    @Test(
        "Numbers of axes",
        arguments: [
            (0.0, "0"), (0.05, "0.05"), (0.5, "0.5"), (2, "2"), (2.5, "2.5"), (1500, "1500"), (2e6, "2M"), (-5, "-5"),
            (-0.25, "-0.25"), (1.5e9, "1.5G"),
        ]
    )
    func numbers(value: Double, text: String) {
        #expect(NumberText.short(value) == text)
    }

    @Test("Times of axes")
    func times() {
        #expect(NumberText.time(0.5, inMinutes: false) == "0.5 s")
        #expect(NumberText.time(200, inMinutes: true) == "3:20")
        #expect(NumberText.time(65, inMinutes: true) == "1:05")
        #expect(Axis.time(from: 0, to: 100).ticks.map(\.label).first == "0 s")
        #expect(Axis.time(from: 0, to: 600).ticks.map(\.label).contains("4:00"))
    }
}
