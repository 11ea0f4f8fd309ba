import Capture
import MediaCore

/// Gives frames times that never go back and are neither in the future nor long ago, whatever the timestamps are.
///
/// Timestamps that go back, as those of an encoder that was started anew, begin a new timeline at the time of the last
/// frame. Those of long ago, as of another clock, begin one at the present. From there the times go on as the timestamps
/// do, until these can be taken as they are. Such a clock tells no age: where it stopped for a moment, a new timeline
/// begins.
struct StampedTimeline: Hashable, Sendable {
    /// How far the times of another clock may fall behind.
    private static let longestDelayOfOtherClock = Duration.seconds(1)

    /// The time of the last frame; `nil` before the first.
    private var last: MonotonicInstant?
    /// What is added to timestamps that cannot be taken as they are.
    private var offset = Duration.zero

    /// The time of the next frame, which came at `now`.
    mutating func time(of timestamp: MonotonicInstant, at now: MonotonicInstant) -> MonotonicInstant {
        let possible = min(timestamp, now)
        let isOfOurClock = possible.canBeCaptureTime(at: now)
        if isOfOurClock, possible >= last ?? possible { offset = .zero }
        if let last, possible + offset < last { offset = last.duration(since: possible) }
        let longestDelay = isOfOurClock ? MonotonicInstant.longestCaptureDelay : Self.longestDelayOfOtherClock
        if !(.zero...longestDelay).contains(now.duration(since: possible + offset)) {
            offset = now.duration(since: possible)
        }
        // Another thread may have read the clock later and come here sooner.
        let time = max(possible + offset, last ?? now - MonotonicInstant.longestCaptureDelay)
        last = time
        return time
    }
}
