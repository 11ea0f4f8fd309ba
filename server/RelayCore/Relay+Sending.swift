package import MediaCore
import RoomProtocol

extension Relay {
    // MARK: Messages of a connection

    /// The next message for a connection whose socket can take one now; `nil` when there is nothing.
    ///
    /// The call may wake other connections: when a subscriber has fallen behind, its publisher gets a keyframe request.
    package mutating func nextMessage(for id: SlotID, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        guard connections.contains(id) else { return nil }
        if connections.hot[id.index].isAcknowledgementDue, let turn = acknowledgementTurn(of: id, at: now) {
            return turn
        }
        if let turn = outboxTurn(of: id, at: now) { return turn }
        if let participant = connections.hot[id.index].participant,
            let packet = nextPacket(for: participant, on: id, at: now)
        {
            connections.bulk[id.index].path.wrote(packet.count, .media, at: now)
            let isLast = connections.hot[id.index].messages.isEmpty && !hasPacket(for: participant)
            if isLast { connections.hot[id.index].wakefulness = .asleep }
            return (message: .shared(packet), isLast: isLast)
        }
        // A message may go out before the packet that it is about.
        if let turn = outboxTurn(of: id, at: now) { return turn }
        dropSlowConnections(at: now)
        connections.hot[id.index].wakefulness = .asleep
        return closeMessage(for: id).map { (message: $0, isLast: true) }
    }

    private mutating func closeMessage(for id: ConnectionID) -> OutgoingMessage? {
        guard case .closing(let code, let reason, _) = connections[id]?.phase else { return nil }
        guard connections[id]?.isCloseSaid == false else { return nil }
        connections[id]?.isCloseSaid = true
        return .close(code: UInt16(clamping: code.rawValue), reason: reason)
    }

    /// Takes the oldest message from a connection's outbox.
    private mutating func outboxTurn(of id: ConnectionID, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        guard let message = connections.hot[id.index].messages.first else { return nil }
        connections.hot[id.index].messages.removeFirst()
        connections.hot[id.index].size -= message.size
        waitingSignaling -= message.size
        connections.hot[id.index].unreadRequests = 0
        connections.hot[id.index].waitsSince = countedWork.deliveries
        switch message {
        case .text(let text):
            connections.bulk[id.index].path.wrote(text.utf8.count, .text, at: now)
            return (message: .text(text), isLast: false)
        case .packet(let packet):
            connections.bulk[id.index].path.servesTestedTrack = false
            connections.bulk[id.index].path.wrote(packet.count, .media, at: now)
            return (message: .shared(packet), isLast: false)
        }
    }

    // MARK: Signaling

    /// Encodes a message as JSON.
    mutating func encode(_ message: ServerMessage) -> String {
        countedWork.encodings += 1
        return message.text
    }

    /// Puts a signaling message into a connection's outbox.
    mutating func send(_ message: ServerMessage, to id: ConnectionID) {
        send(text: encode(message), to: id)
    }

    /// Puts a signaling message into a participant's outbox, if it has a connection.
    mutating func send(_ message: ServerMessage, toParticipant participant: ParticipantID) {
        guard let connection = participants.hot[participant.index].connection else { return }
        send(message, to: connection)
    }

    /// Puts the same signaling message into the outboxes of all participants in a room except one.
    mutating func broadcast(_ message: ServerMessage, in room: String, except sender: ParticipantID) {
        broadcast(text: encode(message), in: room, except: sender)
    }

    /// Puts the same signaling message into the outboxes of all participants in a room except one.
    mutating func broadcast(text: String, in room: String, except sender: ParticipantID) {
        guard let receivers = rooms[room]?.participants else { return }
        for receiver in receivers where receiver != sender {
            guard let connection = participants.hot[receiver.index].connection else { continue }
            send(text: text, to: connection)
        }
    }

    mutating func send(text: String, to id: ConnectionID) { put(.text(text), into: id) }

    /// Puts a message into a connection's outbox.
    mutating func put(_ message: Outbox.Message, into id: ConnectionID) {
        guard connections.contains(id) else { return }
        countedWork.deliveries += 1
        if connections.hot[id.index].messages.isEmpty { connections.hot[id.index].waitsSince = countedWork.deliveries }
        let before = connections.hot[id.index].size
        let after = before + message.size
        connections.hot[id.index].messages.append(message)
        connections.hot[id.index].size = after
        waitingSignaling += message.size
        if before <= settings.maximumOutbox && after > settings.maximumOutbox { overfull.append(id) }
        wake(id, for: .signaling)
    }

