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

    /// The frame of which the subscriber has the beginning.
    private enum FrameInHand {
        case none, keyframe, other
    }

    /// Where in the stream the subscriber is: everything before has been sent or left out.
    package private(set) var position: Int
    /// Frames from before this position come from the cache: temporal layer 0 alone, whatever their age.
    private let catchUpEnd: Int
    private var gate = TemporalLayerGate()
    private var frameInHand = FrameInHand.none

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
    }

    /// Whether nothing can be sent until a keyframe comes.
    package func isWaitingForKeyframe(in stream: TrackStream) -> Bool {
        gate.isWaitingForKeyframe && position == stream.endPosition
    }

    /// The subscriber cannot go on with what it has: everything up to the next keyframe is left out.
    package mutating func skipToKeyframe(in stream: TrackStream) {
        gate.waitForKeyframe()
        position = stream.endPosition
        frameInHand = .none
    }

    /// The subscriber says that it cannot go on with what it has: everything up to a keyframe is left out.
    ///
    /// - Returns: Whether one must be asked for; not if one is on its way to the subscriber, which was sent before its
    ///   request came.
    package mutating func keyframeRequested(in stream: TrackStream) -> Bool {
        if frameInHand == .keyframe { return false }
        if let keyframe = stream.newestKeyframe, keyframe >= position {
            gate.waitForKeyframe()
            position = keyframe
            frameInHand = .none
            return false
        }
        skipToKeyframe(in: stream)
        return true
    }

    /// Decides what the subscriber, whose socket can take a packet now, is sent.
    package mutating func next(in stream: TrackStream, at now: MonotonicInstant, policy: ForwardingPolicy) -> Step {
        if position < stream.startPosition { return fallBehind(in: stream, at: now, policy: policy) }
        while position < stream.endPosition {
            let entry = stream[position]
            let lag = now.duration(since: entry.arrival)
            let isLate = lag > policy.skipAfter && position >= catchUpEnd
            if entry.isFirstChunk {
                // To one who waits for a keyframe, other frames are no loss, but a keyframe that comes too late is.
                if isLate && (entry.isKeyframe || !gate.isWaitingForKeyframe) {
                    return fallBehind(in: stream, at: now, policy: policy)
                }
                let isPassed = passes(entry, limit: limit(for: entry, lag: lag, policy))
                position += 1
                guard isPassed, let packet = entry.packet else { continue }
                frameInHand = entry.isLastChunk ? .none : entry.isKeyframe ? .keyframe : .other
                return .send(packet)
            }
            guard frameInHand != .none else {
                position += 1
                continue
            }
            // A keyframe that has begun is finished as long as it is kept: else a link on which each takes longer than
            // `skipAfter` would carry their beginnings for ever and never one picture.
            guard let packet = entry.packet, !isLate || frameInHand == .keyframe else {
                return fallBehind(in: stream, at: now, policy: policy)
            }
            position += 1
            if entry.isLastChunk { frameInHand = .none }
            return .send(packet)
        }
        return .idle
    }

    private mutating func passes(_ entry: TrackStream.Entry, limit: Int) -> Bool {
        gate.passes(
            isKeyframe: entry.isKeyframe,
            temporalLayer: entry.temporalLayer,
            isLayerSync: entry.isLayerSync,
            isDiscardable: entry.isDiscardable,
            limit: limit
        )
    }

    /// The highest temporal layer that the subscriber can have at `entry`.
    private func limit(for entry: TrackStream.Entry, lag: Duration, _ policy: ForwardingPolicy) -> Int {
        if position < catchUpEnd { return 0 }
        if entry.packet == nil { return Int(entry.temporalLayer) - 1 }
        if lag > policy.dropMiddleLayerAfter { return 0 }
        return lag > policy.dropTopLayerAfter ? 1 : .max
    }

    /// Goes to the newest keyframe if that is fresh, else waits for the next one.
    private mutating func fallBehind(
        in stream: TrackStream,
        at now: MonotonicInstant,
        policy: ForwardingPolicy
    ) -> Step {
        let previous = position
        skipToKeyframe(in: stream)
        if let keyframe = stream.cachedKeyframe(at: now), keyframe > previous,
            now.duration(since: stream[keyframe].arrival) <= policy.skipAfter
        {
            position = keyframe
            return next(in: stream, at: now, policy: policy)
        }
        return .needsKeyframe
    }
}
