import MediaCore

/// Leaves out frames of higher temporal layers for a subscriber that wishes for a lower frame rate than the track has.
///
/// A frame is left out if it comes too soon after one that the subscriber was sent of the same layer or a lower one. The
/// frames that remain are evenly spaced, whatever the pattern of the layers and the present rate of the track are. Layer
/// 0 always passes. Times are the packets' arrivals in microseconds, modulo 2^32.
struct LayerPace: Sendable {
    /// The part of a wished interval that suffices: frames do not come at even intervals.
    private static let tolerance = 0.8

    /// 0 if every frame passes.
    private var shortestGap: UInt32 = 0
    /// When the last frame of layers 0 and 1 that passed had come.
    private var lastOfLower: UInt32 = 0
    /// When the last frame that passed had come.
    private var last: UInt32 = 0

    /// Sets the highest frame rate, in frames per second; `nil` for any.
    mutating func setFrameRate(_ frameRate: Double?) {
        shortestGap = frameRate.map { UInt32(min(Self.tolerance * 1e6 / $0, 1e9)) } ?? 0
    }

    /// Whether the frame that begins with `entry` is to be left out.
    func isTooSoon(_ entry: TrackStream.Entry) -> Bool {
        guard entry.temporalLayer > 0, shortestGap > 0 else { return false }
        return Self.time(entry) &- (entry.temporalLayer == 1 ? lastOfLower : last) < shortestGap
    }

    /// Notes that the frame that begins with `entry` passes.
    mutating func passed(_ entry: TrackStream.Entry) {
        guard shortestGap > 0 else { return }
        last = Self.time(entry)
        if entry.temporalLayer <= 1 { lastOfLower = last }
    }

    private static func time(_ entry: TrackStream.Entry) -> UInt32 {
        UInt32(truncatingIfNeeded: entry.arrival.microseconds)
    }
}
