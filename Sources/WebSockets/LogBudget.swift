import MediaCore

/// Decides which lines of a log are written, so that nobody can fill a disk with them.
///
/// Anybody who can connect can make libwebsockets write complaints without limit.
struct LogBudget: Sendable {
    /// The decision about a line.
    enum Verdict: Equatable, Sendable {
        /// Write it, after a note about the `omitted` lines before it, if there are any.
        case write(omitted: Int)
        case omit
    }

    /// The lines written at once after a quiet time: enough to see what is going on.
    private static let burst = 20
    /// The interval between lines in the long run: 8,640 a day.
    private static let interval = Duration.seconds(10)

    /// When the budget will be full again if no more lines come.
    private var whole: MonotonicInstant?
    private var omitted = 0

    /// Decides about the next line.
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
