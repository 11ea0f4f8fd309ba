import Glibc
import MediaCore
package import Threading

/// Writes lines to a descriptor on a thread of its own, so that a reader that does not read holds up nobody.
///
/// Depth: 1,024 lines. Drop rule: the newest lines are lost, and so are lines that a full disk does not take. A note in
/// their place says how many.
package final class LineWriter: Sendable {
    private struct Line: Sendable {
        var text: String
        /// Lines that were lost before this one, because too many waited.
        var lostBefore: Int
    }

    private struct State: Sendable {
        var lines: [Line] = []
        /// The line that the thread writes.
        var current: Line?
        /// Lines that were lost since the last one of `lines`.
        var lost = 0
        /// Lines that could not be written, and of which no note says so yet.
        var unwritten = 0
        /// Lines that the thread has written, or could not write.
        var handled = 0
        var isClosed = false

        var isIdle: Bool { lines.isEmpty && current == nil }

        /// Lines that are not written, and of which no note says so.
        var missing: Int {
            (lines + (current.map { [$0] } ?? [])).reduce(lost + unwritten) { $0 + 1 + $1.lostBefore }
        }
    }

    private static let depth = 1024

    private let state = Monitor(State())

    /// Starts the writing thread.
    ///
    /// - Parameters:
    ///   - name: The thread's name, of at most 15 bytes.
    ///   - note: The line that stands for a number of lost lines.
    ///   - write: Writes a text on that thread, and tells whether all of it is written.
    /// - Throws: `ThreadShortage` if the system has no thread for it.
    package init(
        name: String,
        note: @escaping @Sendable (Int) -> String,
        write: @escaping @Sendable (String) -> Bool
    ) throws(ThreadShortage) {
        let state = state
        // The thread is never joined, because it may block in a write for ever.
        _ = try WorkerThread(name: name) {
            // A failed write may have left a part of a line behind.
            var isBroken = false
            while let (line, unwritten) = Self.next(in: state) {
                let lost = unwritten + line.lostBefore
                let isNoted = lost == 0 || write((isBroken ? "\n" : "") + note(lost))
                isBroken = !isNoted || !write(line.text)
                state.change { state in
                    state.unwritten = (isNoted ? 0 : lost) + (isBroken ? 1 : 0)
                    state.handled += 1
                    state.current = nil
                }
            }
        }
    }

    /// Waits for the next line; `nil` once the writer is closed and all its lines are written.
    private static func next(in state: Monitor<State>) -> (line: Line, unwritten: Int)? {
        state.wait { state -> (line: Line, unwritten: Int)?? in
            guard !state.lines.isEmpty else { return state.isClosed ? .some(nil) : nil }
            let line = state.lines.removeFirst()
            state.current = line
            return (line, state.unwritten)
        } ?? nil
    }

    /// Adds a line, which ends with a line break; never waits.
    package func add(_ line: String) {
        state.change { state in
            guard !state.isClosed, state.lines.count < Self.depth else {
                state.lost += 1
                return
            }
            state.lines.append(Line(text: line, lostBefore: state.lost))
            state.lost = 0
        }
    }

    /// Waits until the lines are written, or until none was for the time of `patience`.
    ///
    /// - Returns: How many lines are not written, and not counted by a note: those that still wait, and lost ones.
    package func flush(patience: Duration) -> Int {
        while true {
            let before = state.withLock { $0.handled }
            let isIdle = state.wait(until: MonotonicClock.now + patience) { state -> Bool? in
                state.isIdle || state.handled > before ? state.isIdle : nil
            }
            guard isIdle == false else { break }
        }
        return state.withLock { $0.missing }
    }

    /// Ends the writer once its last lines are written, or after one second.
    package func close() {
        state.change { $0.isClosed = true }
        _ = state.wait(until: MonotonicClock.now + .seconds(1)) { $0.isIdle ? true : nil }
    }
}

/// Writes to a descriptor that others may have made non-blocking.
package enum DescriptorOutput {
    /// Writes `text`, and waits for its reader as long as that takes.
    ///
    /// - Returns: The `errno` if not all of it is written, such as `ENOSPC` on a full disk and `EPIPE` if the reader has
    ///   gone; `nil` if it is.
    package static func write(_ text: String, to descriptor: Int32) -> Int32? {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&request, 1, -1)
                continue
            }
            guard count > 0 else { return count < 0 ? errno : EIO }
            bytes = bytes.dropFirst(count)
        }
        return nil
    }

    /// Whether two descriptors lead to the same file, pipe or terminal.
    package static func isSame(_ first: Int32, _ second: Int32) -> Bool {
        var (one, other) = (stat(), stat())
        guard unsafe fstat(first, &one) == 0, unsafe fstat(second, &other) == 0 else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }
}
