import Adaptation
package import MediaCore
import RoomProtocol

/// The reason why a binary message ends a participant's session.
private enum MediaFault: Error {
    case malformed(MalformedPacket)
    case overLimit(MediaBudget.Excess, of: Sender)

    /// The sender whose limit was exceeded.
    enum Sender {
        case participant, track
    }
}

extension Relay {
    /// Takes a binary message that nobody else holds; the relay stamps it and afterwards only reads it.
    package mutating func receive(_ packet: PacketBuffer, from id: SlotID, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        traffic[id.index].arrivals.received(packet.count, at: now)
        guard let publisher = connections.hot[id.index].participant else {
            if connections[id]?.isClosing == false {
                fail(id, ErrorMessage(.malformedMessage, "media before \"join\"", fatal: true), at: now)
            }
            return
        }
        do throws(MediaFault) {
            let kind = packet.withBytes { binaryMessageKind(of: $0) }
            if kind != .video { traffic[id.index].arrivals.messageEnded(isAcknowledgement: kind == .acknowledgement) }
            if let excess = charge(packet, of: kind, to: publisher, at: now) {
                throw .overLimit(excess, of: .participant)
            }
            switch kind {
            case .video: try forward(packet, from: publisher, on: id, at: now)
            case .acknowledgement: acknowledged(try acknowledgement(in: packet), on: id, by: publisher, at: now)
            case nil: break
            }
        } catch {
            fail(id, message(for: error), at: now)
            dropSlowConnections(at: now)
        }
    }

    private mutating func charge(
        _ packet: PacketBuffer,
        of kind: BinaryMessageKind?,
        to participant: ParticipantID,
        at now: MonotonicInstant
    ) -> MediaBudget.Excess? {
        let (index, count, limits) = (participant.index, packet.count, limits.participantMedia)
        guard kind == .acknowledgement else {
            return participants.hot[index].budget.charge(count, to: limits, at: now)
        }
        return participants.hot[index].budget.chargeAcknowledgement(count, to: limits, at: now)
    }

    private func message(for fault: MediaFault) -> ErrorMessage {
        switch fault {
        case .malformed(let problem):
            let sentence = "a media packet breaks the protocol: \(problem)"
            return ErrorMessage(.malformedMessage, sentence, fatal: true)
        case .overLimit(let excess, of: .participant):
            let (packets, rate) = (settings.media.participantPackets, settings.media.participantRate)
            let limit =
                switch excess {
                case .packets: "\(packets) packets a second"
                case .bytes: "\(rate)"
                case .acknowledgements: "\(settings.media.participantAcknowledgements) acknowledgements a second"
                }
            return ErrorMessage(.limitReached, "a participant may send \(limit)", fatal: true)
        case .overLimit(let excess, of: .track):
            let (packets, rate) = (settings.media.trackPackets, settings.media.trackRate)
            let limit = excess == .packets ? "\(packets) packets a second" : "\(rate)"
            return ErrorMessage(.limitReached, "a track may send \(limit)", fatal: true)
        }
    }

    private func acknowledgement(in packet: PacketBuffer) throws(MediaFault) -> MediaAcknowledgement {
        do throws(MalformedPacket) {
            return try packet.withBytes { bytes throws(MalformedPacket) in try MediaAcknowledgement(reading: bytes) }
        } catch {
            throw .malformed(error)
        }
    }

