import MediaCore
import Threading

/// The queue of encoded frames between an encoder and its connection.
///
/// Its depth is two frames. The encoder checks `hasRoom` first, so a frame that cannot be sent is dropped before it is
/// encoded. A frame that has waited longer than `deadline` is discarded with all frames after it, and the next frame
/// must be a keyframe. A frame that is already partly sent is finished. A frame that was being encoded meanwhile refers
/// to a discarded one, and is discarded as well.
final class SendQueue: Sendable {
    /// Counts of what was sent and discarded.
    struct Counts: Sendable {
        var framesSent = 0
        var framesExpired = 0
        var bytesSent = 0
    }

    private struct Entry: Sendable {
        var packet: PacketBuffer
        var isFirst: Bool
        var isLast: Bool
        var isDiscardable: Bool
        var queued: MonotonicInstant
    }

    private struct State: Sendable {
        var entries: [Entry] = []
        var frames = 0
        var counts = Counts()
        var isBroken = false
        var isClosed = false
        /// Promises to fulfill when no frame waits any more.
        var drained: [Promise<Void>] = []

        /// Takes the promises to fulfill, if the queue is empty or closed.
        mutating func takeDrained() -> [Promise<Void>] {
            guard entries.isEmpty || isClosed else { return [] }
            defer { drained = [] }
            return drained
        }
    }

    private static let depth = 2
    /// A keyframe takes less time on any usable link, and a viewer still perceives this delay as live.
    private static let deadline: Duration = .milliseconds(400)

    private let state = Monitor(State())

    var counts: Counts { state.withLock { $0.counts } }

    /// Whether another frame may be encoded.
    var hasRoom: Bool { state.withLock { $0.frames < Self.depth } }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// Puts in the packets of one frame and empties `packets`.
    func append(
        _ packets: inout [PacketBuffer],
        isKeyframe: Bool,
        isDiscardable: Bool,
        at now: MonotonicInstant
    ) {
        state.withLock { state in
            if isKeyframe { state.isBroken = false }
            // Frames were discarded while the encoder made this one.
            guard !state.isBroken, !state.isClosed else {
                state.counts.framesExpired += 1
                return
            }
            for index in packets.indices {
                let entry = Entry(
                    packet: packets[index],
                    isFirst: index == 0,
                    isLast: index == packets.count - 1,
                    isDiscardable: isDiscardable,
                    queued: now
                )
                state.entries.append(entry)
            }
            state.frames += 1
        }
        packets.removeAll(keepingCapacity: true)
    }

    /// The packet to send next.
    func next(at now: MonotonicInstant) -> PacketBuffer? {
        let (packet, drained) = state.withLock { state -> (PacketBuffer?, [Promise<Void>]) in
            Self.dropExpired(&state, at: now)
            guard !state.entries.isEmpty else { return (nil, state.takeDrained()) }
            let entry = state.entries.removeFirst()
            state.counts.bytesSent += entry.packet.count
            if entry.isLast {
                state.frames -= 1
                state.counts.framesSent += 1
            }
            return (entry.packet, state.takeDrained())
        }
        for promise in drained { promise.fulfill(()) }
        return packet
    }

    /// Waits until all frames are sent or discarded, or the queue is closed; at most `timeout`.
    func drain(within timeout: Duration) async {
        let promise = Promise<Void>()
        let isDrained = state.withLock { state in
            if !state.entries.isEmpty && !state.isClosed { state.drained.append(promise) }
            return state.entries.isEmpty || state.isClosed
        }
        if !isDrained { _ = await promise.value(within: timeout) }
    }

    /// Discards all waiting frames; nothing is sent from now on.
    func close() {
        let drained = state.withLock { state in
            // A frame that was partly sent counts as expired too.
            state.counts.framesExpired += state.entries.count { $0.isLast }
            state.entries.removeAll()
            state.frames = 0
            state.isClosed = true
            return state.takeDrained()
        }
        for promise in drained { promise.fulfill(()) }
    }

    /// Whether frames were discarded since the last call, so that the next one must be a keyframe.
    func takeBroken() -> Bool {
        state.withLock { state in
            defer { state.isBroken = false }
            return state.isBroken
        }
    }

    private static func dropExpired(_ state: inout State, at now: MonotonicInstant) {
        guard let head = state.entries.first, head.isFirst, now.duration(since: head.queued) > deadline else { return }
        let given = state.entries.count { $0.isFirst }
        state.isBroken = state.isBroken || state.entries.contains { !$0.isDiscardable }
        state.entries.removeAll(keepingCapacity: true)
        state.counts.framesExpired += given
        state.frames = 0
    }
}
