import MediaCore

/// Decides what is done while a camera gives no pictures: when a slate is due, when to open the camera again, what to
/// report, and when to give up.
///
/// One value lives as long as capturing does, so that a camera that comes and goes is not opened all the time. A pure
/// value; the driver passes in the time.
struct CameraOutage {
    /// The time between two slates: two a second show that the track is alive, and cost next to nothing.
    static let slateInterval = Duration.milliseconds(500)
    /// The rate of slates.
    static let slateRate = FrameRate(2)
    /// The time between two looks for a camera that is not there; a look reads a few names in sysfs.
    static let lookInterval = Duration.milliseconds(200)
    /// The wait after the first failure to open a camera that is there; it doubles with each further one.
    ///
    /// udev sets a new node's permissions within a quarter of a second, as a rule.
    static let firstRetry = Duration.milliseconds(250)
    /// The longest wait before a camera that is there is opened again.
    static let longestRetry = Duration.seconds(5)
    /// The longest wait before a receiver is asked again for a signal.
    static let longestSignalRetry = Duration.seconds(1)
    /// The longest wait before a camera is opened again to which this user had no access.
    ///
    /// A change of the permissions is told (`accessChanged`), so that nothing is gained by asking more often.
    static let longestAccessRetry = Duration.seconds(30)
    /// How long pictures must come until an earlier failure no longer counts.
    static let settling = Duration.seconds(5)
    /// How long another cause must last until it is reported too.
    static let persistence = Duration.seconds(3)

    /// Whether somebody calls `accessChanged`; otherwise only further attempts can find it out.
    var isAccessTold = true
    /// How long to wait for pictures; `nil` for ever.
    ///
    /// Zero turns slates and reopening off.
    let limit: Duration?
    /// When the present outage began; `nil` while pictures come.
    private(set) var began: MonotonicInstant?
    private var slateDue = MonotonicInstant(nanoseconds: 0)
    private var attemptDue = MonotonicInstant(nanoseconds: 0)
    private var failuresInARow = 0
    private var lastFailure = MonotonicInstant(nanoseconds: 0)
    private var recoveredAt: MonotonicInstant?
    /// The cause that was reported last.
    private var reported: CameraError.Code?
    /// Whether the limit does not count at present.
    private var isReprieved = false
    /// The present cause, and since when it has been the same.
    private var present: (code: CameraError.Code, since: MonotonicInstant)?

    init(limit: Duration?) {
        self.limit = limit
    }

    /// Whether a camera that fails is waited for.
    var isWaiting: Bool { limit != .zero }

    /// Whether the camera gives no pictures.
    var isOn: Bool { began != nil }

    /// Records that no pictures come, because of `code`; the next attempt to open the camera is scheduled.
    ///
    /// - Returns: Whether this must be reported.
    mutating func failed(_ code: CameraError.Code, at now: MonotonicInstant) -> Bool {
        if began == nil {
            began = now
            slateDue = now
            reported = nil
            present = nil
            isReprieved = false
            if let recoveredAt, now.duration(since: recoveredAt) >= Self.settling { failuresInARow = 0 }
        }
        schedule(code, at: now)
        if present?.code != code { present = (code, now) }
        guard let reported else {
            self.reported = code
            return true
        }
        // A camera that went away is not there: that is no news.
        let isNews = reported != code && code != .deviceLost && !Self.isAbsent(code)
        guard isNews, let present, now.duration(since: present.since) >= Self.persistence else { return false }
        self.reported = code
        return true
    }

    /// Whether the camera was there at the last attempt, and this user had no access to it.
    var lacksAccess: Bool { began != nil && present?.code == .permissionDenied }

    /// Records that the permissions of a node changed: the camera is tried at once, and soon again if that fails, but
    /// not more often than every 250 ms.
    mutating func accessChanged(at now: MonotonicInstant) {
        guard lacksAccess else { return }
        failuresInARow = 0
        attemptDue = min(attemptDue, max(now, lastFailure + Self.firstRetry))
    }

    private mutating func schedule(_ code: CameraError.Code, at now: MonotonicInstant) {
        lastFailure = now
        if Self.isAbsent(code) {
            failuresInARow = 0
            attemptDue = now + Self.lookInterval
        } else {
            attemptDue = now + min(Self.firstRetry * (1 << min(failuresInARow, 10)), longestRetry(after: code))
            failuresInARow += 1
        }
    }

    private func longestRetry(after code: CameraError.Code) -> Duration {
        switch code {
        case .permissionDenied where isAccessTold: Self.longestAccessRetry
        case .noSignal: Self.longestSignalRetry
        default: Self.longestRetry
        }
    }

    /// Whether the camera is not there: a loopback device without a writer captures nothing.
    private static func isAbsent(_ code: CameraError.Code) -> Bool { code == .noSuchDevice || code == .notACamera }

    /// Records a good picture.
    ///
    /// - Returns: Whether an outage ends with it.
    mutating func recovered(at now: MonotonicInstant) -> Bool {
        guard began != nil else { return false }
        began = nil
        recoveredAt = now
        return true
    }

    /// Whether a slate must be delivered now; the next one is then due an interval later.
    mutating func takeSlate(at now: MonotonicInstant) -> Bool {
        guard began != nil, now >= slateDue else { return false }
        let next = slateDue + Self.slateInterval
        slateDue = next > now ? next : now + Self.slateInterval
        return true
    }

    /// Lets the wait go on beyond its limit, for a camera that has just been opened and has given no picture yet.
    mutating func reprieve() { isReprieved = true }

    /// Lets the limit count again, from when the outage began.
    mutating func endReprieve() { isReprieved = false }

    /// Whether the camera must be opened now.
    func isAttemptDue(at now: MonotonicInstant) -> Bool { now >= attemptDue }

    /// Whether the wait for pictures is over.
    func isOver(at now: MonotonicInstant) -> Bool {
        guard !isReprieved, let began, let limit else { return false }
        return now.duration(since: began) >= limit
    }

    /// How much longer pictures are waited for: the whole limit before an outage, and `nil` if there is none.
    func timeLeft(at now: MonotonicInstant) -> Duration? {
        guard isWaiting, !isReprieved, let limit else { return nil }
        return began.map { limit - now.duration(since: $0) } ?? limit
    }

    /// When something is due while the camera is closed.
    var nextDeadline: MonotonicInstant { nextSlate.map { min($0, attemptDue) } ?? attemptDue }

    /// When a slate is due, or the wait is over; `nil` while pictures come.
    var nextSlate: MonotonicInstant? {
        guard isWaiting, let began else { return nil }
        guard !isReprieved, let limit else { return slateDue }
        return min(slateDue, began + limit)
    }
}
