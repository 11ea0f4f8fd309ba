import Capture
import MediaCore
import RoomProtocol
import Threading

/// Lets compressed frames into a source: checks them, copies them once and passes them on.
///
/// Depth: none, it is a call. Drop rule: after a frame that cannot be passed on, frames are dropped up to the next
/// keyframe. No track and no subscriber learns of them, so the entrance itself asks for that keyframe.
final class EncodedEntrance: Sendable {
    /// What happened to a frame.
    enum Fate: Hashable, Sendable {
        case delivered
        /// No track takes it.
        case notWanted
        /// It refers to a frame that was not passed on.
        case keyframeMissing
        /// Another frame is being taken.
        case busy
    }

    private struct State: Sendable {
        var isBusy = false
        /// Why frames are dropped up to the next keyframe; `nil` if the next frame may be any.
        var gap: FrameDropReason? = .corrupt
        var timeline = StampedTimeline()
        /// When the source was last asked for a keyframe.
        var lastRequest: MonotonicInstant?
    }

    private let sinks: VideoSinks
    private let requestKeyframe: (@Sendable () -> Void)?
    private let state = Monitor(State())
    private let pool = PacketBufferPool()

    /// Creates the entrance to a source's sinks.
    ///
    /// - Parameters:
    ///   - sinks: The sinks.
    ///   - requestKeyframe: Called by `take` when frames are dropped up to a keyframe, once a second at most; `nil` if
    ///     the source cannot be asked.
    init(to sinks: VideoSinks, requestKeyframe: (@Sendable () -> Void)? = nil) {
        self.sinks = sinks
        self.requestKeyframe = requestKeyframe
    }

    /// Expects a keyframe, as at the beginning of a file.
    func beginAnew() {
        state.withLock { $0.gap = .corrupt }
    }

    /// Passes a frame on to the sinks; never waits.
    ///
    /// A timestamp in the future, or before that of the last frame, is replaced (`StampedTimeline`).
    ///
    /// - Parameters:
    ///   - bytes: The compressed frame.
    ///   - timestamp: When the frame is to be shown.
    ///   - tags: The frame's orientation and metadata.
    ///   - name: What an error calls the frame.
    /// - Returns: What happened to the frame.
    /// - Throws: `notVP8`, `invisibleFrame`, `pictureTooLarge`, `frameTooLarge`. Frames up to the next keyframe are
    ///   then dropped.
    func take(
        _ bytes: RawSpan,
        at timestamp: MonotonicInstant,
        tags: EncodedFrame.Tags = EncodedFrame.Tags(),
        named name: @autoclosure () -> String
    ) throws(VP8SourceError) -> Fate {
        let inspection = Result { () throws(VP8SourceError) in
            try VP8SourceError.inspect(bytes, named: name())
        }
        let now = MonotonicClock.now
        var captured = CaptureStatistics()
        let (fate, time, gap) = state.withLock { state -> (Fate, MonotonicInstant, FrameDropReason) in
            let time = state.timeline.time(of: timestamp, at: now)
            guard !state.isBusy else {
                state.gap = .late
                return (.busy, time, .late)
            }
            guard case .success(let dimensions) = inspection else {
                state.gap = .corrupt
                return (.keyframeMissing, time, .corrupt)
            }
            if let gap = state.gap, dimensions == nil { return (.keyframeMissing, time, gap) }
            (state.gap, state.isBusy) = (nil, true)
            return (.delivered, time, .late)
        }
        if time != timestamp { captured.timestampsReplaced = 1 }
        captured.countCaptured(at: time)
        guard fate == .delivered else {
            captured.framesDropped[gap] = 1
            sinks.count(captured)
            if fate == .keyframeMissing { askForKeyframe(at: now) }
            _ = try inspection.get()
            return fate
        }
        defer { state.withLock { $0.isBusy = false } }
        var frame = copy(bytes, try inspection.get(), time)
        frame.tags = tags
        return sinks.deliver(frame, counting: captured) ? .delivered : .notWanted
    }

    private func askForKeyframe(at now: MonotonicInstant) {
        guard let requestKeyframe, !sinks.isEmpty else { return }
        let isDue = state.withLock { state in
            if let last = state.lastRequest, now < last + RelayBacklog.requestInterval { return false }
            state.lastRequest = now
            return true
        }
        if isDue { requestKeyframe() }
    }

    private func copy(_ bytes: RawSpan, _ dimensions: Dimensions?, _ timestamp: MonotonicInstant) -> EncodedFrame {
        let buffer = pool.take(count: bytes.byteCount)
        buffer.withMutableBytes { $0.copy(bytes, at: 0) }
        let info = EncodedFrameInfo(
            number: 0,
            timestamp: timestamp,
            isKeyframe: dimensions != nil,
            dimensions: dimensions ?? Dimensions(width: 0, height: 0)
        )
        return EncodedFrame(info: info, buffer: buffer, range: 0..<bytes.byteCount)
    }
}
