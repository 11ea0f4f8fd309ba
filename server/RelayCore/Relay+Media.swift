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
        guard let publisher = connections.hot[id.index].participant else {
            if connections[id]?.isClosing == false {
                fail(id, ErrorMessage(.malformedMessage, "media before \"join\"", fatal: true), at: now)
            }
            return
        }
        do throws(MediaFault) {
            let excess = participants.hot[publisher.index].budget.charge(
                packet.count,
                to: limits.participantMedia,
                at: now
            )
            if let excess { throw .overLimit(excess, of: .participant) }
            switch packet.withBytes({ binaryMessageKind(of: $0) }) {
            case .video: try forward(packet, from: publisher, at: now)
            case .acknowledgement: try check(acknowledgement: packet)
            case nil: break
            }
        } catch {
            fail(id, message(for: error), at: now)
            dropSlowConnections(at: now)
        }
    }

    private func message(for fault: MediaFault) -> ErrorMessage {
        switch fault {
        case .malformed(let problem):
            let sentence = "a media packet breaks the protocol: \(problem)"
            return ErrorMessage(.malformedMessage, sentence, fatal: true)
        case .overLimit(let excess, of: .participant):
            let (packets, rate) = (settings.media.participantPackets, settings.media.participantRate)
            let limit = excess == .packets ? "\(packets) packets a second" : "\(rate)"
            return ErrorMessage(.limitReached, "a participant may send \(limit)", fatal: true)
        case .overLimit(let excess, of: .track):
            let (packets, rate) = (settings.media.trackPackets, settings.media.trackRate)
            let limit = excess == .packets ? "\(packets) packets a second" : "\(rate)"
            return ErrorMessage(.limitReached, "a track may send \(limit)", fatal: true)
        }
    }

    private func check(acknowledgement packet: PacketBuffer) throws(MediaFault) {
        do throws(MalformedPacket) {
            _ = try packet.withBytes { bytes throws(MalformedPacket) in try MediaAcknowledgement(reading: bytes) }
        } catch {
            throw .malformed(error)
        }
    }

    private mutating func forward(
        _ packet: PacketBuffer,
        from publisher: ParticipantID,
        at now: MonotonicInstant
    ) throws(MediaFault) {
        let header = try header(of: packet)
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

    /// The next packet for a participant, from the track that has the turn.
    mutating func nextPacket(for id: ParticipantID, at now: MonotonicInstant) -> PacketBuffer? {
        let count = participants.hot[id.index].subscriptions.count
        let turns = participants.hot[id.index].turns
        for offset in 0..<count {
            let index = turns.index(offset, of: count)
            guard hasPacket(for: id, subscription: index) else { continue }
            switch step(of: id, subscription: index, at: now) {
            case .send(let packet):
                participants.hot[id.index].turns.served(index)
                return packet
            case .idle:
                break
            case .needsKeyframe:
                requestKeyframe(for: id, subscription: index, at: now)
            }
        }
        return nil
    }

    /// Whether any of a subscriber's tracks has packets that it was not sent, worth sending or not.
    func hasPacket(for id: ParticipantID) -> Bool {
        for index in participants.hot[id.index].subscriptions.indices where hasPacket(for: id, subscription: index) {
            return true
        }
        return false
    }

    /// Whether a track has packets that the subscriber was not sent, worth sending or not.
    private func hasPacket(for id: ParticipantID, subscription index: Int) -> Bool {
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        let position = participants.hot[id.index].subscriptions[index].cursor.position
        return position < tracks.hot[fanout].stream.endPosition
            && !participants.hot[id.index].subscriptions[index].isPaused
    }

    private mutating func step(
        of id: ParticipantID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step {
        let fanout = participants.hot[id.index].subscriptions[index].track.index
        while true {
            let step = participants.hot[id.index].subscriptions[index].cursor.next(
                in: tracks.hot[fanout].stream.packets,
                at: now,
                policy: settings.forwarding
            )
            if let step { return step }
            let needsKeyframe = participants.hot[id.index].subscriptions[index].cursor.fallBehind(
                in: tracks.hot[fanout].stream,
                at: now,
                policy: settings.forwarding
            )
            if needsKeyframe { return .needsKeyframe }
        }
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
