import MediaCore
import Threading

/// Lets frames that an application makes on threads of its own into a source: one at a time, and never an older one.
///
/// Depth: none, it is a call. Drop rule: a frame that comes while another one is being taken, or that is older than the
/// one before, is dropped as `late`. A thread is never held up.
final class FrameEntrance: Sendable {
    private struct State: Sendable {
        var isClosed = false
        /// Whether a frame is being taken.
        var isBusy = false
        var lastTimestamp: MonotonicInstant?
    }

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
    /// A timestamp in the future is replaced by the present, and counted.
    func take(_ frame: VideoFrame) -> Bool {
        let now = MonotonicClock.now
        var frame = frame
        var captured = CaptureStatistics()
        if frame.timestamp > now {
            frame.timestamp = now
            captured.timestampsReplaced = 1
        }
        let timestamp = frame.timestamp
        let (isOpen, isInTime) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            guard !state.isBusy, timestamp >= state.lastTimestamp ?? timestamp else { return (true, false) }
            state.isBusy = true
            state.lastTimestamp = timestamp
            return (true, true)
        }
        guard isOpen else { return false }
        guard isInTime else {
            captured.framesCaptured = 1
            captured.framesDropped[.late] = 1
            sinks.count(captured)
            return false
        }
        defer { state.change { $0.isBusy = false } }
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
