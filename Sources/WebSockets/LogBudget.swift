package import MediaCore

/// Decides which lines of a log are written, so that nobody can fill a disk with them.
///
/// Anybody who can connect can make libwebsockets and a relay write lines without limit.
package struct LogBudget: Sendable {
    /// The decision about a line.
    package enum Verdict: Equatable, Sendable {
        /// Write it, after a note about the `omitted` lines before it, if there are any.
        case write(omitted: Int)
        case omit
    }

    private let burst: Int
    private let interval: Duration
    /// When the budget will be full again if no more lines come.
    private var whole: MonotonicInstant?
    private var omitted = 0

    /// Creates a budget.
    ///
    /// - Parameters:
    ///   - burst: The lines written at once after a quiet time; by default enough to see what is going on.
    ///   - interval: The interval between lines in the long run; by default 10 s, which makes 8,640 lines a day.
    package init(burst: Int = 20, interval: Duration = .seconds(10)) {
        self.burst = burst
        self.interval = interval
    }

    /// Decides about the next line.
    package mutating func line(at now: MonotonicInstant) -> Verdict {
        let next = max(whole ?? now, now) + interval
        guard next.duration(since: now) <= interval * burst else {
            omitted += 1
            return .omit
        }
        whole = next
        defer { omitted = 0 }
        return .write(omitted: omitted)
    }
}
