import Foundation
import Logging
import MediaCore
import Threading

/// Writes a log's lines to standard error on a thread of its own.
///
/// The relay's thread logs, and a stalled reader, such as a pager or a full pipe, must never hold it up. Up to 1,024
/// lines wait to be written. Above that the newest lines are lost, and so are lines that a full disk does not take. The
/// next line that is written says how many.
final class BackgroundLog: Sendable {
    private static let depth = 1024

    private let lines = BoundedQueue<String>(depth: depth)
    private let lost = Monitor(0)
    private let isDone = Monitor(false)

    /// Starts the writing thread.
    ///
    /// - Parameter write: Writes a text on that thread, and tells whether all of it is written.
    /// - Throws: `ThreadShortage` if the system has no thread for it.
    init(
        write: @escaping @Sendable (String) -> Bool = { LogOutput.write($0, to: STDERR_FILENO) }
    ) throws(ThreadShortage) {
        let (lines, lost, isDone) = (lines, lost, isDone)
        // The thread is never joined, because it may block in a write for ever.
        _ = try WorkerThread(name: "log") {
            // A failed write may have left a part of a line behind.
            var isBroken = false
            while let line = lines.take() {
                let count = lost.change { count in
                    defer { count = 0 }
                    return count
                }
                let note = "(\(count) lines are missing here: they could not be written in time)\n"
                let isNoted = count == 0 || write((isBroken ? "\n" : "") + note)
                if !isNoted { lost.change { $0 += count } }
                isBroken = !isNoted || !write(line)
                if isBroken { lost.change { $0 += 1 } }
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
}

/// Writes to a descriptor that others may have made non-blocking.
enum LogOutput {
    /// Writes `text`, and waits for its reader as long as that takes.
    ///
    /// - Returns: Whether all of it is written; otherwise the disk is full, or the reader has gone.
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&request, 1, -1)
                continue
            }
            guard count > 0 else { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
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
