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
    /// The newest entry before the window.
    private var former: Entry?

    init(window: Int64) {
        self.window = window
        entries.reserveCapacity(64)
    }

    /// Bits per second; `nil` while the window is too short to tell.
    var bitsPerSecond: Double? { first < entries.count ? rate(since: entries[first]) : nil }

    /// Bits per second since the last bytes before the window; `nil` while there are none.
    ///
    /// What is in the window may have come in a single burst, such as the messages of one frame of few.
    var bitsPerSecondBeyondWindow: Double? { former.flatMap { rate(since: $0) } }

    private func rate(since entry: Entry) -> Double? {
        guard let last = entries.last, last.time - entry.time > Self.shortestSpan else { return nil }
        return Double(last.bytes - entry.bytes) * 8e6 / Double(last.time - entry.time)
    }

    /// Notes that `bytes` in all had arrived at `time`, in microseconds; neither may go back.
    mutating func add(bytes: Int64, at time: Int64) {
        entries.append(Entry(time: time, bytes: bytes))
        while entries.count - first > Self.mostEntries
            || entries.count - first > 2 && time - entries[first].time > window
        {
            former = entries[first]
            first += 1
        }
        if first > 32, first * 2 > entries.count {
            entries.removeSubrange(..<first)
            first = 0
        }
    }
}
