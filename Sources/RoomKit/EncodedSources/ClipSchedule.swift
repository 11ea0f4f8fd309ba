import MediaCore

/// Says when the frames of a file are to be shown.
///
/// Frames follow one another as their times in the file do. Times that go back or leap do not hold the clip up. After a
/// pause of the program, the clip goes on where it was.
struct ClipSchedule: Hashable, Sendable {
    /// The longest time from one frame to the next; a longer one is an error of the file.
    private static let longestInterval: Duration = .seconds(60)
    /// A clip that is behind by more does not catch up.
    private static let longestDelay: Duration = .milliseconds(200)

    /// The time of the last frame in the file; `nil` before the first frame of each pass.
    private var lastTime: Duration?
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
        var step = interval
        if let lastTime, time >= lastTime, time - lastTime <= Self.longestInterval {
            step = time - lastTime
            if step > .zero { interval = step }
        }
        lastTime = time
        var due = lastDue.map { $0 + step } ?? now
        if now.duration(since: due) > Self.longestDelay { due = now }
        lastDue = due
        return due
    }
}
