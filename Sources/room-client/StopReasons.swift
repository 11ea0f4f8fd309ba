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
    /// `publish` has returned, with the error if it failed.
    case published((any Error)?)
    /// All recordings have failed, so that there is nothing left to do.
    case recording
    /// The reader of our pictures has gone, or they cannot be written.
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

    /// Makes Ctrl-C and SIGTERM a reason to stop; before this call they end the program at once.
    ///
    /// A second signal ends the program at once, if the first has had time to work. Call this as soon as there is
    /// something to shut down cleanly.
    func heedSignals() async {
        // If the reader of our output goes away, sending and recording must continue.
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
        Terminal.endPreview()
        signal(number, SIG_DFL)
        var blocked = sigset_t()
        unsafe sigemptyset(&blocked)
        unsafe sigaddset(&blocked, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
        raise(number)
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
