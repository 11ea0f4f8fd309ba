import Logging
import MediaCore
import RelayCore
import WebSockets

/// The log of what peers do, which they cannot fill a disk with.
///
/// Each kind of line has a budget of its own, so that a flood of one kind does not hide the others. Lines beyond it are
/// left out, and the next line of the kind that is written says how many.
struct PeerLog {
    private let logger: Logger
    /// For peers that have not joined: they need no token to cause a line.
    private var strangers = LogBudget()
    private var memory = LogBudget()
    private var sessions = Self.ampleBudget
    private var tracks = Self.ampleBudget
    private var connections = Self.ampleBudget

    /// Enough for a large room that gathers at once; at most 86,400 lines a day.
    private static var ampleBudget: LogBudget { LogBudget(burst: 500, interval: .seconds(1)) }

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs a decision of the relay.
    mutating func note(_ notice: RelayNotice, at now: MonotonicInstant) {
        let verdict =
            switch notice {
            case .failed(nil, _): strangers.line(at: now)
            case .memoryUsedUp: memory.line(at: now)
            case .joined, .left, .failed: sessions.line(at: now)
            case .published, .unpublished: tracks.line(at: now)
            }
        write("\(notice)", as: .info, within: verdict)
    }

    /// Logs that a peer has connected.
    mutating func connected(_ peer: String, at now: MonotonicInstant) {
        guard logger.logLevel <= .debug else { return }
        write("connected", ["peer": "\(peer)"], as: .debug, within: connections.line(at: now))
    }

    /// Logs that a peer's connection has ended.
    mutating func disconnected(_ peer: String, how: String, at now: MonotonicInstant) {
        guard logger.logLevel <= .debug else { return }
        let metadata: Logger.Metadata = ["peer": "\(peer)", "how": "\(how)"]
        write("disconnected", metadata, as: .debug, within: connections.line(at: now))
    }

    private func write(
        _ line: @autoclosure () -> String,
        _ metadata: Logger.Metadata = [:],
        as level: Logger.Level,
        within verdict: LogBudget.Verdict
    ) {
        guard case .write(let omitted) = verdict else { return }
        let note = omitted == 0 ? "" : " (\(omitted) lines of this kind before this one were left out)"
        logger.log(level: level, "\(line())\(note)", metadata: metadata)
    }
}
