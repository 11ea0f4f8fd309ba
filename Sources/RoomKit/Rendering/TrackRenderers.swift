import Capture
import MediaCore
import Threading

/// The renderers of one track, each with a slot of its own; any thread may use it.
final class TrackRenderers: Sendable {
    private struct State: Sendable {
        var slots: [RendererSlot] = []
        /// Where loops over the track's frames wait.
        var readers: [NewestFrameSlot] = []
        /// Whether no further picture will come.
        var isFinished = false
        /// The last picture if it stands still (`VideoFrame.isRepeat`): there may be no further one.
        var still: VideoFrame?

        /// The picture that stands still, for somebody who has not seen it.
        var stillForNewcomer: VideoFrame? {
            var frame = still
            frame?.isRepeat = false
            return frame
        }
    }

    private let state = Monitor(State())

    /// Creates an empty set.
    init() {}

    deinit {
        let (slots, readers) = state.withLock { ($0.slots, $0.readers) }
        for slot in slots { slot.close() }
        for reader in readers { reader.finish() }
    }

    /// Whether nobody wants pictures.
    var isEmpty: Bool { state.withLock { $0.slots.isEmpty && $0.readers.isEmpty } }

    /// Hands the picture to every renderer, and waits for none.
    ///
    /// A picture that stands still is kept for renderers that are added later.
    func offer(_ frame: VideoFrame) {
        let (slots, readers, former) = replaceStill(by: frame.isRepeat ? frame : nil)
        for slot in slots { slot.put(frame) }
        for reader in readers { reader.onVideoFrame(frame) }
        withExtendedLifetime(former) {}
    }

    /// Notes that the picture that stood still is not the present one any more.
    func forgetStill() {
        let former = replaceStill(by: nil).former
        withExtendedLifetime(former) {}
    }

    /// Returns all that want pictures, and the former picture, which is to be released outside the lock.
    private func replaceStill(
        by still: VideoFrame?
    ) -> (slots: [RendererSlot], readers: [NewestFrameSlot], former: VideoFrame?) {
        state.withLock { state in
            defer { state.still = still }
            return (state.slots, state.readers, state.still)
        }
    }

    /// Adds a renderer, which begins with the picture that stands still, if there is one; adding it twice does nothing.
    func add(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)?) {
        state.withLock { state in
            guard !state.slots.contains(where: { $0.identity == ObjectIdentifier(renderer) }) else { return }
            let slot = RendererSlot(renderer, on: executor)
            state.slots.append(slot)
            if let still = state.stillForNewcomer { slot.put(still) }
        }
    }

    /// Adds the slot of a loop, which begins with the picture that stands still, if there is one.
    func add(_ reader: NewestFrameSlot) {
        let isFinished = state.withLock { state in
            guard !state.isFinished else { return true }
            state.readers.append(reader)
            if let still = state.stillForNewcomer { reader.onVideoFrame(still) }
            return false
        }
        if isFinished { reader.finish() }
    }

    /// Removes the slot of a loop.
    func remove(_ reader: NewestFrameSlot) {
        state.withLock { state in state.readers.removeAll { $0 === reader } }
        reader.finish()
    }

    /// Ends all loops after the picture that they have not read yet: no further one will come.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.finish() }
    }

    /// Removes a renderer; returns its counts, or `nil` if it was not there.
    func remove(_ renderer: any VideoRenderer) -> RendererStatistics? {
        let removed = state.withLock { state -> RendererSlot? in
            guard let index = state.slots.firstIndex(where: { $0.identity == ObjectIdentifier(renderer) }) else {
                return nil
            }
            return state.slots.remove(at: index)
        }
        return removed?.close()
    }

    /// The counts of a renderer; `nil` if it is not there.
    func statistics(of renderer: any VideoRenderer) -> RendererStatistics? {
        state.withLock { state in state.slots.first { $0.identity == ObjectIdentifier(renderer) } }?.statistics
    }
}
