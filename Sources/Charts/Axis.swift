import Glibc

/// A mapping from values to positions, with its marks.
struct Axis: Hashable, Sendable {
    /// A mark of the axis.
    struct Tick: Hashable, Sendable {
        var value: Double
        var label: String
    }

    let lower: Double
    let upper: Double
    let isLogarithmic: Bool
    private(set) var ticks: [Tick]

    /// The part of the axis below `value`: 0 at its lower end and 1 at its upper one.
    func position(of value: Double) -> Double {
        let part =
            isLogarithmic ? log10(max(value, lower) / lower) / log10(upper / lower) : (value - lower) / (upper - lower)
        return min(1, max(0, part))
    }

    /// An axis from zero, or from a negative value, up to at least the largest of `values`.
    static func linear(for values: [Double]) -> Axis {
        let largest = values.max() ?? 1
        let smallest = min(0, values.min() ?? 0)
        let range = largest > smallest ? largest - smallest : 1
        let step = niceStep(range / 4)
        let first = (smallest / step).rounded(.down)
        let last = max(first + 1, (smallest + range) / step).rounded(.up)
        let ticks = stride(from: first, through: last, by: 1)
            .map { Tick(value: $0 * step, label: NumberText.short($0 * step)) }
        return Axis(lower: first * step, upper: last * step, isLogarithmic: false, ticks: ticks)
    }

    /// A logarithmic axis that holds all of `values` from a thousandth of the largest on.
    static func logarithmic(for values: [Double]) -> Axis {
        let positive = values.filter { $0 > 0 }
        let largest = positive.max() ?? 10
        let smallest = max(positive.min() ?? 1, largest / 1000)
        var marks: [Double] = []
        // Only numbers of this size are of any use, and others would need too many marks.
        var decade = pow(10, log10(max(1e-9, smallest)).rounded(.down))
        let top = min(1e12, largest)
        while marks.count < 80 {
            for factor in [1.0, 2, 5] { marks.append(decade * factor) }
            if decade * 10 > top { break }
            decade *= 10
        }
        if let first = marks.lastIndex(where: { $0 <= smallest }) { marks.removeFirst(first) }
        let end = marks.firstIndex { $0 >= top }
        if let end { marks.removeLast(marks.count - 1 - end) } else { marks.append(decade * 10) }
        if marks.count < 2 { marks.append((marks.first ?? 1) * 10) }
        let isCrowded = marks.count > 7
        let ticks = marks.filter { !isCrowded || abs(log10($0) - log10($0).rounded()) < 1e-6 }
            .map { Tick(value: $0, label: NumberText.short($0)) }
        return Axis(lower: marks[0], upper: marks[marks.count - 1], isLogarithmic: true, ticks: ticks)
    }

    /// The axis of the times from `start` to `end`, in seconds.
    static func time(from start: Double, to end: Double) -> Axis {
        let range = max(end - start, 0.001)
        let step = timeStep(range / 9)
        let first = (start / step).rounded(.up)
        let last = ((start + range) / step).rounded(.down)
        let ticks =
            last >= first
            ? stride(from: first, through: last, by: 1)
                .map { Tick(value: $0 * step, label: NumberText.time($0 * step, inMinutes: range > 180)) } : []
        return Axis(lower: start, upper: start + range, isLogarithmic: false, ticks: ticks)
    }

    /// The smallest of 1, 2, 5, 10, 20 … and their tenths that is at least `step`.
    private static func niceStep(_ step: Double) -> Double {
        let decade = pow(10, log10(step).rounded(.down))
        return [1.0, 2, 5].map { $0 * decade }.first { $0 >= step * 0.999 } ?? 10 * decade
    }

    private static func timeStep(_ step: Double) -> Double {
        let steps: [Double] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400]
        return step <= 0.5 || step > 14_400 ? niceStep(step) : steps.first { $0 >= step } ?? 14_400
    }
}

/// Numbers as text, the same on every machine.
enum NumberText {
    /// A coordinate, with one decimal at most.
    static func coordinate(_ value: Double) -> String {
        let tenths = Int(exactly: (value * 10).rounded()) ?? 0
        return decimal(tenths, places: 1)
    }

    /// A number of an axis, with as many decimals as it needs: `0.05`, `2`, `1500`, `2M`.
    static func short(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let size = abs(value)
        if size >= 1e12 { return "\(value)" }
        if size >= 1e9 { return digits(value / 1e9) + "G" }
        if size >= 1e6 { return digits(value / 1e6) + "M" }
        return digits(value)
    }

    /// A time of an axis: `12 s`, `0.5 s`, or `3:20`.
    static func time(_ seconds: Double, inMinutes: Bool) -> String {
        guard inMinutes, let whole = Int(exactly: seconds.rounded()) else { return short(seconds) + " s" }
        let (minutes, rest) = abs(whole).quotientAndRemainder(dividingBy: 60)
        return "\(whole < 0 ? "−" : "")\(minutes):\(rest < 10 ? "0" : "")\(rest)"
    }

    private static func digits(_ value: Double) -> String {
        let places =
            value == value.rounded() ? 0 : abs(value) >= 10 ? 1 : abs(value) >= 0.1 ? 2 : abs(value) >= 0.001 ? 4 : 9
        let scaled = (value * pow(10, Double(places))).rounded()
        return decimal(Int(exactly: scaled) ?? 0, places: places)
    }

    /// `number` / 10^`places`, without zeros at the end.
    private static func decimal(_ number: Int, places: Int) -> String {
        var (number, places) = (number, places)
        while places > 0, number % 10 == 0 {
            number /= 10
            places -= 1
        }
        guard places > 0 else { return "\(number)" }
        let text = String(abs(number))
        let padded = String(repeating: "0", count: max(0, places + 1 - text.count)) + text
        return (number < 0 ? "-" : "") + padded.dropLast(places) + "." + padded.suffix(places)
    }
}
