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
        connections.bulk[id.index].arrivals.received(packet.count, at: now)
        guard let publisher = connections.hot[id.index].participant else {
            if connections[id]?.isClosing == false {
                fail(id, ErrorMessage(.malformedMessage, "media before \"join\"", fatal: true), at: now)
            }
            return
        }
        do throws(MediaFault) {
            let kind = packet.withBytes { binaryMessageKind(of: $0) }
            switch kind {
            case .video: break
            case .acknowledgement: connections.bulk[id.index].arrivals.messageEnded(isAcknowledgement: true)
            case nil: connections.bulk[id.index].arrivals.messageEnded(isAcknowledgement: false)
            }
            if let excess = charge(packet, of: kind, to: publisher, at: now) {
                throw .overLimit(excess, of: .participant)
            }
            switch kind {
            case .video: try forward(packet, from: publisher, on: id, at: now)
            case .acknowledgement: acknowledged(try Self.acknowledgement(in: packet), on: id, by: publisher, at: now)
            case nil: break
            }
        } catch {
            refuse(error, from: id, at: now)
        }
    }

    @inline(never)  // Inlined, it would copy the relay for each packet.
    private mutating func refuse(_ fault: MediaFault, from id: ConnectionID, at now: MonotonicInstant) {
        fail(id, message(for: fault), at: now)
        dropSlowConnections(at: now)
    }

    private mutating func charge(
        _ packet: PacketBuffer,
        of kind: BinaryMessageKind?,
        to participant: ParticipantID,
        at now: MonotonicInstant
    ) -> MediaBudget.Excess? {
        let (index, count, limits) = (participant.index, packet.count, limits.participantMedia)
        switch kind {
        case .acknowledgement: return participants.hot[index].budget.chargeAcknowledgement(count, to: limits, at: now)
        case .video, nil: return participants.hot[index].budget.charge(count, to: limits, at: now)
        }
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

    private static func acknowledgement(in packet: PacketBuffer) throws(MediaFault) -> MediaAcknowledgement {
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
        let header = try Self.header(of: packet)
        notePacket(header, on: connection, at: now)
        if !participants.hot[publisher.index].isReviewDue { planReview(of: publisher, at: now) }
        // An unknown track was withdrawn while its last packets were on their way.
        guard let track = trackOfAlias[header.trackAlias] else { return }
        guard tracks.hot[track.index].publisher == publisher else {
            throw .malformed(MalformedPacket("track alias \(header.trackAlias) belongs to another participant"))
        }
        if let excess = tracks.hot[track.index].budget.charge(packet.count, to: limits.trackMedia, at: now) {
            throw .overLimit(excess, of: .track)
        }
        guard Int(header.simulcastLayer) < tracks.hot[track.index].encodings.count else {
            let layer = "simulcast layer \(header.simulcastLayer)"
            throw .malformed(MalformedPacket("\(layer), which \"publish\" did not name"))
        }
        let encoding = tracks.hot[track.index].encodings[Int(header.simulcastLayer)]
        if let layer = try advance(encoding, to: header) { abandonFrame(ofLayer: layer, of: encoding, at: now) }
        // Packets that nobody receives are not kept: the first subscriber gets a new keyframe.
        guard encodings.hot[encoding.index].admit(header), encodings.hot[encoding.index].isReceived else { return }
        packet.withMutableBytes { bytes in
            MediaPacketHeader.stamp(&bytes, relayTime: RoomTime(microseconds: now.microseconds))
        }
        store(packet, header, in: encoding, of: track, at: now)
    }

    /// Stores a packet in its encoding's stream and wakes those who get it.
    private mutating func store(
        _ packet: PacketBuffer,
        _ header: MediaPacketHeader,
        in encoding: EncodingID,
        of track: TrackID,
        at now: MonotonicInstant
    ) {
        changeStream(of: encoding) { $0.append(packet, header: header, at: now) }
        encodings.hot[encoding.index].rate.add(packet.count, at: now.microseconds)
        if !encodings.hot[encoding.index].hasFlowed(within: Self.flowTime, at: now) {
            encodings.hot[encoding.index].beginFlow(at: now)
        }
        encodings.hot[encoding.index].lastArrival = now
        if tracks.hot[track.index].encodings.count > 1 { keepWithinTrack(track) }
        if header.isKeyframe && header.isFirstChunk { keyframeBegan(encoding, at: now) }
        wakeSubscribers(of: encoding)
        makeRoomIfNeeded(at: now)
    }

    private static func header(of packet: PacketBuffer) throws(MediaFault) -> MediaPacketHeader {
        do throws(MalformedPacket) {
            return try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        } catch {
            throw .malformed(error)
        }
    }

    private mutating func advance(
        _ encoding: EncodingID,
        to header: MediaPacketHeader
    ) throws(MediaFault) -> UInt8? {
        do throws(MalformedPacket) {
            return try encodings.hot[encoding.index].order.advance(to: header)
        } catch {
            throw .malformed(error)
        }
    }

    /// Records that a publisher has abandoned a frame, which counts as left out.
    ///
    /// Without a frame of layer 0 nothing can be decoded: a keyframe must follow, and the publisher is asked for one if
    /// none comes. Without one of a higher layer, the publisher goes on with the layers that are intact.
    private mutating func abandonFrame(
        ofLayer temporalLayer: UInt8,
        of encoding: EncodingID,
        at now: MonotonicInstant
    ) {
        changeStream(of: encoding) { $0.abandonFrame() }
        guard temporalLayer == 0 else { return }
        if case .all = encodings.hot[encoding.index].acceptance {
            encodings.hot[encoding.index].acceptance = .fromKeyframe
        }
        expectKeyframe(of: encoding, at: now)
    }
}
