package import MediaCore
import RoomProtocol

/// One subscriber's place in a track's stream, and the decision what it is sent next.
///
/// Nothing is queued for a subscriber: when its socket can take a packet, the cursor finds the one that is still worth
/// sending. Frames are left out whole, by temporal layer or up to a keyframe, and never in a way that the subscriber
/// could not decode what follows.
package struct ForwardingCursor: Sendable {
    /// What to do for the subscriber.
    package enum Step: Sendable {
        /// Send this packet.
        case send(PacketBuffer)
        /// Nothing is there to send yet.
        case idle
        /// The subscriber has just fallen behind too far; it needs a keyframe, then there will be something to send.
        case needsKeyframe
    }

    /// The frame that the cursor is in.
    private enum Frame {
        /// One of which the subscriber was not sent the beginning, and will not be sent the rest.
        case leftOut(DropReason)
        /// One of which the subscriber has the beginning.
        case sending(isKeyframe: Bool, temporalLayer: UInt8, isDiscardable: Bool)
        /// None.
        case none
    }

    /// Where in the stream the subscriber is: everything before has been sent or left out.
    package private(set) var position: Int
    /// Packets that were not sent.
    package private(set) var dropped = DropCounts()
    /// Where the subscription began.
    private let firstPosition: Int
    /// Frames from before this position come from the cache: temporal layer 0 alone, whatever their age.
    private let catchUpEnd: Int
    private var gate = TemporalLayerGate()
    private var frame = Frame.none

    /// The last frame number that comes from the cache; `nil` if nothing does.
    package let catchUpThrough: UInt32?

    /// A place for a new subscriber: at the cached keyframe if there is one, else at the next keyframe to come.
    package init(joining stream: TrackStream, at now: MonotonicInstant) {
        if let start = stream.cachedKeyframe(at: now), let newest = stream.newestBaseFrame,
            stream[start].frameNumber <= newest
        {
            position = start
            catchUpEnd = stream.endPosition
            catchUpThrough = newest
        } else if let start = stream.cachedKeyframe(at: now) {
            // The keyframe itself is still coming in: it is the live edge.
            position = start
            catchUpEnd = start
            catchUpThrough = nil
        } else {
            position = stream.endPosition
            catchUpEnd = position
            catchUpThrough = nil
        }
        firstPosition = position
    }

    /// What became of the packets of `stream` since the subscription began.
    package func counts(in stream: TrackStream) -> PacketCounts {
        var counts = PacketCounts()
        counts.received = stream.endPosition - firstPosition
        counts.waiting = stream.endPosition - position
        counts.forwarded = position - firstPosition - dropped.total
        counts.dropped = dropped
        return counts
    }

    /// Whether nothing can be sent until a keyframe comes.
    package func isWaitingForKeyframe(in stream: TrackStream) -> Bool {
        gate.isWaitingForKeyframe && position == stream.endPosition
    }

    /// The subscriber says that it cannot go on with what it has: everything up to a keyframe is left out.
    ///
    /// - Returns: Whether one must be asked for; not if one is on its way to the subscriber, which was sent before its
    ///   request came.
    package mutating func keyframeRequested(in stream: TrackStream) -> Bool {
        passRestart(of: stream)
        if case .sending(isKeyframe: true, _, _) = frame { return false }
        let keyframe = stream.newestKeyframe.flatMap { $0 >= position ? $0 : nil }
        skip(to: keyframe ?? stream.endPosition, because: .keyframeRequested)
        return keyframe == nil
    }

    /// Decides what the subscriber, whose socket can take a packet now, is sent.
    package mutating func next(in stream: TrackStream, at now: MonotonicInstant, policy: ForwardingPolicy) -> Step {
        while true {
            if let step = next(in: stream.packets, at: now, policy: policy) { return step }
            if fallBehind(in: stream, at: now, policy: policy) { return .needsKeyframe }
        }
    }

    /// As above, of which this is the part that is done for each packet; `nil` when `fallBehind` must be called.
    mutating func next(
        in packets: TrackStream.Packets,
        at now: MonotonicInstant,
        policy: ForwardingPolicy
    ) -> Step? {
        guard position >= packets.startPosition else { return nil }
        while position < packets.endPosition {
            let entry = packets[position]
            let lag = now.duration(since: entry.arrival)
            let isLate = lag > policy.skipAfter && position >= catchUpEnd
            if entry.isFirstChunk {
                leaveUnfinished()
                // To one who waits for a keyframe, other frames are no loss, but a keyframe that comes too late is.
                if isLate && (entry.isKeyframe || !gate.isWaitingForKeyframe) { return nil }
                let isPassed = begins(entry, lag: lag, policy)
                position += 1
                guard isPassed, let packet = entry.packet else { continue }
                return .send(packet)
            }
            if entry.isAbandoned { leaveUnfinished() }
            guard case .sending(let isKeyframe, _, _) = frame else {
                passOver()
                continue
            }
            // A keyframe that has begun is finished as long as it is kept: else a link on which each takes longer than
            // `skipAfter` would carry their beginnings for ever and never one picture.
            guard let packet = entry.packet, !isLate || isKeyframe else { return nil }
            position += 1
            if entry.isLastChunk { frame = .none }
            return .send(packet)
        }
        return .idle
    }

    /// Decides by its first packet whether the subscriber is sent a frame.
    private mutating func begins(_ entry: TrackStream.Entry, lag: Duration, _ policy: ForwardingPolicy) -> Bool {
        let wasWaiting = gate.isWaitingForKeyframe
        let limit = limit(for: entry, lag: lag, policy)
        let isPassed = gate.passes(
            isKeyframe: entry.isKeyframe && !entry.isAbandoned,
            temporalLayer: entry.temporalLayer,
            isLayerSync: entry.isLayerSync,
            // In layer 0 the flag has no meaning.
            isDiscardable: entry.isDiscardable && entry.temporalLayer > 0,
            limit: limit
        )
        if isPassed {
            frame =
                entry.isLastChunk
                ? .none
                : .sending(
                    isKeyframe: entry.isKeyframe,
                    temporalLayer: entry.temporalLayer,
                    isDiscardable: entry.isDiscardable
                )
            return true
        }
        leaveOut(reason(for: entry, limit: limit, wasWaiting: wasWaiting))
        return false
    }

    /// Why a frame is left out that the gate does not let pass.
    private func reason(for entry: TrackStream.Entry, limit: Int, wasWaiting: Bool) -> DropReason {
        if entry.isAbandoned { return .abandoned }
        if wasWaiting { return .awaitingKeyframe }
        if entry.temporalLayer <= limit { return .awaitingLayerSync }
        if position < catchUpEnd { return .catchUp }
        return entry.temporalLayer > 1 ? .topLayerLate : .middleLayerLate
    }

    /// The highest temporal layer that the subscriber can have at `entry`.
    private func limit(for entry: TrackStream.Entry, lag: Duration, _ policy: ForwardingPolicy) -> Int {
        if entry.packet == nil { return Int(entry.temporalLayer) - 1 }
        if position < catchUpEnd { return 0 }
        if lag > policy.dropMiddleLayerAfter { return 0 }
        return lag > policy.dropTopLayerAfter ? 1 : .max
    }

    // MARK: Leaving out

    private mutating func leaveOut(_ reason: DropReason) {
        frame = .leftOut(reason)
        dropped[reason] += 1
    }

    /// Leaves out one packet of a frame whose beginning was left out, or of which there was no beginning.
    private mutating func passOver() {
        if case .leftOut(let reason) = frame { dropped[reason] += 1 } else { dropped[.awaitingKeyframe] += 1 }
        position += 1
    }

    /// The frame of which the subscriber has the beginning goes no further: its publisher abandoned it.
    private mutating func leaveUnfinished() {
        guard case .sending(_, let temporalLayer, let isDiscardable) = frame else { return }
        _ = gate.passes(
            isKeyframe: false,
            temporalLayer: temporalLayer,
            isLayerSync: false,
            isDiscardable: isDiscardable && temporalLayer > 0,
            limit: Int(temporalLayer) - 1
        )
        frame = .leftOut(.abandoned)
    }

    private mutating func skip(to target: Int, because reason: DropReason) {
        dropped[reason] += target - position
        position = target
        gate.waitForKeyframe()
        frame = .none
    }

    /// Passes over what the stream forgot at once.
    private mutating func passRestart(of stream: TrackStream) {
        let restart = stream.lastRestart
        if position < restart.position { skip(to: restart.position, because: restart.reason) }
    }

    /// Goes to the newest keyframe if that is fresh, else waits for the next one; what the stream forgot at once counts as
    /// that, and not as fallen behind.
    ///
    /// - Returns: Whether the subscriber needs a keyframe.
    mutating func fallBehind(in stream: TrackStream, at now: MonotonicInstant, policy: ForwardingPolicy) -> Bool {
        if position < stream.lastRestart.position {
            passRestart(of: stream)
            if position >= stream.startPosition { return false }
        }
        if let keyframe = stream.cachedKeyframe(at: now), keyframe > position,
            now.duration(since: stream[keyframe].arrival) <= policy.skipAfter
        {
            skip(to: keyframe, because: .fellBehind)
            return false
        }
        skip(to: stream.endPosition, because: .fellBehind)
        return true
    }
}
