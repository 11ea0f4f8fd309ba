import MediaCore
import RoomProtocol
import Threading

/// The queue of encoded frames between an encoder and its connection.
///
/// Its depth is two frames. The uplink asks `hasRoom` before it lets a picture be encoded, so a picture that cannot be
/// sent waits before it is encoded, where a newer one can replace it.
///
/// Frames that wait too long are given up in this order:
///
/// - frames of temporal layer 2, then of layer 1, as `TemporalLayerGate` allows. That costs nothing but frame rate.
/// - frames before a keyframe that waits as well.
/// - all waiting frames, if they have more bytes than the keyframe that must then follow. A smaller rest is sent,
///   however late it is, because the next current picture arrives sooner that way. Otherwise a slow keyframe would
///   outdate the frames behind it, their loss would make another keyframe due, and so on for ever.
///
/// A frame that is partly sent can be given up too. The receiver notices by the first packet of the next frame.
final class SendQueue: Sendable {
    /// Counts of what was sent and given up.
    struct Counts: Sendable {
        /// Frames of which the last packet was taken.
        var framesSent = 0
        /// Frames that were given up, partly sent or not.
        var framesExpired = 0
        /// Bytes of the packets that were taken.
        var bytesSent = 0
    }

    /// What `take` did.
    struct Step: Sendable {
        /// The packet to send; `nil` if none waits.
        var packet: PacketBuffer?
        /// Whether frames were given up.
        var hasGivenUp = false
    }

    fileprivate struct Entry: Sendable {
        var packet: PacketBuffer
        var frame: EncodedFrameInfo
        var isFirst: Bool
        var isLast: Bool
        var queued: MonotonicInstant
    }

    fileprivate struct State: Sendable {
        var entries: [Entry] = []
        var frames = 0
        var bytes = 0
        /// The rate that the encoder may use now.
        var rate: Bitrate?
        /// The last keyframe's bytes, and the rate at that time.
        var lastKeyframe: (bytes: Int, rate: Bitrate)?
        /// Which frames can be decoded after those that were taken.
        var gate = TemporalLayerGate()
        var counts = Counts()
        var isBroken = false
        var isClosed = false
        /// Promises to fulfill when no frame waits any more.
        var drained: [Promise<Void>] = []
    }

    private static let depth = 2
    /// The age from which a frame is given up where that saves bytes.
    ///
    /// A keyframe takes less time on any usable link, and a viewer still perceives this delay as live.
    static let deadline: Duration = .milliseconds(400)
    /// The ages from which temporal layer 2, and then layer 1, is left out: those of the relay (section 10 of the
    /// protocol), whose reasons hold here too.
    fileprivate static let layerDeadlines: (top: Duration, middle: Duration) = (.milliseconds(120), .milliseconds(200))

    private let state = Monitor(State())

    /// Creates an empty queue.
    init() {
        state.withLock { $0.entries.reserveCapacity(64) }
    }

    var counts: Counts { state.withLock { $0.counts } }

    /// Whether another frame may be encoded.
    var hasRoom: Bool { state.withLock { $0.frames < Self.depth } }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// The bytes that wait to be sent.
    var waitingBytes: Int { state.withLock { $0.bytes } }

    /// Sets the rate that the encoder may use now, which says what a keyframe would cost.
    func expectRate(_ rate: Bitrate) {
        state.withLock { $0.rate = rate }
    }

    /// Puts in the packets of one frame and empties `packets`.
    func append(_ packets: inout [PacketBuffer], of frame: EncodedFrameInfo, at now: MonotonicInstant) {
        state.withLock { state in
            if frame.isKeyframe {
                state.isBroken = false
                state.noteKeyframe(of: packets.reduce(0) { $0 + $1.count })
            }
            // Frames were given up while the encoder made this one, which refers to them.
            guard !state.isBroken, !state.isClosed else {
                state.counts.framesExpired += 1
                return
            }
            for index in packets.indices {
                let entry = Entry(
                    packet: packets[index],
                    frame: frame,
                    isFirst: index == 0,
                    isLast: index == packets.count - 1,
                    queued: now
                )
                state.entries.append(entry)
                state.bytes += packets[index].count
            }
            state.frames += 1
        }
        packets.removeAll(keepingCapacity: true)
    }

