import MediaCore

/// Decides when a streaming camera is interrupted and when it has failed: when it gives nothing, or only damaged
/// frames, for too long.
///
/// A pure value; the driver passes in the time.
struct CaptureWatchdog {
    /// What has changed since the last look.
    enum Change: Equatable {
        /// No good frame has come for a while.
        case interrupted
        /// Good frames come again.
        case interruptionEnded
        /// Since the start, no good frame has come for longer than cameras take.
        case noFramesYet
    }

    /// The longest time for which the camera may deliver nothing.
    var patience: Duration { max(leastPatience, severalIntervals) }
    /// The time without a good frame that counts as an interruption.
    var interruption: Duration { max(Self.shortestInterruption, severalIntervals) }

    /// When the last frame came that was not damaged; before the first, when the stream was started.
    var silentSince: MonotonicInstant { lastGood ?? start }

    private let start: MonotonicInstant
    private let leastPatience: Duration
    /// The interval of the rate that the driver states.
    private let statedInterval: Duration
    /// The last intervals at which the device gave frames; the oldest is overwritten.
    private var intervals: [Duration] = []
    private var nextInterval = 0
    private var lastGiven: MonotonicInstant?
    /// When the camera counts as failed, unless it gives a frame before.
    private var deadline: MonotonicInstant
    /// The damaged frames since the last delivered one.
    private(set) var damagedInARow = 0
    /// When the first of these damaged frames arrived.
    private var damagedSince: MonotonicInstant?
    /// When the last frame arrived that was not damaged; `nil` before the first, which may take long.
    private(set) var lastGood: MonotonicInstant?
    /// The last good frame before the present interruption; `nil` outside of one.
    private var lastBefore: MonotonicInstant?
    /// When a camera counts as slow that has given no good frame; `nil` once that was said.
    private var firstFrameDue: MonotonicInstant?

    /// The frame intervals that may pass without a frame, if this is longer than the patience.
    ///
    /// Cameras at less than a frame a second jitter by a whole interval when they change their exposure.
    private static let fewestIntervals = 3
    /// The intervals that are kept: enough to tell the usual one from that of an interruption.
    private static let keptIntervals = 8
    /// The shortest interruption: viewers notice a picture that stands still for a second.
    private static let shortestInterruption = Duration.seconds(1)
    /// The longest usual time to the first frame: USB cameras take up to a second.
    private static let usualStart = Duration.seconds(2)

    /// Creates a watchdog that waits for `patience`, or for three frames if that is longer.
    ///
    /// Frames are expected at the `interval` that the driver states, or at the one at which they come if that is
    /// longer: cameras with a long exposure and feeds of loopback devices come at lower rates than the driver states.
    init(patience: Duration, interval: Duration, start: MonotonicInstant) {
        // A rate that is a driver's error can have an interval of centuries.
        statedInterval = min(interval, .seconds(3600))
        leastPatience = patience
        self.start = start
        let several = statedInterval * Self.fewestIntervals
        deadline = start + max(patience, several)
        firstFrameDue = start + max(Self.usualStart, several)
    }

    private var severalIntervals: Duration { max(statedInterval, usualInterval) * Self.fewestIntervals }

    /// The longest interval of late but one, because the longest may be that of an interruption; zero before any.
    private var usualInterval: Duration {
        var (longest, second) = (Duration.zero, Duration.zero)
        for interval in intervals {
            if interval > longest {
                (longest, second) = (interval, longest)
            } else {
                second = max(second, interval)
            }
        }
        return intervals.count == 1 ? longest : second
    }

    /// When `isOver` and `change` must be asked, even if nothing comes from the camera.
    var nextDeadline: MonotonicInstant {
        guard let lastGood else { return firstFrameDue.map { min($0, deadline) } ?? deadline }
        guard lastBefore == nil else { return deadline }
        return min(deadline, lastGood + interruption)
    }

    /// Records that the device handed over a frame, whole or not.
    mutating func deviceGave(at now: MonotonicInstant) {
        if let lastGiven { keep(now.duration(since: lastGiven)) }
        lastGiven = now
        deadline = now + patience
    }

    private mutating func keep(_ interval: Duration) {
        if intervals.count < Self.keptIntervals {
            intervals.append(interval)
        } else {
            intervals[nextInterval] = interval
        }
        nextInterval = (nextInterval + 1) % Self.keptIntervals
    }

    /// Records that a frame was delivered.
    mutating func delivered(at now: MonotonicInstant) {
        damagedSince = nil
        damagedInARow = 0
        lastGood = now
    }

    /// Records a frame that was not looked at, because no sink wants it: none at all, or none at this rate.
    mutating func notWanted(hasSink: Bool, at now: MonotonicInstant) {
        if hasSink && damagedSince != nil { return }
        delivered(at: now)
    }

    /// Records that a frame was damaged.
    mutating func damaged(at now: MonotonicInstant) {
        damagedInARow += 1
        damagedSince = damagedSince ?? now
    }

    /// Whether the camera has failed.
    func isOver(at now: MonotonicInstant) -> Bool { timeLeft(at: now) <= .zero }

    /// How soon the camera fails, unless it gives a good frame before.
    func timeLeft(at now: MonotonicInstant) -> Duration {
        let silence = deadline.duration(since: now)
        // A single damaged frame proves nothing, however long ago it arrived.
        guard let damagedSince, damagedInARow > 1 else { return silence }
        return min(silence, patience - now.duration(since: damagedSince))
    }

    /// Whether an interruption has begun or ended since the last call.
    mutating func change(at now: MonotonicInstant) -> Change? {
        guard let lastGood else {
            guard let due = firstFrameDue, now >= due else { return nil }
            firstFrameDue = nil
            return .noFramesYet
        }
        if let lastBefore {
            // Only a good frame ends it: frames that are damaged, but come slowly, make the limit longer.
            guard lastGood != lastBefore else { return nil }
            self.lastBefore = nil
            return .interruptionEnded
        }
        guard now.duration(since: lastGood) >= interruption else { return nil }
        lastBefore = lastGood
        return .interrupted
    }
}
