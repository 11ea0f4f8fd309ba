/// The smallest value of the last stretch of time, or with `>` as order the largest.
///
/// Values must come in the order of their times. A value costs constant time on average: one that can never be the
/// extremum again, because a later one is at least as extreme, is forgotten at once.
struct SlidingExtremum: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var time: Int64
        var value: Double
    }

    /// How long a value counts, in microseconds.
    let window: Int64
    private let isMaximum: Bool
    private var entries: [Entry] = []
    /// The entries before this index have left the window.
    private var first = 0

    /// The smallest value of the last `window` microseconds.
    static func minimum(over window: Int64) -> SlidingExtremum {
        SlidingExtremum(window: window, isMaximum: false)
    }

    /// The largest value of the last `window` microseconds.
    static func maximum(over window: Int64) -> SlidingExtremum {
        SlidingExtremum(window: window, isMaximum: true)
    }

    private init(window: Int64, isMaximum: Bool) {
        self.window = window
        self.isMaximum = isMaximum
        entries.reserveCapacity(64)
    }

    /// The extremum; `nil` before the first value.
    var value: Double? { first < entries.count ? entries[first].value : nil }

    /// The extremum of the window that ends at `time`; `nil` if it has no value.
    mutating func value(at time: Int64) -> Double? {
        while first < entries.count, time - entries[first].time > window { first += 1 }
        return value
    }

    /// Replaces each value; `change` must keep their order.
    mutating func changeValues(_ change: (Double) -> Double) {
        for index in entries.indices { entries[index].value = change(entries[index].value) }
    }

    /// Takes a value in and gives the extremum of the window that ends with it.
    @discardableResult
    mutating func add(_ value: Double, at time: Int64) -> Double {
        while first < entries.count, let last = entries.last, isMaximum ? last.value <= value : last.value >= value {
            entries.removeLast()
        }
        entries.append(Entry(time: time, value: value))
        while time - entries[first].time > window { first += 1 }
        if first > 32, first * 2 > entries.count {
            entries.removeSubrange(..<first)
            first = 0
        }
        return entries[first].value
    }
}
