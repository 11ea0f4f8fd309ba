/// What an encoding needs while nothing moves in its pictures, or few or none come: the rest of its share is free for others.
///
/// The rate of a connection grows with what is sent. Without the loan, a camera beside a screen that stands still stayed at
/// its half of a low rate, which no growth could follow.
///
/// A pure value.
struct QuietUse: Hashable, Sendable {
    /// How long no picture may have needed the share, in microseconds.
    ///
    /// A picture that stands still is repeated each second (docs/protocol.md, section 6.2).
    private static let window: Int64 = 2_500_000
    /// The rate that is kept for pictures, as a multiple of what they use: they differ from one to the next.
    private static let headroom = 1.5

    private var largest = SlidingExtremum.maximum(over: window)
    /// The time of the last picture that needed the share, or since when pictures have been wanted.
    private var needed: Int64?
    /// When a picture last had to wait for the network.
    private var waited: Int64?

    /// Takes in a frame that is no keyframe: the bitrate of frames as large as this one, and whether they leave a part of the
    /// share, because they are fine or rare.
    mutating func observe(_ rate: Double, leavesShare: Bool, at time: Int64) {
        if !leavesShare { needed = time }
        largest.add(rate, at: time)
    }

    /// Notes that a picture waits for the network.
    mutating func waits(at time: Int64) { waited = time }

    /// The bitrate that suffices for pictures like the last ones; `nil` unless all have left a part of the share for long.
    mutating func need(at time: Int64) -> Double? {
        guard let needed else {
            self.needed = time
            return nil
        }
        guard time - needed >= Self.window else { return nil }
        if let rate = largest.value(at: time) { return Self.headroom * rate }
        // What could not be sent says nothing of what moves.
        return waited.map { time - $0 < Self.window } ?? false ? nil : 0
    }
}
