import Charts
import MediaCore

/// Amounts added up over time, as the values of a chart.
struct AmountsOverTime {
    /// The length of a window, in seconds.
    let window: Double
    private var sums: [(index: Int, sum: Double)] = []

    init(window: Double) {
        self.window = window
    }

    /// Adds `amount` at `time`, in seconds; times come in their order, and one that goes back counts as the last one.
    mutating func add(_ amount: Double, at time: Double) {
        let index = max(sums.last?.index ?? .min, Int(exactly: (time / window).rounded(.down)) ?? 0)
        if sums.last?.index == index {
            sums[sums.count - 1].sum += amount
        } else {
            sums.append((index, amount))
        }
    }

    /// The amount per second in each window, multiplied by `factor`; a window without any is zero.
    func points(factor: Double = 1) -> [TimeChart.Point] {
        var points: [TimeChart.Point] = []
        for (position, entry) in sums.enumerated() {
            points.append(TimeChart.Point(Double(entry.index) * window, entry.sum / window * factor))
            let isFollowed = position + 1 < sums.count && sums[position + 1].index == entry.index + 1
            // One zero stands for the whole stretch until the next amount.
            if !isFollowed { points.append(TimeChart.Point(Double(entry.index + 1) * window, 0)) }
        }
        return points
    }
}

extension TimeChart.Panel {
    /// The panel with a logarithmic scale, if a few of its values are much larger than most of them.
    func scaledToValues() -> TimeChart.Panel {
        let values = series.flatMap(\.points).map(\.value).filter { $0.isFinite && $0 > 0 }.sorted()
        guard let largest = values.last, largest > 20 * values[values.count / 2] else { return self }
        var panel = self
        panel.scale = .logarithmic
        return panel
    }
}
