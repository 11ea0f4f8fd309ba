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

/// How far the frames of an encoding have come, by the numbers of those that were sent.
struct FrameProgress: Sendable {
    private var last: UInt32?

    /// Notes that a frame was sent; returns how many were published since the last one, 1 if that is unknown.
    mutating func advance(to number: UInt32) -> Int {
        defer { last = number }
        // Numbers that a pause has left behind say nothing of the time between frames.
        guard let last, number > last, number - last <= 100 else { return 1 }
        return Int(number - last)
    }
}
