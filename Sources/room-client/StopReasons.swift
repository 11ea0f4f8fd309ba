import Foundation
import RoomKit
import Threading
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
struct StopReasons: Sendable {
    private let stream: AsyncStream<Stop>
    private let continuation: AsyncStream<Stop>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(8))
    }

    /// Gives a reason to stop; the first one counts.
    func end(_ reason: Stop) {
        continuation.yield(reason)
    }

    /// Makes Ctrl-C and SIGTERM a reason to stop; until then they end the program by themselves.
    ///
    /// A second signal, once the first has had time to work, ends the program at once. Call this when there is something
    /// to end in good order.
    func heedSignals() async {
        // A reader of our output that goes away is no reason to stop sending or recording.
        signal(SIGPIPE, SIG_IGN)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        Task {
            var first: MonotonicInstant?
            for await signal in signals {
                end(.signal)
                let now = MonotonicClock.now
                if let first, now.duration(since: first) >= Self.patience { Self.endProgram(by: signal.rawValue) }
                first = first ?? now
            }
        }
    }

    /// A signal that follows the first within this time counts as the same one.
    ///
    /// `timeout` sends its signal twice, and a script often passes a terminal's Ctrl-C on to its programs.
    private static let patience = Duration.milliseconds(500)

    /// Ends the program as the signal does by default.
    private static func endProgram(by number: Int32) {
        signal(number, SIG_DFL)
        var blocked = sigset_t()
        unsafe sigemptyset(&blocked)
        unsafe sigaddset(&blocked, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
        raise(number)
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
