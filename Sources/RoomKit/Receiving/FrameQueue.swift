import MediaCore
import RoomProtocol
import Threading

/// The queue of compressed frames between the connection and a decoder, or between a decoder and a file.
///
/// It is bounded in frames and in bytes, and by how long a frame may wait. From `Depths.dropTopLayer` waiting frames
/// on, the highest temporal layer is left out. From `dropMiddleLayer` on, only temporal layer 0 is taken. A track of
/// one layer has nothing to leave out, so its frames wait until a bound is reached. Then a decoder's queue skips to the
/// newest keyframe that waits; if there is none, all waiting frames are discarded and nothing is taken until a
/// keyframe. A file's queue keeps what waits instead, and takes nothing until a keyframe for which there is room.
/// Frames from the relay's cache arrive in a burst and have bounds of their own. Every frame that is taken can be
/// decoded.
final class FrameQueue: Sendable {
    /// The depths at which frames are left out.
    struct Depths: Sendable {
        var dropTopLayer = 4
        var dropMiddleLayer = 8
        /// Two seconds of one layer at 60 fps; a decoder works them off in less than one, because it shows only the
        /// newest.
        var skip = 120
        var skipSize = DataSize.mebibytes(4)
        /// A frame that has waited for so long shows that the decoder does not keep up; `nil` for no such limit.
        var longestWait: Duration? = .seconds(1)
        /// The relay keeps 3 s, 180 frames of one layer at 60 fps, or 200 frames of a picture that stands still, and live
        /// frames arrive while those are decoded.
        var catchUp = 240
        /// The relay keeps at most 6 MiB of a track.
        var catchUpSize = DataSize.mebibytes(8)
        /// What is left out when a bound is reached.
        var overflow = Overflow.oldest
    }

    /// What is left out when a bound is reached.
    enum Overflow: Sendable {
        /// What waits, because the live picture matters.
        case oldest
        /// What comes, because every frame matters as much.
        case newest
    }

    /// The result of putting a frame into the queue.
    enum Outcome: Sendable {
        case taken
        case dropped
        /// Dropped, like all further frames until a keyframe.
        ///
        /// It is returned only once for each gap, so that only one keyframe is requested.
        case needsKeyframe
    }

    /// The result of waiting for a frame.
    enum Taken: Sendable {
        case frame(ReceivedFrame)
        /// No frame came in time.
        case nothing
        /// No frame will come: the queue is closed and empty.
        case end
    }

    private struct State: Sendable {
        /// Frames from before the queue existed; they are taken first and do not count as depth.
        var earlier: ArraySlice<ReceivedFrame> = []
        var frames: [ReceivedFrame] = []
        /// The size of `frames`.
        var size = DataSize.zero
        var gate = TemporalLayerGate()
        var dropped = FrameDropCounts()
        /// What of it `takeDropped` has returned.
        var droppedBefore = FrameDropCounts()
        /// Why the gate waits for a keyframe, if it does.
        var gapReason = FrameDropReason.network
        /// Whether the queue has already returned that a keyframe is needed.
        var isNeedSaid = false
        /// When the last frame from the relay's cache was taken: until then the frames behind it had to wait.
        var caughtUp: MonotonicInstant?
        var isClosed = false
    }

    private let depths: Depths
    private let state: Monitor<State>

    init(_ depths: Depths = Depths()) {
        self.depths = depths
        var state = State()
        state.frames.reserveCapacity(max(depths.skip, depths.catchUp) + 1)
        self.state = Monitor(state)
    }

    /// The frames that were left out or could not be decoded, by reason.
    ///
    /// `late`: the reader of the queue was too slow. `network`: a frame that they refer to did not arrive. `corrupt`: a
    /// frame was damaged, or refers to one that was. `notWanted`: the queue was closed first.
    var dropped: FrameDropCounts { state.withLock { $0.dropped } }

    /// What was dropped since the last call; `nil` if nothing was.
    func takeDropped() -> FrameDropCounts? {
        state.withLock { state in
            guard state.dropped != state.droppedBefore else { return nil }
            defer { state.droppedBefore = state.dropped }
            return state.dropped.since(state.droppedBefore)
        }
    }

    /// When the newest waiting frame was captured; `nil` if none waits.
    var newestCapture: MonotonicInstant? { state.withLock { $0.frames.last?.frame.info.timestamp } }

    /// Adds a frame, if it fits and can be decoded.
    func put(_ frame: ReceivedFrame) -> Outcome {
        state.change { state in
            guard !state.isClosed else {
                state.dropped[.notWanted] += 1
                return .dropped
            }
            if isFull(state, for: frame) {
                guard depths.overflow == .oldest else { return refuse(&state) }
                skip(&state, for: frame)
            }
            let wasWaiting = state.gate.isWaitingForKeyframe
            let depth = state.frames.count
            guard state.gate.passes(frame.frame.info, limit: limit(forDepth: depth, frame)) else {
                state.dropped[wasWaiting ? state.gapReason : .late] += 1
                guard wasWaiting && !state.isNeedSaid && hasRoomForKeyframe(state) else { return .dropped }
                state.isNeedSaid = true
                return .needsKeyframe
            }
            state.isNeedSaid = false
            state.frames.append(frame)
            state.size += frame.frame.size
            return .taken
        }
    }

