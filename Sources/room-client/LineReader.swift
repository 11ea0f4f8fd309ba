import ClientCommandLine
import Foundation
import Threading

/// Reads lines from a file descriptor on a thread of its own, because reading blocks.
///
/// Depth: 16 lines and one read of 4 KiB. Drop rule: none; nothing more is read until a line is taken.
final class LineReader: Sendable {
    private struct State: Sendable {
        /// Lines that were read and not taken yet.
        var waiting = 0
        var isStopped = false
    }

    private static let depth = 16

    /// The lines, which end with the input, or when reading is stopped.
    ///
    /// Call `lineTaken` after each.
    let lines: AsyncStream<LineSplitter.Line>
    private let state = Monitor(State())
    private let continuation: AsyncStream<LineSplitter.Line>.Continuation
    /// The end of a pair of sockets that wakes the thread when it is closed.
    private let waker: Int32

    /// Begins to read.
    ///
    /// - Throws: `unavailable` if the system has no thread or descriptor left.
    init(_ descriptor: Int32) throws(CommandFailure) {
        var ends: [Int32] = [-1, -1]
        // Unlike a pipe, it can be made close-on-exec in one call from Swift.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(.unavailable, "Standard input cannot be read: \(reason).")
        }
        let (sleeper, waker) = (ends[0], ends[1])
        let (lines, continuation) = AsyncStream.makeStream(of: LineSplitter.Line.self)
        do throws(ThreadShortage) {
            _ = try WorkerThread(name: "commands") { [state] in
                Self.read(descriptor, until: sleeper, state) { continuation.yield($0) }
                continuation.finish()
                close(sleeper)
            }
        } catch {
            close(sleeper)
            close(waker)
            throw CommandFailure(.unavailable, "Standard input cannot be read: \(error).")
        }
        self.waker = waker
        self.lines = lines
        self.continuation = continuation
    }

    deinit {
        stop()
    }

    /// Notes that a line of `lines` was taken, so that another may be read.
    func lineTaken() {
        state.change { $0.waiting -= 1 }
    }

    /// Ends `lines`; a second call does nothing.
    ///
    /// The thread ends by itself. Nobody waits for it: if another program reads from the same pipe and takes what there
    /// was, the thread stands in `read` until more comes, or the input's end.
    func stop() {
        let isFirst = state.change { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        guard isFirst else { return }
        close(waker)
        continuation.finish()
    }

    // MARK: The thread

    private static func read(
        _ descriptor: Int32,
        until sleeper: Int32,
        _ state: Monitor<State>,
        _ give: (LineSplitter.Line) -> Void
    ) {
        var splitter = LineSplitter()
        var chunk = [UInt8](repeating: 0, count: 4096)
        while waitForInput(descriptor, sleeper) {
            let count = unsafe chunk.withUnsafeMutableBytes { bytes in
                unsafe Foundation.read(descriptor, bytes.baseAddress, bytes.count)
            }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            let lines = count > 0 ? splitter.add(chunk.prefix(count)) : splitter.finish().map { [$0] } ?? []
            for line in lines {
                guard mayGive(state) else { return }
                give(line)
            }
            if count <= 0 { return }
        }
    }

    /// Waits until there is something to read, or the input's end; `false` if reading was stopped.
    private static func waitForInput(_ descriptor: Int32, _ sleeper: Int32) -> Bool {
        var requests = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: sleeper, events: 0, revents: 0),
        ]
        while unsafe poll(&requests, 2, -1) < 0 {
            guard errno == EINTR else { return false }
        }
        return requests[1].revents == 0
    }

    /// Waits until another line may wait; `false` if reading was stopped.
    private static func mayGive(_ state: Monitor<State>) -> Bool {
        state.wait { state -> Bool? in
            if state.isStopped { return false }
            guard state.waiting < depth else { return nil }
            state.waiting += 1
            return true
        } ?? false
    }
}
