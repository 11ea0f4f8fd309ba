import Adaptation
package import MediaCore
import RoomProtocol

/// Acknowledgements in both directions: of the media that a peer publishes, and of what it receives.
extension Relay {
    // MARK: Of published media

    /// Counts a text message, which an acknowledgement of media covers as well.
    mutating func countText(_ bytes: Int, from id: ConnectionID, at now: MonotonicInstant) {
        connections.bulk[id.index].arrivals.received(bytes, at: now)
        connections.bulk[id.index].arrivals.messageEnded(isAcknowledgement: false)
        acknowledgeIfDue(id, at: now)
    }

    /// Notes a video packet whose header can be read, whatever becomes of it.
    mutating func notePacket(_ header: MediaPacketHeader, on id: ConnectionID, at now: MonotonicInstant) {
        // The sum may be any number: the publisher writes both.
        let encoded = header.captureTime.microseconds &+ Int64(header.encodeDelay)
        connections.bulk[id.index].hasSentMedia = true
        connections.bulk[id.index].hasJustSent = true
        if header.isLastChunk { connections.bulk[id.index].uplink.note(sent: encoded, at: now.microseconds) }
        let chunk = AcknowledgementSchedule.Chunk(header, simulcastLayer: header.simulcastLayer, sentTime: encoded)
        connections.bulk[id.index].arrivals.chunkEnded(chunk)
        acknowledgeIfDue(id, at: now)
    }

    private mutating func acknowledgeIfDue(_ id: ConnectionID, at now: MonotonicInstant) {
        guard connections.bulk[id.index].hasSentMedia, !connections.hot[id.index].isAcknowledgementDue,
            connections.bulk[id.index].arrivals.isDue(at: now)
        else { return }
        connections.hot[id.index].isAcknowledgementDue = true
        wake(id, for: .urgent)
    }

    /// The acknowledgement that a connection sends before anything else.
    mutating func acknowledgementTurn(of id: ConnectionID, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        connections.hot[id.index].isAcknowledgementDue = false
        guard let acknowledgement = connections.bulk[id.index].arrivals.acknowledgement(at: now) else { return nil }
        connections.bulk[id.index].path.wrote(MediaAcknowledgement.length, .acknowledgement, at: now)
        let message = OutgoingMessage.exclusive(packet(of: acknowledgement))
        guard let participant = connections.hot[id.index].participant else { return (message: message, isLast: false) }
        let isLast = connections.hot[id.index].messages.isEmpty && !hasPacket(for: participant)
        if isLast { connections.hot[id.index].wakefulness = .asleep }
        return (message: message, isLast: isLast)
    }

    /// Writes an acknowledgement to the memory of the last one, unless a socket still holds that.
    private mutating func packet(of acknowledgement: MediaAcknowledgement) -> PacketBuffer {
        if !isKnownUniquelyReferenced(&acknowledgementPacket) {
            acknowledgementPacket = PacketBuffer(capacity: MediaAcknowledgement.length)
        }
        acknowledgementPacket.count = MediaAcknowledgement.length
        acknowledgementPacket.transportHeaderCount = 0
        acknowledgementPacket.withMutableBytes { acknowledgement.write(to: &$0) }
        return acknowledgementPacket
    }

    // MARK: Of forwarded media

    /// Notes that TCP holds back what is sent to a connection, to measure the round trip.
    package mutating func pathIsHeld(to id: SlotID, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        connections.bulk[id.index].path.noteHold(at: now)
    }

    /// Takes a peer's acknowledgement, which may have any content.
    mutating func acknowledged(
        _ acknowledgement: MediaAcknowledgement,
        on id: ConnectionID,
        by participant: ParticipantID,
        at now: MonotonicInstant
    ) {
        connections.bulk[id.index].path.acknowledged(acknowledgement, at: now)
        // A peer that thins its acknowledgements may have said nothing for long: then nothing waits.
        if connections.bulk[id.index].isHeldBack, connections.bulk[id.index].path.endsOutage {
            endPursuits(of: participant)
        }
        if connections.bulk[id.index].path.isFirstDeliveryOpen {
            let isFull = hasPacket(for: participant) || isDraining(participant, on: id)
            connections.bulk[id.index].path.noteFirstDelivery(isFull: isFull, at: now)
        }
        allot(participant, on: id, at: now)
        reviewCatchUps(of: participant, on: id, acknowledgement, at: now)
        guard connections.bulk[id.index].isHeldBack, connections.bulk[id.index].path.mayBegin(at: now) else { return }
        connectionDeadlines.set(nil, for: id)
        release(id)
    }

    /// Notes that a frame waits until the path has room.
    ///
    /// The next acknowledgement ends that, or the time after which none is waited for: a peer may say nothing until it
    /// gets more.
    mutating func holdBack(_ id: ConnectionID, at now: MonotonicInstant) {
        connections.bulk[id.index].isHeldBack = true
        if connections.bulk[id.index].path.isTested { connections.bulk[id.index].path.frameWaits(at: now) }
        guard let opening = connections.bulk[id.index].path.opening(at: now) else { return }
        connectionDeadlines.set(opening, for: id)
    }

    /// Looks again whether the frame that waits on a connection may be sent.
    mutating func release(_ id: ConnectionID) {
        connections.bulk[id.index].isHeldBack = false
        wake(id, for: .urgent)
    }

    /// Notes that a participant's path has come back after an outage.
    private mutating func endPursuits(of id: ParticipantID) {
        for index in participants.hot[id.index].subscriptions.indices {
            participants.hot[id.index].subscriptions[index].cursor.outageEnded()
        }
    }
}
