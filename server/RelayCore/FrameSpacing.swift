/// The time from one frame to the next of what is published for a subscriber, all its tracks together.
///
/// Frames that were left out count as well: they do not make the others larger.
struct FrameSpacing: Sendable {
    /// The mean is over about this many frames.
    private static let memory = 8.0
    /// A longer time counts as this: it is a pause of the publisher.
    private static let longest = 200_000.0

    private var last: Int64?
    private var mean = 33_333.0

    /// The mean time, in microseconds, that of 30 frames a second at first.
    var interval: Int64 { Int64(mean) }

    /// Notes at `now`, in microseconds, that a track has published `frames` more.
    mutating func add(_ frames: Int, at now: Int64) {
        defer { last = now }
        guard let last, frames > 0 else { return }
        let each = min(Self.longest, Double(now - last) / Double(frames))
        mean += (each - mean) * min(1, Double(frames) / Self.memory)
    }
}
