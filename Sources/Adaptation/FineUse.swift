/// The bitrate that an encoding uses while its pictures are fine, which may be far less than it is allowed.
///
/// A still scene uses a few percent. What is left over is enough for a larger encoding of the same scene, although the
/// rate of the connection never grows to what the table has for both: it grows with what is sent.
///
/// A pure value.
struct FineUse: Hashable, Sendable {
    /// How long every picture must have been fine, in microseconds; the largest use of this time counts.
    private static let window: Int64 = 1_000_000
    /// The rate that is kept for pictures, as a multiple of what they use: they differ from one to the next.
    private static let headroom = 1.5

    private var largest = SlidingExtremum.maximum(over: window)
    /// Since when every picture has been fine; `nil` before the first.
    private var fineSince: Int64?

    /// Takes in a frame that is no keyframe: whether it is fine, and the bitrate of frames as large as this one.
    mutating func observe(isFine: Bool, _ rate: Double, at time: Int64) {
        // After a pause, the scene may be another one.
        if largest.value(at: time) == nil { fineSince = nil }
        fineSince = isFine ? fineSince ?? time : nil
        largest.add(rate, at: time)
    }

    /// The bitrate that suffices for pictures like those of the last second; `nil` if they were not all fine.
    mutating func sufficient(at time: Int64) -> Double? {
        guard let fineSince, time - fineSince >= Self.window, let rate = largest.value(at: time) else { return nil }
        return Self.headroom * rate
    }
}