    private mutating func forward(
        _ packet: PacketBuffer,
        from publisher: ParticipantID,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) throws(MediaFault) {
        let header = try header(of: packet)
        notePacket(header, on: connection, at: now)
        // An unknown track was withdrawn while its last packets were on their way.
        guard let track = trackOfAlias[header.trackAlias] else { return }
        guard tracks.hot[track.index].publisher == publisher else {
            throw .malformed(MalformedPacket("track alias \(header.trackAlias) belongs to another participant"))
        }
        if let excess = tracks.hot[track.index].budget.charge(packet.count, to: limits.trackMedia, at: now) {
            throw .overLimit(excess, of: .track)
        }
        // Other simulcast layers number their frames separately and are not relayed.
        guard header.simulcastLayer == 0 else { return }
        if let abandoned = try advance(track, to: header) { abandonFrame(abandoned, of: track, at: now) }
        // Packets that nobody receives are not kept: the first subscriber gets a new keyframe.
        guard tracks.hot[track.index].accepts(header), tracks.hot[track.index].isReceived else { return }
        packet.withMutableBytes { bytes in
            MediaPacketHeader.stamp(&bytes, relayTime: RoomTime(microseconds: now.microseconds))
        }
        changeStream(of: track) { $0.append(packet, header: header, at: now) }
        tracks.hot[track.index].rate.add(packet.count, at: now.microseconds)
        if header.isKeyframe && header.isFirstChunk {
            tracks[track]?.keyframes.satisfied()
            refreshDeadline(of: track)
        }
        let subscribers = tracks.hot[track.index].subscribers
        countedWork.wakes += subscribers.count
        for subscriber in subscribers { wakeForMedia(subscriber) }
        makeRoomIfNeeded(at: now)
    }

    private func header(of packet: PacketBuffer) throws(MediaFault) -> MediaPacketHeader {
        do throws(MalformedPacket) {
            return try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        } catch {
            throw .malformed(error)
        }
    }

    private mutating func advance(
        _ track: TrackID,
        to header: MediaPacketHeader
    ) throws(MediaFault) -> FrameOrder.AbandonedFrame? {
        do throws(MalformedPacket) {
            return try tracks.hot[track.index].order.advance(to: header)
        } catch {
            throw .malformed(error)
        }
    }

    /// Records that a publisher has abandoned a frame, which counts as left out.
    ///
    /// A keyframe must follow, unless no other frame refers to this one. If no keyframe comes, the publisher is asked
    /// for one.
    private mutating func abandonFrame(
        _ frame: FrameOrder.AbandonedFrame,
        of track: TrackID,
        at now: MonotonicInstant
    ) {
        changeStream(of: track) { $0.abandonFrame() }
        guard !frame.isDiscardable else { return }
        if frame.temporalLayer == 0, case .all = tracks.hot[track.index].acceptance {
            tracks.hot[track.index].acceptance = .fromKeyframe
        }
        expectKeyframe(of: track, at: now)
    }

    // MARK: Sending to a subscriber

    /// The next packet for the participant of a connection, from the track that has the turn.
    mutating func nextPacket(
        for id: ParticipantID,
        on connection: ConnectionID,
        at now: MonotonicInstant
    ) -> PacketBuffer? {
        let count = participants.hot[id.index].subscriptions.count
        guard count > 0 else { return nil }
        let turns = participants.hot[id.index].turns
        let isAdmitted = traffic[connection.index].path.admitsFrame(at: now)
        for offset in 0..<count {
            let index = turns.index(offset, of: count)
            guard hasPacket(for: id, subscription: index) else { continue }
            switch step(of: id, subscription: index, on: connection, isAdmitted: isAdmitted, at: now) {
            case .send(let packet):
                participants.hot[id.index].turns.served(index)
                noteProgress(of: id, subscription: index, at: now)
                return packet
            case .idle:
                if !isAdmitted { traffic[connection.index].isHeldBack = true }
            case .needsKeyframe:
                requestKeyframe(for: id, subscription: index, at: now)
                noteProgress(of: id, subscription: index, at: now)
            }
        }
        return nil
    }

    /// Notes what the newest packet tells of a subscription: that it lags, or that it needs the cache for a while.
    private mutating func noteProgress(of id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        let isLagging = participants.hot[id.index].subscriptions[index].cursor.takeLag()
        let isCatchingUp = participants.hot[id.index].subscriptions[index].cursor.isCatchingUp
        guard isLagging || isCatchingUp else { return }
        let track = participants.hot[id.index].subscriptions[index].track
        if isCatchingUp { tracks.hot[track.index].stream.pin(until: now + settings.stream.pinTime) }
        guard isLagging else { return }
        let last = participants.hot[id.index].subscriptions[index].lastLag
        participants.hot[id.index].subscriptions[index].lastLag = now
        // While it goes on lagging nothing is new.
        guard last.map({ now.duration(since: $0) > .seconds(1) }) ?? true else { return }
        reviewWanted(track, at: now)
    }

