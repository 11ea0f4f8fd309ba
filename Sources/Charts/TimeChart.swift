/// A drawing of values over time: panels below each other that share the time axis, as the text of an SVG file.
///
/// A pure value: what is drawn depends on its fields alone. Times are in seconds from an origin that the caller
/// chooses. Fields may have any content: times that are not finite are left out, and a value that is not finite
/// interrupts its line. A file stays small whatever the number of points, because no column of pixels gets more than
/// four of them.
package struct TimeChart: Hashable, Sendable {
    /// A value at a time.
    package struct Point: Hashable, Sendable {
        /// Seconds.
        package var time: Double
        /// The value, in the unit of its panel.
        package var value: Double

        /// The value `value` at `time`.
        package init(_ time: Double, _ value: Double) {
            self.time = time
            self.value = value
        }
    }

    /// How the points of a series are drawn.
    package enum Style: Hashable, Sendable {
        /// Joined by straight lines.
        case line
        /// Each value holds until the next one.
        case steps
        /// A dot for each point.
        case dots
        /// A thin bar from zero up to each point.
        case bars
    }

    /// Values that belong together.
    package struct Series: Hashable, Sendable {
        /// The name in the panel's legend; empty if the panel's title says it.
        package var name: String
        /// How it is drawn.
        package var style: Style
        /// The values, in the order of their times.
        package var points: [Point]

        /// A series with the given fields.
        package init(_ name: String, _ style: Style = .line, _ points: [Point]) {
            self.name = name
            self.style = style
            self.points = points
        }
    }

    /// A stretch of time that is shaded.
    package struct Span: Hashable, Sendable {
        /// Where it begins, in seconds.
        package var start: Double
        /// Where it ends, in seconds.
        package var end: Double

        /// The stretch from `start` to `end`.
        package init(_ start: Double, _ end: Double) {
            self.start = start
            self.end = end
        }
    }

    /// How the values of a panel are spread over its height.
    package enum Scale: Hashable, Sendable {
        /// Evenly, from zero.
        case linear
        /// By their logarithm: for values of which some are many times larger than most.
        ///
        /// Values that are not positive lie at the bottom, and so do those below a thousandth of the largest.
        case logarithmic
    }

    /// A panel with an axis of its own for its values.
    package struct Panel: Hashable, Sendable {
        /// What it shows.
        package var title: String
        /// The unit of the values.
        package var unit: String
        /// A remark beside the title, for example percentiles.
        package var note: String
        /// How the values are spread over the height.
        package var scale: Scale
        /// The values.
        package var series: [Series]
        /// Shaded stretches of time.
        package var spans: [Span]
        /// What the shaded stretches are, for the legend.
        package var spanName: String

        /// A panel with the given fields.
        package init(
            _ title: String,
            unit: String,
            note: String = "",
            scale: Scale = .linear,
            series: [Series],
            spans: [Span] = [],
            spanName: String = ""
        ) {
            self.title = title
            self.unit = unit
            self.note = note
            self.scale = scale
            self.series = series
            self.spans = spans
            self.spanName = spanName
        }
    }

    /// Panels about one thing, below its heading.
    package struct Section: Hashable, Sendable {
        /// The heading; empty for none.
        package var heading: String
        /// The panels, from top to bottom.
        package var panels: [Panel]

        /// A section with the given fields.
        package init(_ heading: String = "", panels: [Panel]) {
            self.heading = heading
            self.panels = panels
        }
    }

    /// The title of the drawing.
    package var title: String
    /// A line below the title; empty for none.
    package var subtitle: String
    /// The sections, from top to bottom.
    package var sections: [Section]

    /// A chart with the given fields.
    package init(title: String, subtitle: String = "", sections: [Section]) {
        self.title = title
        self.subtitle = subtitle
        self.sections = sections
    }

    /// The text of the SVG file.
    package var svg: String {
        var drawing = Drawing(self)
        return drawing.draw()
    }
}
