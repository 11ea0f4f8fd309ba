import RoomKit
import UnixSignals

/// Why a command stops working.
enum Stop: Sendable {
    /// Ctrl-C or SIGTERM.
    case signal
    /// `--duration` is over.
    case duration
    /// The room's session ended, with an error unless we left.
    case session(RoomError?)
    /// The source came to its end, or failed.
    case source((any Error)?)
}

/// Waits for the first reason to stop.
struct RunLength: Sendable {
    private let stream: AsyncStream<Stop>
    private let continuation: AsyncStream<Stop>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(8))
    }

    /// Gives a reason to stop; the first one counts.
    func end(_ reason: Stop) {
        continuation.yield(reason)
    }

    /// Waits for a reason, among them a signal and the end of `duration`.
    func wait(for duration: Duration?) async -> Stop {
        let signals = Task {
            for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { end(.signal) }
        }
        let timer = Task {
            guard let duration else { return }
            try await Task.sleep(for: duration)
            end(.duration)
        }
        defer {
            signals.cancel()
            timer.cancel()
        }
        for await reason in stream { return reason }
        return .signal
    }
}
