import MediaCore
import RoomProtocol
import Threading

/// The queue of compressed frames between the connection and a decoder, or between a decoder and a file.
///
/// From `Depths.dropTopLayer` waiting frames on, the highest temporal layer is left out. From `dropMiddleLayer` on,
/// only temporal layer 0 is taken. At `skip`, all waiting frames are discarded and nothing is taken until a keyframe.
/// Frames from the relay's cache arrive in a burst and are taken up to `catchUp`. Every frame that is taken can be
/// decoded.
final class FrameQueue: Sendable {
    /// The depths at which frames are left out.
    struct Depths: Sendable {
        var dropTopLayer = 4
        var dropMiddleLayer = 8
        var skip = 16
        /// The relay keeps 3 s: some 25 frames of layer 0 at 30 fps, twice that at 60.
        var catchUp = 64
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

    private struct State: Sendable {
        /// Frames from before the queue existed; they are taken first and do not count as depth.
        var opening: ArraySlice<ReceivedFrame> = []
        var frames: [ReceivedFrame] = []
        var gate = TemporalLayerGate()
        var dropped = 0
        /// Whether the queue has already returned that a keyframe is needed.
        var isNeedSaid = false
        var isClosed = false
    }

    private let depths: Depths
    private let state = Monitor(State())

    init(_ depths: Depths = Depths()) {
        self.depths = depths
    }

    /// The number of frames that were left out or could not be decoded.
    var dropped: Int { state.withLock { $0.dropped } }

    /// Adds a frame, if it fits and can be decoded.
    func put(_ frame: ReceivedFrame) -> Outcome {
        state.change { state in
            guard !state.isClosed else {
                state.dropped += 1
                return .dropped
            }
            let depth = state.frames.count
            let isCatchingUp = frame.isCatchUp || state.frames.first?.isCatchUp == true
            if depth >= (isCatchingUp ? depths.catchUp : depths.skip) { Self.giveUp(&state) }
            let wasWaiting = state.gate.isWaitingForKeyframe
            guard state.gate.passes(frame.frame.info, limit: limit(forDepth: depth, frame)) else {
                state.dropped += 1
                guard wasWaiting && !state.isNeedSaid else { return .dropped }
                state.isNeedSaid = true
                return .needsKeyframe
            }
            state.isNeedSaid = false
            state.frames.append(frame)
            return .taken
        }
    }

    /// Adds the frames from before the queue existed: a keyframe, and all frames that followed it.
    func begin(with opening: [ReceivedFrame]) {
        state.change { state in
            state.opening = opening.filter { state.gate.passes($0.frame.info) }[...]
        }
    }

    /// Waits for the next frame and takes it; `nil` once the queue is closed and empty.
    func take() -> ReceivedFrame? {
        state.wait { state -> ReceivedFrame?? in
            if let first = state.opening.popFirst() { return .some(first) }
            if !state.frames.isEmpty { return .some(state.frames.removeFirst()) }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    /// Discards the waiting frames up to a keyframe, because a frame that was taken could not be decoded.
    ///
    /// - Returns: Whether no keyframe waits, so that one must be requested; nothing is taken in until it arrives.
    func skipToKeyframe() -> Bool {
        state.withLock { state in
            state.dropped += 1
            guard let keyframe = state.frames.firstIndex(where: { $0.frame.info.isKeyframe }) else {
                Self.giveUp(&state)
                defer { state.isNeedSaid = true }
                return true
            }
            state.dropped += keyframe
            state.frames.removeFirst(keyframe)
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
            state.isNeedSaid = false
        }
    }

    /// Counts a frame as dropped that was taken but not decoded.
    func countDrop() {
        state.withLock { $0.dropped += 1 }
    }

    /// Closes the queue to further frames; waiting frames can still be taken.
    func close() {
        state.change { $0.isClosed = true }
    }

    private static func giveUp(_ state: inout State) {
        state.dropped += state.frames.count
        state.frames.removeAll(keepingCapacity: true)
        state.gate.waitForKeyframe()
        state.isNeedSaid = false
    }

    private func limit(forDepth depth: Int, _ frame: ReceivedFrame) -> Int {
        if frame.isCatchUp || depth < depths.dropTopLayer { return .max }
        return depth < depths.dropMiddleLayer ? 1 : 0
    }
}
