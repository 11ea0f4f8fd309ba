/// The rate at which bytes arrive, over a window of the receiver's time.
struct DeliveryRate: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var time: Int64
        var bytes: Int64
    }

    /// The shortest span whose rate is meaningful, in microseconds; a shorter one may be a single burst of the link.
    private static let shortestSpan: Int64 = 50_000

    /// More acknowledgements in a window than any honest receiver sends; the oldest are forgotten.
    private static let mostEntries = 1024

    /// The length of the window, in microseconds.
    let window: Int64
    private var entries: [Entry] = []
    private var first = 0

    init(window: Int64) {
        self.window = window
        entries.reserveCapacity(64)
    }

    /// Bits per second; `nil` while the window is too short to tell.
    var bitsPerSecond: Double? {
        guard let last = entries.last else { return nil }
        let span = last.time - entries[first].time
        guard span > Self.shortestSpan else { return nil }
        return Double(last.bytes - entries[first].bytes) * 8e6 / Double(span)
    }

    /// Notes that `bytes` in all had arrived at `time`, in microseconds; neither may go back.
    mutating func add(bytes: Int64, at time: Int64) {
        entries.append(Entry(time: time, bytes: bytes))
        while entries.count - first > Self.mostEntries
            || entries.count - first > 2 && time - entries[first].time > window
        {
            first += 1
        }
        if first > 32, first * 2 > entries.count {
            entries.removeSubrange(..<first)
            first = 0
        }
    }
}
