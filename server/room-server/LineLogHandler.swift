import Foundation
import Glibc
import Logging
import ProgramSupport
import Threading

/// The writer of the server's log to standard error.
///
/// The relay's thread logs, and a stalled reader, such as a pager or a full pipe, must never hold it up.
///
/// - Throws: `ThreadShortage` if the system has no thread for it.
func makeLogWriter() throws(ThreadShortage) -> LineWriter {
    try LineWriter(name: "log") {
        "(\($0) lines are missing here: they could not be written in time)\n"
    } write: {
        DescriptorOutput.write($0, to: STDERR_FILENO) == nil
    }
}

/// Formats log events as `time level: message key=value …`.
struct LineLogHandler: LogHandler {
    let writer: LineWriter
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(_ writer: LineWriter) {
        self.writer = writer
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        writer.add("\(Date.now.formatted(.iso8601)) \(event.level): \(event.message)\(details)\n")
    }
}
