import MediaCore

/// Decides when the last picture of a screen that stands still, or of a hidden window, is delivered again.
///
/// A picture is repeated a short time after a motion, so that encoders learn that it stands still. They ask for more
/// repeats for as long as these make it sharper. Otherwise it is repeated at a low rate, so that somebody who joins
/// late has something to see. A pure value; the driver passes in the time.
struct RepeatSchedule: Equatable {
    /// The time from the last change to the first repeat: that of two pictures at 15 a second.
    static let settling = Duration.milliseconds(130)
    /// The shortest time from one picture to a repeat that was asked for: a little less than that of one at 15 a
    /// second.
    static let shortest = Duration.milliseconds(60)
    /// The time between repeats that nobody asked for.
    static let interval = Duration.seconds(1)

    private var last: MonotonicInstant?
    private var isRepeated = false
    private var isRequested = false

    /// Records that a picture with a change was delivered.
    mutating func delivered(at now: MonotonicInstant) {
        self = RepeatSchedule()
        last = now
    }

    /// Records that the last picture was delivered again.
    mutating func repeated(at now: MonotonicInstant) {
        last = now
        isRepeated = true
        isRequested = false
    }

    /// Asks for the next repeat as soon as possible.
    mutating func request() { isRequested = true }

    /// Whether the last picture is to be delivered again at `now`.
    ///
    /// The next question comes after `tick`. A repeat that is due in less than half of that time is due now.
    func isDue(at now: MonotonicInstant, tick: Duration) -> Bool {
        guard let last else { return false }
        let gap = isRequested ? Self.shortest : isRepeated ? Self.interval : Self.settling
        return now.duration(since: last) + tick / 2 >= gap
    }
}
