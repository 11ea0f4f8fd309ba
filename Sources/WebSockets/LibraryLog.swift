import CWebSockets
import Threading

/// libwebsockets' log, of which there is one in a process.
enum LibraryLog {
    private static let sink = Monitor<(@Sendable (String) -> Void)?>(nil)

    /// Keeps the library off standard error, and forwards its errors and warnings to `log` if there is one.
    static func install(_ log: (@Sendable (String) -> Void)?) {
        if let log { sink.withLock { $0 = log } }
        unsafe lws_set_log_level(LLL_ERR | LLL_WARN) { _, line in
            guard let line = unsafe line else { return }
            LibraryLog.forward(unsafe String(cString: line))
        }
    }

    private static func forward(_ line: String) {
        let log = sink.withLock { $0 }
        guard let log else { return }
        log(line.last?.isNewline == true ? String(line.dropLast()) : line)
    }
}
