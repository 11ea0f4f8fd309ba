import Glibc

/// What the process does with signals.
package enum SignalDisposition {
    /// Whether the process ignores signal `number`, as `nohup` makes its programs ignore SIGHUP.
    package static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(number, nil, &action) == 0 else { return false }
        let handler = unsafe action.__sigaction_handler.sa_handler
        return unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
