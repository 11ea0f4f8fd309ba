package import MediaCore
import RoomProtocol

extension Relay {
    /// A binary message came; nobody else holds it yet, and the relay stamps it and then only reads it.
    package mutating func receive(_ packet: PacketBuffer, from id: SlotID, at now: MonotonicInstant) {
        guard connections[id]?.isJoined == true else {
            if connections[id]?.isClosing == false {
                fail(id, ErrorMessage(.malformedMessage, "media before \"join\"", fatal: true), at: now)
            }
            return
        }
        do {
            switch packet.withBytes({ binaryMessageKind(of: $0) }) {
            case .video: try forward(packet, from: id, at: now)
            case .acknowledgement: _ = try packet.withBytes { try MediaAcknowledgement(reading: $0) }
            case nil: break
            }
        } catch {
            let sentence = "a media packet breaks the protocol: \(error)"
            fail(id, ErrorMessage(.malformedMessage, sentence, fatal: true), at: now)
            dropSlowParticipants(at: now)
        }
    }

    private mutating func forward(
        _ packet: PacketBuffer,
        from id: SlotID,
        at now: MonotonicInstant
    ) throws(MalformedPacket) {
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        // A track that is not there was withdrawn while its last packets were on their way.
        guard let trackID = trackOfAlias[header.trackAlias] else { return }
        guard feeds[trackID.index].publisher == id else {
            throw MalformedPacket("track alias \(header.trackAlias) belongs to another participant")
        }
        packet.withMutableBytes { bytes in
            MediaPacketHeader.stamp(&bytes, relayTime: RoomTime(microseconds: now.microseconds))
        }
        try feeds[trackID.index].stream.append(packet, header: header, at: now)
        // What nobody receives is not kept: the first who comes is given a new keyframe.
        guard isReceived(trackID) else { return feeds[trackID.index].stream.clear() }
        if header.isKeyframe && header.isFirstChunk { tracks[trackID]?.keyframes.satisfied() }
        for subscriber in feeds[trackID.index].subscribers { wake(subscriber) }
    }

    /// The packet that a connection is sent next, of whichever of its tracks has the turn.
    mutating func nextPacket(for id: SlotID, at now: MonotonicInstant) -> PacketBuffer? {
        let count = outlets[id.index].subscriptions.count
        let turn = outlets[id.index].turn
        for offset in 0..<count {
            let index = (turn + offset) % count
            switch step(of: id, subscription: index, at: now) {
            case .send(let packet):
                outlets[id.index].turn = index + 1
                return packet
            case .idle:
                break
            case .needsKeyframe:
                requestKeyframe(for: id, subscription: index, at: now)
            }
        }
        return nil
    }

    private mutating func step(
        of id: SlotID,
        subscription index: Int,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step {
        let feed = outlets[id.index].subscriptions[index].track.index
        let position = outlets[id.index].subscriptions[index].cursor.position
        guard position < feeds[feed].stream.endPosition else { return .idle }
        return outlets[id.index].subscriptions[index].cursor.next(
            in: feeds[feed].stream,
            at: now,
            policy: settings.forwarding
        )
    }

    // MARK: Keyframes

    /// A subscriber cannot go on without a keyframe, for a fault of its own or of its network.
    mutating func requestKeyframe(for id: SlotID, subscription index: Int, at now: MonotonicInstant) {
        let moment = outlets[id.index].subscriptions[index].backoff.needed(at: now)
        wantKeyframe(of: outlets[id.index].subscriptions[index].track, notBefore: moment, at: now)
    }

    /// Has a track's publisher asked for a keyframe, as soon as that is allowed.
    ///
    /// One that pauses is not asked: it begins with a keyframe when it goes on.
    mutating func wantKeyframe(of trackID: SlotID, notBefore moment: MonotonicInstant, at now: MonotonicInstant) {
        guard tracks[trackID]?.info.enabled == true else { return }
        if tracks[trackID]?.keyframes.wanted(notBefore: moment, at: now) == true { askForKeyframe(of: trackID) }
        schedule(tracks[trackID]?.keyframes.nextDeadline)
    }

    /// A track's publisher has cause to begin with a keyframe; should none come, it is asked.
    mutating func expectKeyframe(of trackID: SlotID, at now: MonotonicInstant) {
        guard tracks[trackID]?.info.enabled == true, !feeds[trackID.index].subscribers.isEmpty else { return }
        tracks[trackID]?.keyframes.keyframeExpected(at: now)
        schedule(tracks[trackID]?.keyframes.nextDeadline)
    }

    /// Asks a track's publisher for a keyframe.
    mutating func askForKeyframe(of trackID: SlotID) {
        guard let info = tracks[trackID]?.info else { return }
        send(.keyframeRequest(KeyframeRequest(trackId: info.id)), to: feeds[trackID.index].publisher)
    }
}
