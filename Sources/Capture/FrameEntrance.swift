package import MediaCore
import Threading

extension MonotonicInstant {
    /// How long ago a frame that is passed on now can have been captured.
    ///
    /// Nobody would want to see an older one live. Such a timestamp is that of another clock, or counts from the
    /// beginning of a clip. Viewers would take it for the frame's age.
    package static let longestCaptureDelay = Duration.seconds(10)

    /// Whether a frame that is passed on at `now` can have been captured at this time.
    package func canBeCaptureTime(at now: MonotonicInstant) -> Bool {
        self <= now && self >= now - Self.longestCaptureDelay
    }

    /// Changes to `now`, and counts that, if a frame that is passed on at `now` cannot have been captured at this time.
    mutating func becomeCaptureTime(at now: MonotonicInstant, counting captured: inout CaptureStatistics) {
        guard !canBeCaptureTime(at: now) else { return }
        self = now
        captured.timestampsReplaced = 1
    }
}

/// Lets frames that an application makes on threads of its own into a source: one at a time, and never an older one.
///
/// Depth: none, it is a call. Drop rule: a frame that comes while another one is being taken, or that is older than the
/// one before, is dropped as `late`. A thread is never held up. Timestamps that have jumped back, as those of a clip that
/// begins again, are replaced by the present from the second frame on, because the picture would stand still until they
/// have caught up.
final class FrameEntrance: Sendable {
    private struct State: Sendable {
        var isClosed = false
        /// Whether a frame is being taken.
        var isBusy = false
        var lastTimestamp: MonotonicInstant?
        /// Whether the last frame was older than that by more than threads can make it.
        var isFarBehind = false

        /// Takes note of a timestamp; returns the one to use, or `nil` for a frame that is late.
        mutating func admit(_ timestamp: MonotonicInstant, at now: MonotonicInstant) -> MonotonicInstant? {
            guard let last = lastTimestamp, timestamp < last else {
                (lastTimestamp, isFarBehind) = (timestamp, false)
                return timestamp
            }
            let hasJumped = isFarBehind
            isFarBehind = last.duration(since: timestamp) > FrameEntrance.longestDisorder
            guard hasJumped, isFarBehind else { return nil }
            lastTimestamp = now
            return now
        }
    }

    /// How much older than another thread's frame one may be that was made for the same timeline.
    private static let longestDisorder = Duration.seconds(1)

    private let sinks: VideoSinks
    private let measuresDelay: Bool
    private let state = Monitor(State())

    /// Creates the entrance to a source's sinks; `measuresDelay` says that the frames' timestamps are those of a
    /// device.
    init(to sinks: VideoSinks, measuresDelay: Bool) {
        self.sinks = sinks
        self.measuresDelay = measuresDelay
    }

    /// Passes a frame on to the sinks that want it; returns `false` if it was dropped.
    ///
    /// A timestamp in the future, or of long ago, is replaced by the present, and counted.
    func take(_ frame: VideoFrame) -> Bool {
        let now = MonotonicClock.now
        var frame = frame
        var captured = CaptureStatistics()
        frame.timestamp.becomeCaptureTime(at: now, counting: &captured)
        let given = frame.timestamp
        let (isOpen, admitted) = state.withLock { state -> (Bool, MonotonicInstant?) in
            guard !state.isClosed else { return (false, nil) }
            guard !state.isBusy, let timestamp = state.admit(given, at: now) else { return (true, nil) }
            state.isBusy = true
            return (true, timestamp)
        }
        guard isOpen else { return false }
        guard let timestamp = admitted else {
            captured.framesCaptured = 1
            captured.framesDropped[.late] = 1
            sinks.count(captured)
            return false
        }
        defer { state.change { $0.isBusy = false } }
        if timestamp != given {
            frame.timestamp = timestamp
            captured.timestampsReplaced = 1
        }
        captured.countCaptured(at: timestamp, takenAt: measuresDelay && captured.timestampsReplaced == 0 ? now : nil)
        guard sinks.admit(captured, newestAt: timestamp) else { return false }
        sinks.handOver(frame)
        return true
    }

    /// Takes no more frames, and waits for the one that is being taken.
    func close() {
        state.change { $0.isClosed = true }
        state.wait { $0.isBusy ? nil : () }
    }
}
