import CWebSockets
import Threading

/// libwebsockets' log, which is one for the whole process.
enum LibraryLog {
    private struct State: Sendable {
        var log: (@Sendable (String) -> Void)?
        var budget = LogBudget()
        /// A budget of its own: a flood of refusals must not hide the library's errors.
        var refusals = LogBudget()
    }

    private static let state = Monitor(State())

    /// Keeps the library off standard error, and forwards its errors and warnings to `log` if there is one.
    ///
    /// It forwards one line in 10 s in the long run, and at most 20 at once, because strangers cause most lines.
    static func install(_ log: (@Sendable (String) -> Void)?) {
        if let log { state.withLock { $0.log = log } }
        unsafe lws_set_log_level(LLL_ERR | LLL_WARN) { _, line in
            guard let line = unsafe line else { return }
            LibraryLog.forward(unsafe String(cString: line))
        }
    }

    /// Logs that a peer was refused, within the same limits as the library's lines.
    ///
    /// - Parameter line: One printable line of bounded length.
    static func noteRefusal(_ line: String) {
        let (log, verdict) = state.withLock { ($0.log, $0.refusals.line(at: MonotonicClock.now)) }
        write(line, to: log, verdict)
    }

    private static func forward(_ line: String) {
        let (log, verdict) = state.withLock { ($0.log, $0.budget.line(at: MonotonicClock.now)) }
        write(line, to: log, verdict)
    }

    private static func write(_ line: String, to log: (@Sendable (String) -> Void)?, _ verdict: LogBudget.Verdict) {
        guard let log, case .write(let omitted) = verdict else { return }
        let text = line.last?.isNewline == true ? String(line.dropLast()) : line
        log(omitted == 0 ? text : "\(text) (\(omitted) lines before this one were left out)")
    }
}
