import MediaCore

/// Says when the frames of a file are to be shown.
///
/// Frames follow one another as their times in the file do. Frames with equal times, and times that go back or leap,
/// follow one another at the usual interval. After a pause of the program, the clip goes on where it was.
struct ClipSchedule: Hashable, Sendable {
    /// The longest time from one frame to the next; a longer one is an error of the file.
    private static let longestInterval: Duration = .seconds(60)
    /// A clip that is behind by more does not catch up.
    private static let longestDelay: Duration = .milliseconds(200)

    /// The time of the last frame in the file; `nil` before the first frame of each pass.
    private var lastTime: Duration?
    /// The time in the file that the clip has reached: later than `lastTime` after frames with equal times.
    private var reached: Duration = .zero
    /// When the last frame was due; `nil` before the first of all.
    private var lastDue: MonotonicInstant?
    /// The time from one frame to the next, if the file does not say it.
    private var interval: Duration

    /// A clip that has not begun, whose frames are usually this far apart.
    init(interval: Duration = .milliseconds(33)) {
        self.interval = interval
    }

    /// The file begins again.
    mutating func rewind() {
        lastTime = nil
    }

    /// When the next frame is due, whose time in the file is `time`.
    mutating func due(_ time: Duration, at now: MonotonicInstant) -> MonotonicInstant {
        let step = step(to: time)
        lastTime = time
        var due = lastDue.map { $0 + step } ?? now
        if now.duration(since: due) > Self.longestDelay { due = now }
        lastDue = due
        return due
    }

    /// The time from the last frame to the next, whose time in the file is `time`.
    private mutating func step(to time: Duration) -> Duration {
        guard let lastTime, time >= lastTime, time - lastTime <= Self.longestInterval else {
            reached = time
            return interval
        }
        // Frames with equal times share the time up to the next one, so that the clip keeps its length.
        let step = time > reached ? time - reached : interval
        if reached == lastTime { interval = step }
        reached += step
        return step
    }
}
