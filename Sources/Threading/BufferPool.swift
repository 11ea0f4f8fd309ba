public import MediaCore

/// Hands out objects that nobody else holds; an object is free again as soon as the pool holds its only reference.
///
/// Once the pool has made as many objects as are ever in use at a time, taking one allocates nothing.
package final class ReusePool<Element: ReusableBuffer>: Sendable {
    private struct State: Sendable {
        var elements: [Element] = []
        /// The index to look at next.
        ///
        /// Objects mostly become free in the order they were taken, so the next one in the circle is the likeliest to
        /// be free.
        var next = 0
    }

    private let state: Monitor<State>
    private let limit: Int

    /// Creates an empty pool that keeps at most `limit` objects; further objects are made and not kept.
    package init(limit: Int) {
        self.limit = limit
        self.state = Monitor(State())
    }

    /// Returns an object that fits and that nobody else holds; makes one if there is none.
    package func take(where fits: (Element) -> Bool, make: () -> Element) -> Element {
        let found = state.withLock { state -> Element? in
            for _ in 0..<min(state.elements.count, 16) {
                let index = state.next < state.elements.count ? state.next : 0
                state.next = index + 1
                guard isKnownUniquelyReferenced(&state.elements[index]) else { continue }
                state.elements[index].acquireFromEarlierHolders()
                if fits(state.elements[index]) { return state.elements[index] }
                state.elements[index] = make()
                return state.elements[index]
            }
            return nil
        }
        if let found { return found }
        let element = make()
        state.withLock { state in
            if state.elements.count < limit { state.elements.append(element) }
        }
        return element
    }
}

/// A pool of reusable picture buffers.
///
/// A buffer returns to the pool by itself when its last holder releases it. Once the pool has made as many buffers as
/// are ever in use at a time, taking one allocates nothing. Use one pool for each size: a pool of mixed sizes allocates
/// again and again. May be used from any thread.
public final class VideoBufferPool: Sendable {
    private let pool: ReusePool<VideoBuffer>

    /// Creates an empty pool that keeps at most `limit` buffers; further buffers are made and not kept.
    public init(limit: Int = 16) {
        pool = ReusePool(limit: limit)
    }

    /// Returns a buffer of `dimensions` that nobody else holds; its content is undefined.
    ///
    /// Both sides must be positive and at most those of `Dimensions.largestCodable`.
    public func take(_ dimensions: Dimensions) -> VideoBuffer {
        pool.take(where: { $0.dimensions == dimensions }, make: { VideoBuffer(dimensions: dimensions) })
    }
}

/// A pool of reusable message buffers, kept apart by size so that a small message does not hold a large buffer.
package final class PacketBufferPool: Sendable {
    /// Powers of two, from 1 KiB on.
    private let pools: [ReusePool<PacketBuffer>]

    /// Creates an empty pool that keeps at most `limit` buffers of each size.
    package init(limit: Int = 256) {
        pools = (0..<15).map { _ in ReusePool(limit: limit) }
    }

    /// Returns a buffer for a message of `count` bytes that nobody else holds, with `count` set.
    ///
    /// Its content is undefined.
    package func take(count: Int) -> PacketBuffer {
        var index = 0
        while 1024 << index < count { index += 1 }
        let capacity = 1024 << index
        guard index < pools.count else { return PacketBuffer(capacity: count).with(count: count) }
        return pools[index].take(where: { _ in true }, make: { PacketBuffer(capacity: capacity) }).with(count: count)
    }
}

extension PacketBuffer {
    fileprivate func with(count: Int) -> PacketBuffer {
        self.count = count
        self.transportHeaderCount = 0
        return self
    }
}
