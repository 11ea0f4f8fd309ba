import Adaptation
import Glibc
import MediaFiles
import Threading

/// Writes the inputs of an uplink to a file, as an `AdaptationLog`.
///
/// The uplink keeps its inputs in memory. A thread of its own takes and writes them ten times a second. If too many
/// gather because the disk is slow, the log ends there, without the line that ends a complete log: a log with a gap
/// would replay to other decisions.
final class UplinkRecorder: Sendable {
    private static let interval: Duration = .milliseconds(100)

    private let isClosed = Monitor(false)
    private let problem = Monitor<RoomError?>(nil)
    private let thread = Monitor<WorkerThread?>(nil)
    private let path: String
    private let ended = Promise<Void>()

    /// Creates the file, which must not exist, and begins to record `uplink`.
    ///
    /// - Throws: `logFailed` if the file cannot be made; `outOfResources` if there is no thread.
    init(path: String, of uplink: Uplink) throws(RoomError) {
        let file = try LogFile(creating: path)
        self.path = path
        // Before the connection opens, so that no input is missing.
        let settings = uplink.beginRecording()
        do throws(ThreadShortage) {
            let worker = try WorkerThread(name: "adapt-log") { [self] in
                run(file, uplink, settings)
                ended.fulfill(())
            }
            thread.withLock { $0 = worker }
        } catch {
            uplink.endRecording()
            throw RoomError(.outOfResources, "The adaptation log cannot be written: \(error).")
        }
    }

    /// Why the log is not complete, once it is closed; `nil` if it is.
    var failure: RoomError? { problem.withLock { $0 } }

    /// Writes the rest and ends the log; a second call only waits for that.
    func close() async {
        isClosed.change { $0 = true }
        _ = await ended.value()
        thread.withLock { $0 }?.join()
    }

    /// Ends the log of a session that never began, and removes it, so that the next attempt may use the name.
    func discard() async {
        await close()
        _ = unsafe unlink(path)
    }

    // MARK: On the thread

    private func run(_ file: LogFile, _ uplink: Uplink, _ settings: UplinkController.Settings) {
        var entries: [AdaptationLog.Entry] = []
        var written = 0
        do throws(RoomError) {
            try file.write(AdaptationLog.header(settings))
            var isOver = false
            while !isOver {
                isOver = isClosed.wait(until: MonotonicClock.now + Self.interval) { $0 ? true : nil } ?? false
                let isComplete = uplink.takeRecords(into: &entries)
                var text = ""
                for entry in entries { entry.write(to: &text) }
                try file.write(text)
                written += entries.count
                guard isComplete else {
                    let problem = "The adaptation log ends after \(written) inputs"
                    throw RoomError(.logFailed, "\(problem): the disk is too slow for it.")
                }
            }
            try file.write(AdaptationLog.end(count: written))
        } catch {
            problem.withLock { $0 = error }
            uplink.endRecording()
        }
    }
}

/// A text file that is written in whole pieces; closed with its owner.
private final class LogFile: Sendable {
    private let descriptor: Int32

    private let path: String

    init(creating path: String) throws(RoomError) {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        self.path = path
        guard descriptor >= 0 else { throw RoomError(logFailed: MediaFileError(.create, path, status: errno)) }
    }

    deinit {
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    func write(_ text: String) throws(RoomError) {
        var text = text
        let status = text.withUTF8 { utf8 -> Int32 in
            var rest = UnsafeRawBufferPointer(utf8)
            while unsafe !rest.isEmpty {
                let count = unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : ENOSPC }
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return 0
        }
        guard status == 0 else { throw RoomError(logFailed: MediaFileError(.write, path, status: status)) }
    }
}
