import MediaCore
import Threading

/// The renderers of one track, each with a slot of its own; any thread may use it.
final class TrackRenderers: Sendable {
    private struct State: Sendable {
        var slots: [RendererSlot] = []
        /// The last picture if it stands still (`VideoFrame.isRepeat`): there may be no further one.
        var still: VideoFrame?
    }

    private let state = Monitor(State())

    /// Creates an empty set.
    init() {}

    deinit {
        for slot in state.withLock({ $0.slots }) { slot.close() }
    }

    /// Whether nobody wants pictures.
    var isEmpty: Bool { state.withLock { $0.slots.isEmpty } }

    /// Hands the picture to every renderer, and waits for none.
    ///
    /// A picture that stands still is kept for renderers that are added later.
    func offer(_ frame: VideoFrame) {
        let (slots, former) = replaceStill(by: frame.isRepeat ? frame : nil)
        for slot in slots { slot.put(frame) }
        withExtendedLifetime(former) {}
    }

    /// Notes that the picture that stood still is not the present one any more.
    func forgetStill() {
        let (_, former) = replaceStill(by: nil)
        withExtendedLifetime(former) {}
    }

    /// Returns the slots, and the former picture, which is to be released outside the lock.
    private func replaceStill(by still: VideoFrame?) -> (slots: [RendererSlot], former: VideoFrame?) {
        state.withLock { state in
            defer { state.still = still }
            return (state.slots, state.still)
        }
    }

    /// Adds a renderer, which begins with the picture that stands still, if there is one; adding it twice does nothing.
    func add(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)?) {
        state.withLock { state in
            guard !state.slots.contains(where: { $0.identity == ObjectIdentifier(renderer) }) else { return }
            let slot = RendererSlot(renderer, on: executor)
            state.slots.append(slot)
            if let still = state.still { slot.put(still) }
        }
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
