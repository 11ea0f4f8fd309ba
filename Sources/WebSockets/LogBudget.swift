import MediaCore

/// Decides which lines of a log are written, so that nobody can fill a disk with them.
///
/// Anybody who can connect can have libwebsockets complain as often as they like.
struct LogBudget: Sendable {
    /// What becomes of a line.
    enum Verdict: Equatable, Sendable {
        /// It is written, after a word on the `omitted` lines before it, if there are any.
        case write(omitted: Int)
        case omit
    }

    /// Lines that are written at once after a quiet time: enough to see what goes on.
    private static let burst = 20
    /// Time after which one more line is written, in the long run: 8,640 a day.
    private static let interval = Duration.seconds(10)

    /// When the budget would be whole again, if nothing more came.
    private var whole: MonotonicInstant?
    private var omitted = 0

    /// A line has come.
    mutating func line(at now: MonotonicInstant) -> Verdict {
        let next = max(whole ?? now, now) + Self.interval
        guard next.duration(since: now) <= Self.interval * Self.burst else {
            omitted += 1
            return .omit
        }
        whole = next
        defer { omitted = 0 }
        return .write(omitted: omitted)
    }
}