    /// Gives up what is too late, and takes the packet to send next.
    func take(at now: MonotonicInstant) -> Step {
        let (step, drained) = state.withLock { state -> (Step, [Promise<Void>]) in
            let expired = state.counts.framesExpired
            state.dropLate(at: now)
            let hasGivenUp = state.counts.framesExpired > expired
            guard !state.entries.isEmpty else {
                return (Step(packet: nil, hasGivenUp: hasGivenUp), state.takeDrained())
            }
            let entry = state.entries.removeFirst()
            state.bytes -= entry.packet.count
            state.counts.bytesSent += entry.packet.count
            if entry.isLast {
                state.frames -= 1
                state.counts.framesSent += 1
            }
            return (Step(packet: entry.packet, hasGivenUp: hasGivenUp), state.takeDrained())
        }
        for promise in drained { promise.fulfill(()) }
        return step
    }

    /// Waits until all frames are sent or given up, or the queue is closed; at most `timeout`.
    func drain(within timeout: Duration) async {
        let promise = Promise<Void>()
        let isDrained = state.withLock { state in
            if !state.entries.isEmpty && !state.isClosed { state.drained.append(promise) }
            return state.entries.isEmpty || state.isClosed
        }
        if !isDrained { _ = await promise.value(within: timeout) }
    }

    /// Gives up all waiting frames; nothing is sent from now on.
    func close() {
        let drained = state.withLock { state in
            state.drop(through: state.entries.count)
            state.isClosed = true
            return state.takeDrained()
        }
        for promise in drained { promise.fulfill(()) }
    }

    /// Whether frames were given up since the last call, so that the next one must be a keyframe.
    func takeBroken() -> Bool {
        state.withLock { state in
            defer { state.isBroken = false }
            return state.isBroken
        }
    }
}

extension SendQueue.State {
    /// Takes the promises to fulfill, if the queue is empty or closed.
    fileprivate mutating func takeDrained() -> [Promise<Void>] {
        guard entries.isEmpty || isClosed else { return [] }
        defer { drained = [] }
        return drained
    }

    /// Gives up frames until the first one may be sent; call it only if that one is then taken.
    fileprivate mutating func dropLate(at now: MonotonicInstant) {
        while let head = entries.first {
            let age = now.duration(since: head.queued)
            if head.frame.temporalLayer == 0 {
                if age > SendQueue.deadline, dropBaseLayer() { continue }
                if head.isFirst { _ = gate.passes(head.frame) }
                return
            }
            if !head.isFirst {
                guard age > SendQueue.deadline else { return }
                // It had passed the gate. Now it is left out after all, and so is what refers to it.
                _ = gate.passes(head.frame, limit: Int(head.frame.temporalLayer) - 1)
            } else if gate.passes(head.frame, limit: Self.limit(at: age)) {
                return
            }
            drop(through: endOfFirstFrame)
        }
    }

    /// Gives up the frames that begin with an outdated one of layer 0, if that saves bytes; returns whether it did.
    private mutating func dropBaseLayer() -> Bool {
        if let next = entries.indices.dropFirst().last(where: { entries[$0].isFirst && entries[$0].frame.isKeyframe }) {
            drop(through: next)
            gate.waitForKeyframe()
            return true
        }
        guard bytes > keyframeCost else { return false }
        drop(through: entries.count)
        gate.waitForKeyframe()
        isBroken = true
        return true
    }

    fileprivate mutating func noteKeyframe(of bytes: Int) {
        lastKeyframe = rate.map { (bytes, $0) }
    }

    /// What a keyframe would cost now, in bytes: as much as the last one, or less where the rate has fallen since.
    private var keyframeCost: Int {
        guard let rate, let lastKeyframe else { return .max }
        let (now, then) = (Double(rate.bitsPerSecond), Double(max(1, lastKeyframe.rate.bitsPerSecond)))
        return Int(Double(lastKeyframe.bytes) * min(1, now / then))
    }

    /// Gives up the frames whose packets come before `end`.
    fileprivate mutating func drop(through end: Int) {
        for entry in entries[..<end] {
            bytes -= entry.packet.count
            guard entry.isLast else { continue }
            frames -= 1
            counts.framesExpired += 1
        }
        entries.removeSubrange(..<end)
    }

    private var endOfFirstFrame: Int { (entries.firstIndex { $0.isLast } ?? entries.count - 1) + 1 }

    /// The highest temporal layer that is still worth sending at `age`.
    private static func limit(at age: Duration) -> Int {
        if age > SendQueue.layerDeadlines.middle { return 0 }
        return age > SendQueue.layerDeadlines.top ? 1 : .max
    }
}
