package import MediaCore
package import RoomProtocol

/// The relay as a value: rooms, participants, tracks and who receives what.
///
/// Messages go in with the time at which they came; what is to be sent is pulled per connection when its socket can
/// take it, so that everything is decided as late as possible. Owns no socket, clock or random source, and never looks
/// inside a picture.
package struct Relay: Sendable {
    /// Something to send on one connection.
    package enum Outgoing: Sendable {
        /// A signaling message.
        case text(String)
        /// A media packet, shared with other connections.
        case media(PacketBuffer)
        /// Nothing more: close the connection.
        case close(RoomErrorCode, reason: String)
    }

    /// What is going on, for logs.
    package struct Census: Hashable, Sendable {
        package var connections = 0
        package var rooms = 0
        package var tracks = 0
        /// Bytes of packets that are kept for subscribers.
        package var cachedBytes = 0
    }

    let settings: RelaySettings
    let bootID: String?
    let serverName: String
    var connections = SlotArray<Connection>()
    var tracks = SlotArray<Track>()
    var trackOfAlias: [UInt32: SlotID] = [:]
    var trackOfID: [String: SlotID] = [:]
    var rooms: [String: Room] = [:]
    var nextAlias: UInt32 = 1
    private var awakened: [SlotID] = []
    private var overdue: [SlotID] = []
    var notices: [RelayNotice] = []

    /// A relay without rooms.
    ///
    /// Clients are told `bootID`, this machine's, so that they know whether they share its clock, and `serverName`,
    /// program and version.
    package init(settings: RelaySettings, bootID: String?, serverName: String) {
        self.settings = settings
        self.bootID = bootID
        self.serverName = serverName
    }

    /// What is going on.
    package var census: Census {
        Census(
            connections: connections.count,
            rooms: rooms.count,
            tracks: tracks.count,
            cachedBytes: tracks.ids.reduce(0) { $0 + (tracks[$1]?.stream.size.bytes ?? 0) }
        )
    }

    // MARK: Connections

    /// A WebSocket is open, for which the client offered `subprotocol`.
    ///
    /// What comes back is the connection's name in all further calls.
    package mutating func connectionOpened(subprotocol: String?, at now: MonotonicInstant) -> SlotID {
        let id = connections.insert(Connection(phase: .awaitingJoin(deadline: now + settings.joinTimeout)))
        if subprotocol != WireFormat.subprotocol {
            let offer = subprotocol.map { "\"\($0)\"" } ?? "no subprotocol"
            fail(
                id,
                ErrorMessage(
                    .notSupported,
                    "this server speaks the WebSocket subprotocol \"\(WireFormat.subprotocol)\"; "
                        + "the client offered \(offer)",
                    fatal: true
                ),
                at: now
            )
        }
        return id
    }

    /// A WebSocket is closed, whoever closed it.
    package mutating func connectionClosed(_ id: SlotID, at now: MonotonicInstant) {
        removeParticipant(of: id, at: now)
        _ = connections.remove(id)
    }

    /// What the connection, whose socket can take a message now, is sent; `nil` when there is nothing.
    package mutating func nextMessage(for id: SlotID, at now: MonotonicInstant) -> Outgoing? {
        guard connections.contains(id) else { return nil }
        if let text = popOutbox(of: id) { return .text(text) }
        if case .closing(let code, let reason, _) = connections[id]?.phase {
            guard connections[id]?.isCloseSaid == false else { return nil }
            connections[id]?.isCloseSaid = true
            return .close(code, reason: reason)
        }
        if let packet = nextPacket(for: id, at: now) { return .media(packet) }
        // A keyframe request of `nextPacket` may have gone to the connection itself.
        if let text = popOutbox(of: id) { return .text(text) }
        connections[id]?.isAwake = false
        return nil
    }

    /// Hands out the connections that have something new to send, and forgets them.
    package mutating func takeAwakened(_ body: (SlotID) -> Void) {
        for id in awakened { body(id) }
        awakened.removeAll(keepingCapacity: true)
    }

    /// Hands out the connections that did not take their close in time and must be cut, and forgets them.
    package mutating func takeOverdue(_ body: (SlotID) -> Void) {
        for id in overdue { body(id) }
        overdue.removeAll(keepingCapacity: true)
    }

    /// Hands out what is worth a line in the log, and forgets it.
    package mutating func takeNotices(_ body: (RelayNotice) -> Void) {
        guard !notices.isEmpty else { return }
        for notice in notices { body(notice) }
        notices.removeAll()
    }

    /// Tells everybody that the server is going down, and closes all connections.
    package mutating func shutDown(at now: MonotonicInstant) {
        for id in connections.ids {
            send(.leave(Leave(reason: "the server is shutting down", reconnect: true)), to: id)
            beginClosing(id, .shuttingDown, reason: "the server is shutting down", at: now)
        }
    }

    // MARK: Time

    /// When `deadlineReached` must be called.
    package var nextDeadline: MonotonicInstant? {
        let forConnections = connections.ids.compactMap { connections[$0]?.deadline }.min()
        let forTracks = tracks.ids.compactMap { tracks[$0]?.keyframes.nextDeadline }.min()
        return [forConnections, forTracks].compactMap(\.self).min()
    }

    /// `nextDeadline` has come.
    package mutating func deadlineReached(at now: MonotonicInstant) {
        for id in connections.ids {
            guard let deadline = connections[id]?.deadline, deadline <= now else { continue }
            if case .awaitingJoin = connections[id]?.phase {
                fail(id, ErrorMessage(.timedOut, "no \"join\" came in time", fatal: true), at: now)
            } else {
                overdue.append(id)
            }
        }
        for id in tracks.ids where tracks[id]?.keyframes.deadlineReached(at: now) == true {
            askForKeyframe(of: id)
        }
    }

    // MARK: Sending

    /// Puts a signaling message into a connection's outbox.
    mutating func send(_ message: ServerMessage, to id: SlotID) {
        send(text: message.text, to: id)
    }

    /// Puts the same signaling message into the outboxes of all of a room but one.
    mutating func broadcast(_ message: ServerMessage, in room: String, except sender: SlotID) {
        guard let participants = rooms[room]?.participants else { return }
        let text = message.text
        for id in participants where id != sender { send(text: text, to: id) }
    }

    private mutating func send(text: String, to id: SlotID) {
        guard connections.contains(id) else { return }
        connections[id]?.outbox.append(text)
        connections[id]?.outboxSize += DataSize(bytes: text.utf8.count)
        wake(id)
    }

    private mutating func popOutbox(of id: SlotID) -> String? {
        guard let text = connections[id]?.outbox.first else { return nil }
        connections[id]?.outbox.removeFirst()
        connections[id]?.outboxSize -= DataSize(bytes: text.utf8.count)
        return text
    }

    /// Lets go of the participants of a room whose signaling has piled up.
    mutating func dropSlowParticipants(in room: String, at now: MonotonicInstant) {
        for id in rooms[room]?.participants ?? [] {
            guard let connection = connections[id], connection.outboxSize > settings.maximumOutbox else { continue }
            let sentence = "more than \(settings.maximumOutbox) of signaling were waiting to be read"
            fail(id, ErrorMessage(.tooSlow, sentence, fatal: true), at: now)
        }
    }

    mutating func wake(_ id: SlotID) {
        guard connections[id]?.isAwake == false else { return }
        connections[id]?.isAwake = true
        awakened.append(id)
    }

    /// Says a fatal error, takes the participant out of its room, and closes the connection.
    mutating func fail(_ id: SlotID, _ error: ErrorMessage, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        send(.error(error), to: id)
        notices.append(.failed(identity: connections[id]?.participant?.identity, reason: "\(error)"))
        beginClosing(id, RoomErrorCode(rawValue: error.code), reason: error.message, at: now)
    }

    private mutating func beginClosing(
        _ id: SlotID,
        _ code: RoomErrorCode,
        reason: String,
        at now: MonotonicInstant
    ) {
        if case .closing = connections[id]?.phase { return }
        removeParticipant(of: id, at: now)
        connections[id]?.phase = .closing(code, reason: reason, deadline: now + settings.closeTimeout)
        wake(id)
    }
}
