import MediaCore

/// Bytes up to a time.
struct ByteCount: Hashable {
    var bytes: Int
    var time: MonotonicInstant

    /// The mean rate since an earlier count; zero if that is not earlier.
    func rate(since former: ByteCount) -> Bitrate {
        let seconds = time.duration(since: former.time).seconds
        return Bitrate(bitsPerSecond: seconds > 0 ? Int(Double(bytes - former.bytes) * 8 / seconds) : 0)
    }
}

/// Finds the highest rate that held for a given time, from counts of bytes that come in frames; a pure value.
///
/// The time runs from the end of one frame to the end of another: a large frame counts when its last byte comes, and
/// would otherwise count for a time in which little of it came.
struct BestRate {
    /// The highest rate so far; zero before two frames have come so far apart.
    private(set) var rate = Bitrate(bitsPerSecond: 0)

    private let time: Duration
    /// The bytes at the last count.
    private var bytes: Int?
    /// The counts at which a frame had just come, since the newest one that is `time` old.
    private var ends: [ByteCount] = []

    /// Looks for the highest rate over `time`.
    init(over time: Duration) {
        self.time = time
    }

    /// Takes a count, which is not older than the one before.
    mutating func add(_ count: ByteCount) {
        defer { bytes = count.bytes }
        guard let bytes, bytes != count.bytes else { return }
        ends.append(count)
        guard let start = ends.lastIndex(where: { count.time.duration(since: $0.time) >= time }) else { return }
        ends.removeFirst(start)
        rate = max(rate, count.rate(since: ends[0]))
    }
}
