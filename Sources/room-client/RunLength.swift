import Foundation
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
    /// The publishing is done, or failed.
    case published((any Error)?)
    /// All recordings have failed, so that there is nothing left to do.
    case recording
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

    /// From here on Ctrl-C and SIGTERM are a reason to stop and no longer end the program by themselves.
    ///
    /// To be called once there is something to end in good order.
    func heedSignals() async {
        // A reader of our output that goes away is no reason to stop sending or recording.
        signal(SIGPIPE, SIG_IGN)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        Task {
            for await _ in signals { end(.signal) }
        }
    }

    /// Waits for a reason, among them the end of `duration`.
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
