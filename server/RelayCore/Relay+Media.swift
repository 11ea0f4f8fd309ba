package import MediaCore
import RoomProtocol

extension Relay {
    /// A binary message came; nobody else holds it yet, and the relay stamps it and then only reads it.
    package mutating func receive(_ packet: PacketBuffer, from id: SlotID, at now: MonotonicInstant) {
        guard case .joined = connections[id]?.phase else {
            if case .awaitingJoin = connections[id]?.phase {
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
        }
    }

    private mutating func forward(
        _ packet: PacketBuffer,
        from id: SlotID,
        at now: MonotonicInstant
    ) throws(MalformedPacket) {
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        // A track that is not there was withdrawn while its last packets were on their way.
        guard let trackID = trackOfAlias[header.trackAlias], let publisher = tracks[trackID]?.publisher else { return }
        guard publisher == id else {
            throw MalformedPacket("track alias \(header.trackAlias) belongs to another participant")
        }
        packet.withMutableBytes { bytes in
            MediaPacketHeader.stamp(&bytes, relayTime: RoomTime(microseconds: now.microseconds))
        }
        try tracks[trackID]?.stream.append(packet, header: header, at: now)
        if header.isKeyframe && header.isFirstChunk { tracks[trackID]?.keyframes.satisfied() }
        let count = tracks[trackID]?.subscribers.count ?? 0
        for index in 0..<count {
            if let subscriber = tracks[trackID]?.subscribers[index] { wake(subscriber) }
        }
    }

    /// The packet that a connection is sent next, of whichever of its tracks has the turn.
    mutating func nextPacket(for id: SlotID, at now: MonotonicInstant) -> PacketBuffer? {
        let count = connections[id]?.subscriptions.count ?? 0
        guard count > 0, let turn = connections[id]?.turn else { return nil }
        for offset in 0..<count {
            let index = (turn + offset) % count
            guard var subscription = connections[id]?.subscriptions[index] else { continue }
            guard let step = step(&subscription, at: now) else { continue }
            connections[id]?.subscriptions[index] = subscription
            switch step {
            case .send(let packet):
                connections[id]?.turn = index + 1
                return packet
            case .idle:
                break
            case .needsKeyframe:
                requestKeyframe(for: id, subscription: index, at: now)
            }
        }
        return nil
    }

    private func step(
        _ subscription: inout Connection.Subscription,
        at now: MonotonicInstant
    ) -> ForwardingCursor.Step? {
        guard let track = tracks[subscription.track] else { return nil }
        return subscription.cursor.next(in: track.stream, at: now, policy: settings.forwarding)
    }

    /// A subscriber cannot go on without a keyframe, for a fault of its own or of its network.
    mutating func requestKeyframe(for id: SlotID, subscription index: Int, at now: MonotonicInstant) {
        guard var subscription = connections[id]?.subscriptions[index] else { return }
        let moment = subscription.backoff.needed(at: now)
        connections[id]?.subscriptions[index] = subscription
        if tracks[subscription.track]?.keyframes.wanted(notBefore: moment, at: now) == true {
            askForKeyframe(of: subscription.track)
        }
    }

    /// Asks a track's publisher for a keyframe.
    mutating func askForKeyframe(of trackID: SlotID) {
        guard let track = tracks[trackID] else { return }
        send(.keyframeRequest(KeyframeRequest(trackId: track.info.id)), to: track.publisher)
    }
}
