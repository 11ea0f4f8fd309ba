import MediaCore
import Threading

/// Holds the compressed frames of a source until the track's thread passes them on.
///
/// Depth and drop rule are those of `RelayBacklog`. The thread that puts never waits. Frames may come before anybody
/// receives the track, and before the server has accepted it.
final class RelaySlot: Sendable {
    private struct State: Sendable {
        var backlog = RelayBacklog()
        /// Whether something has changed since the last look.
        var isNudged = false
        var isClosed = false
    }

    private let monitor = Monitor(State())
    private let tally: PictureTally

    /// Creates an empty slot; `tally` counts the frames as encoded or dropped.
    init(tally: PictureTally) {
        self.tally = tally
    }

    private func drop(_ ticket: UInt64, _ reason: FrameDropReason) {
        tally.dropped(FrameSlot.Loss(ticket: ticket, reason: reason))
    }

    // MARK: From any thread

    /// Puts in the source's next frame.
    func put(_ frame: EncodedFrame, at now: MonotonicInstant) {
        monitor.change { state in
            guard !state.isClosed else { return tally.capturedAndDropped(.late) }
            let ticket = tally.captured(for: 1)
            state.backlog.append(frame, ticket: ticket, at: now, drop: drop)
            state.isNudged = true
        }
    }

    /// Sets whether somebody receives the track.
    func setActive(_ isActive: Bool, at now: MonotonicInstant) {
        monitor.change { state in
            state.backlog.setActive(isActive, at: now, drop: drop)
            state.isNudged = true
        }
    }

    /// Notes that a subscriber needs a keyframe.
    func requestKeyframe() {
        monitor.change { state in
            state.backlog.requestKeyframe()
            state.isNudged = true
        }
    }

    /// Makes the thread look again.
    func nudge() {
        monitor.change { $0.isNudged = true }
    }

    /// Takes no more frames; those that wait are still sent, unless they wait too long.
    func close() {
        monitor.change { $0.isClosed = true }
    }

    /// Takes no more frames, and drops those that wait.
    func discard() {
        monitor.change { state in
            state.isClosed = true
            state.backlog.giveUpAll(.late, drop: drop)
        }
    }

    // MARK: On the track's thread

    /// Waits for a change, or until `time`; returns `false` once the slot is closed and empty.
    func look(by time: MonotonicInstant?) -> Bool {
        let isOpen = monitor.wait(until: time) { state -> Bool? in
            if state.isClosed, !state.backlog.isActive { state.backlog.giveUpAll(.notWanted, drop: drop) }
            if state.isClosed, state.backlog.entries.isEmpty { return false }
            guard state.isNudged else { return nil }
            state.isNudged = false
            return true
        }
        return isOpen ?? true
    }

    /// The oldest frame, if somebody receives the track.
    func first(at now: MonotonicInstant) -> RelayBacklog.Entry? {
        monitor.withLock { state in
            state.backlog.expire(at: now, drop: drop)
            return state.backlog.isActive ? state.backlog.entries.first : nil
        }
    }

    /// Takes the oldest frame out, unless it is no longer the one with this number.
    func take(_ number: UInt32) -> RelayBacklog.Entry? {
        monitor.withLock { state in
            guard state.backlog.entries.first?.number == number else { return nil }
            return state.backlog.removeFirst()
        }
    }

    /// Frames were given up after they were taken.
    func breakOff(_ reason: FrameDropReason) {
        monitor.withLock { $0.backlog.breakOff(reason, drop: drop) }
    }

    /// Gives up all frames that wait.
    func giveUpAll(_ reason: FrameDropReason) {
        monitor.withLock { $0.backlog.giveUpAll(reason, drop: drop) }
    }

    /// Whether the source is to be asked for a keyframe now.
    func takeRequest(at now: MonotonicInstant) -> Bool {
        monitor.withLock { $0.backlog.takeRequest(at: now) }
    }

    /// When to look again although nothing has changed.
    var nextDeadline: MonotonicInstant? { monitor.withLock { $0.backlog.nextDeadline } }

    /// The highest rate of the source lately.
    var sourceRate: Bitrate? { monitor.withLock { $0.backlog.sourceRate.highest } }
}
