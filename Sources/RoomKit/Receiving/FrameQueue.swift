import MediaCore
import RoomProtocol
import Threading

/// Compressed frames between the connection and a decoder, or between a decoder and a file.
///
/// Depth: beyond `Depths.dropTopLayer` frames the highest temporal layer is left out, beyond `dropMiddleLayer` only
/// temporal layer 0 is let in, and beyond `skip` all that wait are given up and nothing comes in until a keyframe.
/// Frames from the relay's cache come in a burst and are let in up to `catchUp`. What is let in can always be decoded.
final class FrameQueue: Sendable {
    /// The depths at which frames are left out.
    struct Depths: Sendable {
        var dropTopLayer = 4
        var dropMiddleLayer = 8
        var skip = 16
        /// The relay keeps 3 s: some 25 frames of layer 0 at 30 fps, twice that at 60.
        var catchUp = 64
    }

    /// What became of a frame.
    enum Outcome: Sendable {
        case taken
        case dropped
        /// Dropped, and everything until a keyframe will be; said once, so that one is asked for once.
        case needsKeyframe
    }

    private struct State: Sendable {
        /// What came before the queue did; taken first, and of no depth.
        var opening: ArraySlice<ReceivedFrame> = []
        var frames: [ReceivedFrame] = []
        var gate = TemporalLayerGate()
        var dropped = 0
        /// Whether whoever waits for a keyframe has been told that one is needed.
        var isNeedSaid = false
        var isClosed = false
    }

    private let depths: Depths
    private let state = Monitor(State())

    init(_ depths: Depths = Depths()) {
        self.depths = depths
    }

    /// Frames that were left out, or could not be decoded.
    var dropped: Int { state.withLock { $0.dropped } }

    /// Puts a frame in, if it fits and can be decoded.
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

    /// Puts in the frames with which everything begins: a keyframe, and all that followed it.
    func begin(with opening: [ReceivedFrame]) {
        state.change { state in
            state.opening = opening.filter { state.gate.passes($0.frame.info) }[...]
        }
    }

    /// Takes the next frame, waiting for one; `nil` once the queue is closed and empty.
    func take() -> ReceivedFrame? {
        state.wait { state -> ReceivedFrame?? in
            if let first = state.opening.popFirst() { return .some(first) }
            if !state.frames.isEmpty { return .some(state.frames.removeFirst()) }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    /// A frame that was taken could not be decoded: gives up what waits, up to a keyframe.
    ///
    /// - Returns: Whether there is none, so that one must be asked for; nothing is let in until it comes.
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

    /// A frame that others refer to went missing before the next one: what waits is good, and nothing until a keyframe.
    func frameWasLost() {
        state.withLock { state in
            guard !state.gate.isWaitingForKeyframe else { return }
            state.gate.waitForKeyframe()
            state.isNeedSaid = false
        }
    }

    /// Counts a frame that was taken and left out.
    func countDrop() {
        state.withLock { $0.dropped += 1 }
    }

    /// Lets nothing in any more; what waits is still to be taken.
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
