import MediaCore
import Threading

/// The renderers of one track, each with a slot of its own; any thread may use it.
final class TrackRenderers: Sendable {
    private let slots = Monitor<[RendererSlot]>([])

    /// Creates an empty set.
    init() {}

    deinit {
        for slot in slots.withLock({ $0 }) { slot.close() }
    }

    /// Whether nobody wants pictures.
    var isEmpty: Bool { slots.withLock { $0.isEmpty } }

    /// Hands the picture to every renderer, and waits for none.
    func offer(_ frame: VideoFrame) {
        for slot in slots.withLock({ $0 }) { slot.put(frame) }
    }

    /// Adds a renderer; adding it twice does nothing.
    func add(_ renderer: any VideoRenderer, on executor: (any TaskExecutor)?) {
        slots.withLock { slots in
            guard !slots.contains(where: { $0.identity == ObjectIdentifier(renderer) }) else { return }
            slots.append(RendererSlot(renderer, on: executor))
        }
    }

    /// Removes a renderer; returns its counts, or `nil` if it was not there.
    func remove(_ renderer: any VideoRenderer) -> RendererStatistics? {
        let removed = slots.withLock { slots -> RendererSlot? in
            guard let index = slots.firstIndex(where: { $0.identity == ObjectIdentifier(renderer) }) else { return nil }
            return slots.remove(at: index)
        }
        return removed?.close()
    }

    /// The counts of a renderer; `nil` if it is not there.
    func statistics(of renderer: any VideoRenderer) -> RendererStatistics? {
        slots.withLock { slots in slots.first { $0.identity == ObjectIdentifier(renderer) } }?.statistics
    }
}
