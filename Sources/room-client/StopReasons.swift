import ClientCommandLine
import Foundation
import RoomKit

/// Why a command stops working.
enum Stop: Sendable {
    /// Ctrl-C, SIGTERM, SIGQUIT or SIGHUP.
    case signal
    /// `--duration` is over.
    case duration
    /// The room's session ended, with an error unless we left.
    case session(RoomError?)
    /// `publish` has returned, with the error if it failed.
    case published((any Error)?)
    /// All recordings have failed, so that there is nothing left to do.
    case recording
    /// The reader of our pictures, or of lines that are all we make, has gone, or pictures cannot be written.
    case output
    /// The source ended, with the error if it failed.
    case source((any Error)?)
}

/// Waits for the first reason to stop.
struct StopReasons: Sendable {
    private let stream: AsyncStream<Stop>
    private let continuation: AsyncStream<Stop>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(8))
    }

    /// Adds a reason to stop; each `wait` returns the oldest that has not been returned.
    func end(_ reason: Stop) {
        continuation.yield(reason)
    }

    /// Makes Ctrl-C, SIGTERM, SIGQUIT and SIGHUP a reason to stop; before this call they end the program at once.
    ///
    /// A second signal ends the program at once, if the first has had time to work. What `reporter` reports waits for
    /// its reader from then on without holding up anything, so that the program ends when it should although nobody
    /// reads its output.
    ///
    /// - Parameters:
    ///   - reporter: Reports the session.
    ///   - react: Called for each signal, after it has become a reason.
    func heedSignals(reportingTo reporter: Reporter, _ react: @escaping @Sendable () -> Void = {}) async {
        reporter.beginSession()
        // If the reader of our output goes away, sending and recording must continue.
        signal(SIGPIPE, SIG_IGN)
        // A file that may become no longer (ulimit -f) is an error, which the file tells.
        signal(SIGXFSZ, SIG_IGN)
        await EndingSignals.heed(
            {
                end(.signal)
                react()
            },
            givingUp: { Terminal.endPreview() }
        )
    }

    /// Joins a room, and makes Ctrl-C, SIGTERM, SIGQUIT and SIGHUP a reason to stop from the beginning of the attempt.
    ///
    /// - Parameters:
    ///   - options: The room.
    ///   - reporter: Reports the session.
    /// - Returns: The room; `nil` if a signal came before it was joined.
    /// - Throws: The error of `RoomClient.connect`.
    func join(_ options: ConnectOptions, reportingTo reporter: Reporter) async throws -> Room? {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        await heedSignals(reportingTo: reporter) { continuation.yield() }
        let attempt = Task { try await RoomClient.connect(options: options) }
        let canceller = Task { for await _ in signals { attempt.cancel() } }
        defer { canceller.cancel() }
        do {
            return try await attempt.value
        } catch is CancellationError {
            return nil
        }
    }

    /// Waits for a reason to stop; the end of `duration` is one.
    func wait(for duration: Duration?) async -> Stop {
        let timer = Task {
            guard let duration else { return }
            try await Task.sleep(for: duration)
            end(.duration)
        }
        defer { timer.cancel() }
        for await reason in stream { return reason }
        return .signal
    }
}
