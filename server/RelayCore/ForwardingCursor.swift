package import MediaCore
import RoomProtocol

/// One subscriber's position in a track's stream, which decides what the subscriber is sent next.
///
/// Nothing is queued for a subscriber. When its socket can take a packet, the cursor finds the next one that is still
/// worth sending. Frames are left out whole, by temporal layer or up to a keyframe, and always so that the subscriber
/// can decode what follows.
package struct ForwardingCursor: Sendable {
    /// The action for the subscriber.
    package enum Step: Sendable {
        /// Send this packet.
        case send(PacketBuffer)
        /// There is nothing to send yet.
        case idle
        /// The subscriber has just fallen too far behind; it needs a keyframe before anything can be sent.
        case needsKeyframe
    }

    /// The state of the frame at the cursor.
    private enum Frame {
        /// A frame whose beginning was not sent to the subscriber, and whose rest will not be sent.
        case leftOut(DropReason)
        /// A frame whose beginning was sent to the subscriber.
        case sending(isKeyframe: Bool, temporalLayer: UInt8, isDiscardable: Bool)
        /// No frame.
        case none
    }

    /// The subscriber's position in the stream: all packets before it have been sent or left out.
    package private(set) var position: Int
    // What each packet needs comes first, so that it shares a cache line.

    /// Frames before this position come from the cache: only temporal layer 0, whatever their age.
    private let catchUpEnd: Int
    /// Keeps the subscriber within the frame rate that it wishes.
    private var pace = LayerPace()
    private var gate = TemporalLayerGate()
    private var frame = Frame.none
    /// Whether a frame was so late that temporal layers help, or would, since this was last taken.
    private var isLagging = false
    private var pursuit = Pursuit()
    /// Whether it had come to the live frames when it last fell behind.
    private(set) var wasLiveBeforeSkip = false
    /// Packets that were not sent.
    package private(set) var dropped = DropCounts()
    /// The position at which the subscription began.
    private let firstPosition: Int

    /// The number of the last frame from the cache; `nil` if there is none.
    package let catchUpThrough: UInt32?

    /// Creates the position of a new subscriber: at the cached keyframe if there is one, else at the next keyframe.
    ///
    /// `frameRate` is the highest that it wishes, in frames per second; `nil` for no wish.
    package init(joining stream: TrackStream, frameRate: Double? = nil, at now: MonotonicInstant) {
        pace.setFrameRate(frameRate)
        if let start = stream.cachedKeyframe(at: now), let newest = stream.newestBaseFrame,
            stream[start].frameNumber <= newest
        {
            position = start
            catchUpEnd = stream.endPosition
            catchUpThrough = newest
            pursuit.begin(from: now.duration(since: stream[start].arrival), at: now)
        } else if let start = stream.cachedKeyframe(at: now) {
            // The keyframe itself is still arriving. That its beginning came long ago does not make this subscriber late.
            position = start
            catchUpEnd = stream.endPosition
            catchUpThrough = nil
        } else {
            position = stream.endPosition
            catchUpEnd = position
            catchUpThrough = nil
        }
        firstPosition = position
    }

    /// Keeps the subscriber within another frame rate from now on; `nil` for any.
    mutating func setFrameRate(_ frameRate: Double?) { pace.setFrameRate(frameRate) }

    /// Says once whether a frame was so late that temporal layers help, or would.
    mutating func takeLag() -> Bool {
        defer { isLagging = false }
        return isLagging
    }

    /// The counts of `stream`'s packets since the subscription began.
    package func counts(in stream: TrackStream) -> PacketCounts {
        var counts = PacketCounts()
        counts.received = stream.endPosition - firstPosition
        counts.waiting = stream.endPosition - position
        counts.forwarded = position - firstPosition - dropped.total
        counts.dropped = dropped
        return counts
    }

    /// Whether the subscriber is sent old frames of temporal layer 0 until it has caught up with the live ones.
    package var isCatchingUp: Bool { isInCache || pursuit.isRunning }

    /// Whether the next frames come from the cache, with the lowest temporal layer only.
    var isInCache: Bool { position < catchUpEnd }

    /// Whether a frame has begun to be sent whose rest is still to come.
    var isWithinFrame: Bool {
        if case .sending = frame { true } else { false }
    }

    /// The bytes of the frame that has begun to be sent which are still to come, as far as they are stored.
    func restOfFrame(in packets: TrackStream.Packets) -> Int {
        guard isWithinFrame, position >= packets.startPosition else { return 0 }
        var end = position
        while end < packets.endPosition, !packets[end].isLastChunk { end += 1 }
        return packets.bytes(from: position) - packets.bytes(from: end + 1)
    }

    /// Whether it falls behind because the path is too slow for what comes, and not because of an outage: the rest of a
    /// keyframe is not kept any more, or what followed one could not be caught up with.
    func isTooSlow(for stream: TrackStream) -> Bool {
        guard position >= stream.lastRestart.position else { return false }
        if case .sending(isKeyframe: true, _, _) = frame, position < stream.startPosition { return true }
        return pursuit.isRunning
    }

    /// Whether nothing can be sent until a keyframe comes.
    package func isWaitingForKeyframe(in stream: TrackStream) -> Bool {
        gate.isWaitingForKeyframe && position == stream.endPosition
    }

    /// Whether nothing of what waits will be sent, because a keyframe must come first.
    @inline(__always)
    func awaitsKeyframe(after newest: Int?) -> Bool { gate.isWaitingForKeyframe && (newest ?? -1) < position }

    /// Skips everything up to a keyframe, because the subscriber cannot decode what follows.
    ///
    /// - Returns: Whether the publisher must be asked for a keyframe. Not if one was sent to the subscriber before its
    ///   request arrived and is still on its way.
    package mutating func keyframeRequested(in stream: TrackStream) -> Bool {
        passRestart(of: stream)
        if isWithinKeyframe { return false }
        let keyframe = stream.newestKeyframe.flatMap { $0 >= position ? $0 : nil }
        skip(to: keyframe ?? stream.endPosition, because: .keyframeRequested)
        return keyframe == nil
    }

    /// Whether a keyframe is being sent to the subscriber, or waits for it.
    func isKeyframeOnItsWay(in stream: TrackStream) -> Bool {
        isWithinKeyframe || stream.newestKeyframe.map { $0 >= position } ?? false
    }

    private var isWithinKeyframe: Bool {
        if case .sending(isKeyframe: true, _, _) = frame { true } else { false }
    }

    /// Skips to a keyframe that has come since, from which the subscriber reaches the live frames sooner.
    ///
    /// - Returns: Whether there is one.
    mutating func skipToNewerKeyframe(in stream: TrackStream) -> Bool {
        guard let keyframe = stream.newestKeyframe, keyframe > position else { return false }
        skip(to: keyframe, because: .catchUp)
        return true
    }

    /// Skips everything up to the next keyframe, because that brings the live frames sooner.
    mutating func giveUpCache(in stream: TrackStream) { skip(to: stream.endPosition, because: .catchUp) }

    /// Notes that the path delivered nothing for a while.
    ///
    /// What waits is late because of that, and not because a keyframe took long on a slow path. If it is too late, a
    /// new keyframe is sooner.
    package mutating func outageEnded() {
        if position >= catchUpEnd { pursuit.end() }
    }

    /// Decides what to send to the subscriber, whose socket can take a packet now.
    ///
    /// It is lent only the packets, because all of a stream would be copied for each packet and subscriber.
    ///
    /// - Parameters:
    ///   - packets: The stream's packets.
    ///   - now: The time.
    ///   - limits: When frames are left out.
    ///   - isAdmitted: Whether a frame may begin; the rest of one that has begun always follows.
    ///   - isBacklogged: Whether what waits would take too long, whatever its lag.
    /// - Returns: `nil` when `fallBehind` must be called first.
    @inline(__always)  // A call would copy and retain the stream for each packet and subscriber.
    package mutating func next(
        in packets: TrackStream.Packets,
        at now: MonotonicInstant,
        limits: ForwardingPolicy.Limits,
        isAdmitted: Bool,
        isBacklogged: Bool
    ) -> Step? {
        // Before a frame may begin, nothing is decided about what waits, and no keyframe is asked for: it would be
        // late by the time it could be sent.
        let fallenBehind: Step? = isAdmitted ? nil : .idle
        guard position >= packets.startPosition else { return fallenBehind }
        while position < packets.endPosition {
            let entry = packets[position]
            let lag = now.nanoseconds &- entry.arrival.nanoseconds
            // A backlog is left out up to a keyframe, and a frame that has begun goes on.
            let isBacklogEnd = entry.isKeyframe || !entry.isFirstChunk
            let isLate = (lag > limits.skipAfter || isBacklogged && !isBacklogEnd) && position >= catchUpEnd
            if entry.isFirstChunk {
                guard isAdmitted else { return .idle }
                leaveUnfinished()
                // A subscriber that waits for a keyframe loses nothing with other late frames, only with a late
                // keyframe.
                if isLate && (entry.isKeyframe || !gate.isWaitingForKeyframe) {
                    guard !gate.isWaitingForKeyframe, pursuit.goesOn(at: .nanoseconds(lag), now) else { return nil }
                } else if position >= catchUpEnd, lag <= limits.dropTopLayerAfter {
                    pursuit.end()
                }
                let isBehind = lag > limits.dropMiddleLayerAfter && position >= catchUpEnd && !pursuit.isRunning
                if isBehind && !gate.isWaitingForKeyframe { isLagging = true }
                let isPassed = begins(entry, lag: lag, limits)
                position += 1
                guard isPassed, let packet = entry.packet else { continue }
                return .send(packet)
            }
            if entry.isAbandoned { leaveUnfinished() }
            guard case .sending(let isKeyframe, _, _) = frame else {
                passOver()
                continue
            }
            // A keyframe that has begun is finished as long as its packets are kept. Otherwise a link on which each
            // keyframe takes longer than `skipAfter` would carry only their beginnings, and never a picture.
            guard let packet = entry.packet, !isLate || isKeyframe || pursuit.isRunning else { return fallenBehind }
            position += 1
            if entry.isLastChunk { frame = .none }
            return .send(packet)
        }
        return .idle
    }

    /// Decides at a frame's first packet whether the subscriber is sent the frame.
    private mutating func begins(_ entry: TrackStream.Entry, lag: Int64, _ limits: ForwardingPolicy.Limits) -> Bool {
        let wasWaiting = gate.isWaitingForKeyframe
        let limit = limit(for: entry, lag: lag, limits)
        let isTooSoon = pace.isTooSoon(entry)
        let isPassed = gate.passes(
            isKeyframe: entry.isKeyframe && !entry.isAbandoned,
            temporalLayer: entry.temporalLayer,
            isLayerSync: entry.isLayerSync,
            // The flag has no meaning in layer 0.
            isDiscardable: entry.isDiscardable && entry.temporalLayer > 0,
            limit: isTooSoon ? min(limit, Int(entry.temporalLayer) - 1) : limit
        )
        if isPassed {
            pace.passed(entry)
            // On a slow link a keyframe takes long, and what follows is late with it.
            if entry.isKeyframe { pursuit.begin() }
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
        let reason = reason(for: entry, limit: limit, isTooSoon: isTooSoon, wasWaiting: wasWaiting)
        if reason == .topLayerLate || reason == .middleLayerLate { isLagging = true }
        leaveOut(reason)
        return false
    }

    /// The reason for leaving out a frame that the gate does not pass.
    private func reason(
        for entry: TrackStream.Entry,
        limit: Int,
        isTooSoon: Bool,
        wasWaiting: Bool
    ) -> DropReason {
        if entry.isAbandoned { return .abandoned }
        if wasWaiting { return .awaitingKeyframe }
        if entry.temporalLayer <= limit { return isTooSoon ? .unwanted : .awaitingLayerSync }
        if position < catchUpEnd { return .catchUp }
        return entry.temporalLayer > 1 ? .topLayerLate : .middleLayerLate
    }

    /// The highest temporal layer that the subscriber may get at `entry`.
    private func limit(for entry: TrackStream.Entry, lag: Int64, _ limits: ForwardingPolicy.Limits) -> Int {
        if entry.packet == nil { return Int(entry.temporalLayer) - 1 }
        if position < catchUpEnd { return 0 }
        if lag > limits.dropMiddleLayerAfter { return 0 }
        return lag > limits.dropTopLayerAfter ? 1 : .max
    }

    // MARK: Leaving out

    private mutating func leaveOut(_ reason: DropReason) {
        frame = .leftOut(reason)
        dropped[reason] += 1
    }

    /// Skips one packet of a frame whose beginning was left out or never arrived.
    private mutating func passOver() {
        if case .leftOut(let reason) = frame { dropped[reason] += 1 } else { dropped[.awaitingKeyframe] += 1 }
        position += 1
    }

    /// Ends a frame whose beginning was sent, because its publisher abandoned it.
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
        pursuit.end()
        if reason == .fellBehind { isLagging = true }
        gate.waitForKeyframe()
        frame = .none
    }

    /// Skips the packets that the stream discarded at once.
    private mutating func passRestart(of stream: TrackStream) {
        let restart = stream.lastRestart
        if position < restart.position { skip(to: restart.position, because: restart.reason) }
    }

    /// Moves to the newest keyframe if that is fresh, or else waits for the next one.
    ///
    /// Packets that the stream discarded at once count with its reason, and not as fallen behind.
    ///
    /// - Returns: Whether the subscriber needs a keyframe.
    package mutating func fallBehind(in stream: TrackStream, at now: MonotonicInstant, policy: ForwardingPolicy) -> Bool
    {
        wasLiveBeforeSkip = !pursuit.isRunning
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