    /// Whether any of a subscriber's tracks has packets that it was not sent, worth sending or not.
    @inline(__always)  // The call of a function that does not mutate would copy the relay to the stack.
    func hasPacket(for id: ParticipantID) -> Bool {
        for index in participants.hot[id.index].subscriptions.indices where hasPacket(for: id, subscription: index) {
            return true
        }
        return false
    }

    /// Whether a track has packets that the subscriber was not sent, worth sending or not.
    @inline(__always)
    private func hasPacket(for id: ParticipantID, subscription index: Int) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        return position < tracks.hot[fanout].stream.endPosition
            && !participants.hot[id.index].subscriptions[index].isPaused
    }

    private mutating func step(
        of id: ParticipantID,
        subscription index: Int,
        on connection: ConnectionID,
        isAdmitted: Bool,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step {
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        var isBacklogged = isAdmitted && isBacklogged(id, subscription: index, on: connection)
        while true {
            let step = participants.hot[id.index].subscriptions[index].cursor.next(
                in: tracks.hot[fanout].stream.packets,
                at: now,
                policy: settings.forwarding,
                isAdmitted: isAdmitted,
                isBacklogged: isBacklogged
            )
            if let step { return step }
            let needsKeyframe = participants.hot[id.index].subscriptions[index].cursor.fallBehind(
                in: tracks.hot[fanout].stream,
                at: now,
                policy: settings.forwarding
            )
            if needsKeyframe { return .needsKeyframe }
            isBacklogged = false
        }
    }

    /// Whether what waits for a subscriber would take its path longer than anything may be late.
    @inline(__always)
    private func isBacklogged(_ id: ParticipantID, subscription index: Int, on connection: ConnectionID) -> Bool {
        guard traffic[connection.index].path.isLimited else { return false }
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        // Of a backlog with temporal layers, only the lowest is sent in the end.
        guard !tracks.hot[fanout].stream.packets.hasLayers(from: position) else { return false }
        return traffic[connection.index].path.drainTime(of: backlog(of: id, subscription: index))
            > settings.forwarding.longestBacklog
    }

    /// The bytes of a track that wait for a subscriber.
    func backlog(of id: ParticipantID, subscription index: Int) -> Int {
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        return tracks.hot[fanout].stream.packets.bytes(
            from: participants.hot[id.index].subscriptions[index].cursor.position
        )
    }

    // MARK: Keyframes

    /// Handles a subscriber that needs a keyframe because of a fault of its own or of its network.
    mutating func requestKeyframe(for id: ParticipantID, subscription index: Int, at now: MonotonicInstant) {
        let moment = participants.hot[id.index].subscriptions[index].backoff.needed(at: now)
        wantKeyframe(of: participants.hot[id.index].subscriptions[index].track, notBefore: moment, at: now)
    }

    /// Asks a track's publisher for a keyframe as soon as that is allowed.
    ///
    /// A paused publisher is not asked: it resumes with a keyframe.
    mutating func wantKeyframe(of track: TrackID, notBefore moment: MonotonicInstant, at now: MonotonicInstant) {
        guard tracks[track]?.info.enabled == true else { return }
        if tracks[track]?.keyframes.wanted(notBefore: moment, at: now) == true { askForKeyframe(of: track) }
        refreshDeadline(of: track)
    }

    /// Expects a keyframe from a publisher that must begin with one; if none comes, the publisher is asked.
    mutating func expectKeyframe(of track: TrackID, at now: MonotonicInstant) {
        guard tracks[track]?.info.enabled == true, !tracks.hot[track.index].subscribers.isEmpty else { return }
        tracks[track]?.keyframes.keyframeExpected(at: now)
        refreshDeadline(of: track)
    }

    /// Asks a track's publisher for a keyframe.
    mutating func askForKeyframe(of track: TrackID) {
        guard let info = tracks[track]?.info else { return }
        let message = ServerMessage.keyframeRequest(KeyframeRequest(trackId: info.id))
        send(message, toParticipant: tracks.hot[track.index].publisher)
    }
}