    /// Closes the connections whose outbox has passed its limit, and, if all outboxes together have passed theirs, those
    /// for which much has waited for long.
    mutating func dropSlowConnections(at now: MonotonicInstant) {
        repeat {
            while let id = overfull.popLast() {
                let sentence = "more than \(settings.maximumOutbox) of signaling were waiting to be read"
                drop(id, saying: sentence, at: now)
            }
            if waitingSignaling > settings.maximumOutboxes { dropSlowestConnections(at: now) }
            // The others in the room hear who has gone, which can be too much for one of them.
        } while !overfull.isEmpty
    }

    /// Frees an eighth of the memory for signaling, so that the work is not repeated for each message.
    ///
    /// The first to go are those whose outboxes are large and have waited for long. One who has just joined a large room
    /// has much that waits, but not for long.
    private mutating func dropSlowestConnections(at now: MonotonicInstant) {
        countedWork.memoryPasses += 1
        let target = DataSize(bytes: settings.maximumOutboxes.bytes / 8 * 7)
        let costs = connections.ids.map { id in
            let outbox = connections.hot[id.index]
            return (id: id, cost: Double(outbox.size.bytes) * Double(countedWork.deliveries - outbox.waitsSince))
        }
        for (id, _) in costs.sorted(by: { $0.cost > $1.cost }) where waitingSignaling > target {
            let sentence = "the server's memory for signaling is used up, and much waited here for long"
            drop(id, saying: sentence, at: now)
        }
    }

    /// Closes a connection as too slow; it gets none of the messages that wait for it.
    private mutating func drop(_ id: ConnectionID, saying sentence: String, at now: MonotonicInstant) {
        discardOutbox(of: id)
        guard connections[id]?.isClosing == false else { return }
        fail(id, ErrorMessage(.tooSlow, sentence, fatal: true), at: now)
    }

    /// Discards the messages that wait for a connection; packets among them count as left out at their track's end.
    mutating func discardOutbox(of id: ConnectionID) {
        let packets = connections.hot[id.index].packetCount
        if packets > 0 {
            endedCounts.withdraw(packets, because: .ended)
            if let participant = connections.hot[id.index].participant {
                participants[participant]?.endedCounts.withdraw(packets, because: .ended)
            }
        }
        waitingSignaling -= connections.hot[id.index].size
        connections.hot[id.index].size = .zero
        connections.hot[id.index].messages.removeAll()
    }

    // MARK: Waking

    /// Tells the driver that there are media to send to a participant.
    mutating func wakeForMedia(_ participant: ParticipantID) {
        guard let connection = participants.hot[participant.index].connection else { return }
        wake(connection, for: .urgent)
    }

    /// Tells the driver that there are media to send to all who receive an encoding.
    ///
    /// When a frame comes, what the relay knows of them is in none of the processor's caches. Before the first is
    /// served, it is asked for all that will be needed, and fetches it side by side.
    mutating func wakeSubscribers(of encoding: EncodingID) {
        let subscribers = encodings.hot[encoding.index].subscribers
        countedWork.wakes += subscribers.count
        for subscriber in subscribers { participants.prefetchHot(subscriber, lines: 1) }
        for subscriber in subscribers {
            guard let connection = participants.hot[subscriber.index].connection else { continue }
            connections.prefetchHot(connection, lines: 1)
            connections.prefetchBulk(connection, lines: SubscriberPath.hotLines)
            // The array is only a reference, and lies first. To use it, even to ask for its address, would wait for its
            // memory.
            unsafe prefetchLines(4, at: participants.firstReferenceOfHot(subscriber))
        }
        for subscriber in subscribers {
            guard let connection = participants.hot[subscriber.index].connection else { continue }
            unsafe prefetchLines(1, at: connections.bulk[connection.index].path.addressOfWrites())
        }
        for subscriber in subscribers { wakeForMedia(subscriber) }
    }

    /// Tells the driver that there is something to send, unless it already knows of something as urgent.
    mutating func wake(_ id: ConnectionID, for reason: Outbox.Wakefulness) {
        guard connections.hot[id.index].wakefulness < reason else { return }
        connections.hot[id.index].wakefulness = reason
        awakened.append(id)
    }
}
