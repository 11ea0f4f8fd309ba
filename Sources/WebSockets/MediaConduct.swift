import MediaCore

/// Decides whether a peer is read in the middle of a long turn of the loop: one that sends media as a publisher does.
///
/// Otherwise a peer that floods the loop with binary messages would come before all others. A pure value; the time is
/// passed in.
struct MediaConduct {
    /// The time for which a peer must have sent media, and for which one that sent too many messages must wait.
    let probation: Duration
    /// The time over which messages are counted.
    private static let window = Duration.milliseconds(100)
    /// The most binary messages in a window.
    ///
    /// It is more than twice the rate of a track of 50 Mbit/s in messages of 16,000 bytes, and the backlog of a video
    /// of 30 fps and 2.5 Mbit/s after a stall of 3 s.
    private static let mostMessages = 100

    private var windowStart: MonotonicInstant?
    private var count = 0
    /// When the peer may be read early.
    private var trusted: MonotonicInstant?

    /// Creates the conduct of a peer that has sent nothing yet.
    init(probation: Duration) {
        self.probation = probation
    }

    /// Counts a binary message; whether the peer may be read early from now on.
    mutating func messageArrived(at now: MonotonicInstant) -> Bool {
        let trusted = trusted ?? now + probation
        self.trusted = trusted
        let start = windowStart ?? now
        if windowStart == nil || now.duration(since: start) >= Self.window {
            windowStart = now
            count = 0
        }
        count += 1
        if count > Self.mostMessages { self.trusted = now + probation }
        return count <= Self.mostMessages && now >= trusted
    }
}
