import MediaCore

/// Decides when the last picture of a screen that stands still, or of a hidden window, is delivered again.
///
/// After a motion the picture is repeated for two seconds in short intervals, so that the encoder can make it sharp. Then it
/// is repeated at a low rate, so that somebody who joins late has something to see. A picture that was asked for may be a
/// keyframe, which is coarse, so the short intervals begin anew. A pure value; the driver passes in
/// the time.
struct RepeatSchedule: Equatable {
    /// The time from the last change to the first repeat, and between the first repeats.
    ///
    /// It is that of two pictures at 15 a second. A repeat gets no more bytes than any other frame, so that a motion that
    /// begins never waits for longer behind it.
    static let settling = Duration.milliseconds(130)
    /// The number of repeats after which a picture counts as sharp.
    static let settlingCount = 15
    /// The time between further repeats.
    static let interval = Duration.seconds(1)

    private var last: MonotonicInstant?
    private var repeats = 0
    private var isRequested = false

    /// Records that a picture with a change was delivered.
    mutating func delivered(at now: MonotonicInstant) {
        self = RepeatSchedule()
        last = now
    }

    /// Records that the last picture was delivered again.
    mutating func repeated(at now: MonotonicInstant) {
        last = now
        repeats = isRequested ? 0 : repeats + 1
        isRequested = false
    }

    /// Makes the next repeat due at once.
    mutating func request() { isRequested = true }

    /// Whether the last picture is to be delivered again at `now`.
    ///
    /// The next question comes after `tick`. A repeat that is due in less than half of that time is due now.
    func isDue(at now: MonotonicInstant, tick: Duration) -> Bool {
        guard let last else { return false }
        let gap = repeats < Self.settlingCount ? Self.settling : Self.interval
        return isRequested || now.duration(since: last) + tick / 2 >= gap
    }
}
