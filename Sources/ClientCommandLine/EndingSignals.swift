import Glibc
import MediaCore
import Threading
import UnixSignals

/// Ctrl-C, Ctrl-\, SIGTERM and the end of the terminal (SIGHUP) as a wish to end in good order.
package enum EndingSignals {
    /// A signal that follows the first within this time counts as the same one.
    ///
    /// `timeout` sends its signal twice, and a script often passes a terminal's Ctrl-C on to its programs.
    private static let patience = Duration.milliseconds(500)

    /// Calls `end` for each signal from now on, instead of ending the program at once.
    ///
    /// A second signal ends the program as it does by default, if the first has had time to work.
    ///
    /// - Parameters:
    ///   - end: Begins to end the program, on a task of its own.
    ///   - giveUp: Called before a second signal ends the program, on the same task.
    package static func heed(
        _ end: @escaping @Sendable () -> Void,
        givingUp giveUp: @escaping @Sendable () -> Void = {}
    ) async {
        var trapped: [UnixSignal] = [.sigint, .sigterm, .sigquit]
        // Under nohup the program outlives its terminal.
        if !SignalDisposition.isIgnored(SIGHUP) { trapped.append(.sighup) }
        let signals = await UnixSignalsSequence(trapping: trapped)
        Task {
            var first: MonotonicInstant?
            for await signal in signals {
                end()
                let now = MonotonicClock.now
                if let first, now.duration(since: first) >= patience {
                    giveUp()
                    endProgram(by: signal.rawValue)
                }
                first = first ?? now
            }
        }
    }

    /// Ends the program as the signal does by default.
    private static func endProgram(by number: Int32) {
        signal(number, SIG_DFL)
        var blocked = sigset_t()
        unsafe sigemptyset(&blocked)
        unsafe sigaddset(&blocked, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
        raise(number)
    }
}