    /// Adds the frames from before the queue existed: a keyframe, and all frames that followed it.
    func begin(with earlier: [ReceivedFrame]) {
        state.change { state in
            state.earlier = earlier.filter { state.gate.passes($0.frame.info) }[...]
        }
    }

    /// Waits for the next frame and takes it; `nil` once the queue is closed and empty.
    func take() -> ReceivedFrame? {
        while true {
            switch take(by: nil) {
            case .frame(let frame): return frame
            case .nothing: continue
            case .end: return nil
            }
        }
    }

    /// Waits for the next frame until `deadline`, and takes it; `nil` stands for no deadline.
    func take(by deadline: MonotonicInstant?) -> Taken {
        state.wait(until: deadline) { state -> Taken? in
            if let first = state.earlier.popFirst() { return .frame(first) }
            guard let newest = state.frames.last else { return state.isClosed ? .end : nil }
            let first = state.frames.removeFirst()
            state.size -= first.frame.size
            // The arrival of the newest frame stands for the present; the queue reads no clock.
            if first.isCatchUp { state.caughtUp = newest.received }
            return .frame(first)
        } ?? .nothing
    }

    /// Discards the waiting frames up to a keyframe, because a frame that was taken could not be decoded.
    ///
    /// - Returns: Whether no keyframe waits, so that one must be requested; nothing is taken in until it arrives.
    func skipToKeyframe() -> Bool {
        state.withLock { state in
            state.dropped[.corrupt] += 1
            guard let keyframe = state.frames.firstIndex(where: { $0.frame.info.isKeyframe }) else {
                Self.giveUp(&state, .corrupt)
                defer { state.isNeedSaid = true }
                return true
            }
            Self.drop(keyframe, .corrupt, from: &state)
            return false
        }
    }

    /// Notes that a frame was lost to which later frames refer.
    ///
    /// The waiting frames can still be decoded. Further frames are not taken until a keyframe.
    func frameWasLost() {
        state.withLock { state in
            guard !state.gate.isWaitingForKeyframe else { return }
            state.gate.waitForKeyframe()
            state.gapReason = .network
            state.isNeedSaid = false
        }
    }

    /// Counts a frame as dropped that was taken but not decoded, or not even taken.
    func countDrop(_ reason: FrameDropReason = .corrupt) {
        state.withLock { $0.dropped[reason] += 1 }
    }

    /// Closes the queue to further frames; waiting frames can still be taken.
    func close() {
        state.change { $0.isClosed = true }
    }

    /// Whether a bound of the queue is reached, so that `frame` does not fit behind those that wait.
    private func isFull(_ state: State, for frame: ReceivedFrame) -> Bool {
        guard let first = state.frames.first else { return false }
        let size = state.size + frame.frame.size
        if frame.isCatchUp || first.isCatchUp {
            return state.frames.count >= depths.catchUp || size > depths.catchUpSize
        }
        if state.frames.count >= depths.skip || size > depths.skipSize { return true }
        guard let longestWait = depths.longestWait else { return false }
        let since = state.caughtUp.map { max($0, first.received) } ?? first.received
        return frame.received.duration(since: since) >= longestWait
    }

    /// Leaves out the frame that comes, and those behind it up to a keyframe.
    private func refuse(_ state: inout State) -> Outcome {
        if !state.gate.isWaitingForKeyframe { state.gapReason = .late }
        state.gate.waitForKeyframe()
        // A keyframe that was asked for may have come too early.
        state.isNeedSaid = false
        state.dropped[.late] += 1
        return .dropped
    }

    /// Whether a keyframe and what follows it would be taken, so that it is of use.
    private func hasRoomForKeyframe(_ state: State) -> Bool {
        depths.overflow == .oldest
            || state.frames.count <= depths.skip / 2 && state.size.bytes <= depths.skipSize.bytes / 2
    }

    /// Makes room for `frame`: keeps what waits from the newest keyframe on if that is enough, and otherwise nothing.
    private func skip(_ state: inout State, for frame: ReceivedFrame) {
        if !frame.frame.info.isKeyframe,
            let keyframe = state.frames.lastIndex(where: { $0.frame.info.isKeyframe }), keyframe > 0
        {
            Self.drop(keyframe, .late, from: &state)
            if !isFull(state, for: frame) { return }
        }
        Self.giveUp(&state, .late)
    }

    private static func giveUp(_ state: inout State, _ reason: FrameDropReason) {
        drop(state.frames.count, reason, from: &state)
        state.gate.waitForKeyframe()
        state.gapReason = reason
        state.isNeedSaid = false
    }

    /// Discards the first `count` waiting frames.
    private static func drop(_ count: Int, _ reason: FrameDropReason, from state: inout State) {
        for index in 0..<count { state.size -= state.frames[index].frame.size }
        state.dropped[reason] += count
        if count == state.frames.count {
            state.frames.removeAll(keepingCapacity: true)
        } else {
            state.frames.removeFirst(count)
        }
    }

    private func limit(forDepth depth: Int, _ frame: ReceivedFrame) -> Int {
        if frame.isCatchUp || depth < depths.dropTopLayer { return .max }
        return depth < depths.dropMiddleLayer ? 1 : 0
    }
}
