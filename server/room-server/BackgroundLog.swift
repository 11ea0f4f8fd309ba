import Foundation
import Logging
import MediaCore
import Threading

/// Writes a log's lines to standard error on a thread of its own.
///
/// The relay's thread logs, and a stalled reader, such as a pager or a full pipe, must never hold it up. Up to 1,024
/// lines wait to be written. Above that the newest lines are lost, and the next line that is written says how many.
final class BackgroundLog: Sendable {
    private static let depth = 1024

    private let lines = BoundedQueue<String>(depth: depth)
    private let lost = Monitor(0)
    private let isDone = Monitor(false)

    /// Starts the writing thread.
    ///
    /// - Throws: `ThreadShortage` if the system has no thread for it.
    init() throws(ThreadShortage) {
        let (lines, lost, isDone) = (lines, lost, isDone)
        // The thread is never joined, because it may block in a write for ever.
        _ = try WorkerThread(name: "log") {
            while let line = lines.take() {
                let count = lost.change { count in
                    defer { count = 0 }
                    return count
                }
                if count > 0 { Self.write("(\(count) lines are missing here: nobody read them in time)\n") }
                Self.write(line)
            }
            isDone.change { $0 = true }
        }
    }

    /// Adds a line; never waits.
    func add(_ line: String) {
        if !lines.put(line) { lost.change { $0 += 1 } }
    }

    /// Ends the log once its last lines are written, or after one second.
    func close() {
        lines.close()
        _ = isDone.wait(until: MonotonicClock.now + .seconds(1)) { $0 ? true : nil }
    }

    private static func write(_ text: String) {
        // If this fails, there is nowhere to report it.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}

/// Formats log events as `time level: message key=value …` for a `BackgroundLog`.
struct BackgroundLogHandler: LogHandler {
    let log: BackgroundLog
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(_ log: BackgroundLog) {
        self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        log.add("\(Date.now.formatted(.iso8601)) \(event.level): \(event.message)\(details)\n")
    }
}
