package import MediaCore
package import RoomProtocol

/// The relay as a value: rooms, participants, tracks and who receives what.
///
/// Messages go in with the time at which they came; what is to be sent is pulled per connection when its socket can
/// take it, so that everything is decided as late as possible. Owns no socket, clock or random source, and never looks
/// inside a picture. There is one of each, so it cannot be copied, not even by accident.
package struct Relay: ~Copyable, Sendable {
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
        package var connections: Int
        package var rooms: Int
        package var tracks: Int
        /// Memory that packets kept for subscribers take, in bytes.
        package var cachedBytes: Int

        /// A census with the given numbers.
        package init(connections: Int = 0, rooms: Int = 0, tracks: Int = 0, cachedBytes: Int = 0) {
            self.connections = connections
            self.rooms = rooms
            self.tracks = tracks
            self.cachedBytes = cachedBytes
        }
    }

    let settings: RelaySettings
    let bootID: String?
    let serverName: String
    var connections = SlotArray<Connection>()
    var tracks = SlotArray<Track>()
    /// By a connection's index; of use while `connections` contains it.
    var outlets: [Outlet] = []
    /// By a track's index; of use while `tracks` contains it.
    var feeds: [Feed] = []
    var trackOfAlias: [UInt32: SlotID] = [:]
    var trackOfID: [String: SlotID] = [:]
    var rooms: [String: Room] = [:]
    var nextAlias: UInt32 = 1
    private var awakened: [SlotID] = []
    private var overdue: [SlotID] = []
    var notices: [RelayNotice] = []
    /// Connections whose outbox has just passed its limit.
    private var overfull: [SlotID] = []

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
            cachedBytes: tracks.ids.reduce(0) { $0 + feeds[$1.index].stream.size.bytes }
        )
    }

    // MARK: Connections

    /// A WebSocket is open, for which the client offered `subprotocol`.
    ///
    /// What comes back is the connection's name in all further calls.
    package mutating func connectionOpened(subprotocol: String?, at now: MonotonicInstant) -> SlotID {
        let deadline = now + settings.joinTimeout
        let id = connections.insert(Connection(joinsBefore: deadline, at: now))
        if id.index == outlets.count { outlets.append(Outlet()) }
        schedule(deadline)
        if subprotocol != WireFormat.subprotocol {
            let offer = subprotocol.map { "\"\($0)\"" } ?? "no subprotocol"
            fail(
                id,
                ErrorMessage(
                    .notSupported,
                    "this server speaks the WebSocket subprotocol \"\(WireFormat.subprotocol)\"; "
                        + "the client asked for \(offer)",
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
        if connections.remove(id) != nil { outlets[id.index] = Outlet() }
        dropSlowParticipants(at: now)
    }

    /// Whether `nextMessage` is worth a call; if not, that counts as its answer, and the connection is told of what comes.
    package mutating func hasMessage(for id: SlotID) -> Bool {
        // A connection that is closing has no subscriptions left, and something to say.
        guard connections.contains(id), !outlets[id.index].subscriptions.isEmpty, outlets[id.index].outbox.isEmpty
        else { return true }
        for index in outlets[id.index].subscriptions.indices {
            let feed = outlets[id.index].subscriptions[index].track.index
            if outlets[id.index].subscriptions[index].cursor.position < feeds[feed].stream.endPosition { return true }
        }
        outlets[id.index].isAwake = false
        return false
    }

    /// What the connection, whose socket can take a message now, is sent; `nil` when there is nothing.
    ///
    /// It may wake others: a subscriber that has fallen behind makes a request to its publisher.
    package mutating func nextMessage(for id: SlotID, at now: MonotonicInstant) -> Outgoing? {
        guard connections.contains(id) else { return nil }
        if let text = popOutbox(of: id) { return .text(text) }
        if let packet = nextPacket(for: id, at: now) { return .media(packet) }
        dropSlowParticipants(at: now)
        outlets[id.index].isAwake = false
        return closeMessage(for: id)
    }

    private mutating func closeMessage(for id: SlotID) -> Outgoing? {
        guard case .closing(let code, let reason, _) = connections[id]?.phase else { return nil }
        guard connections[id]?.isCloseSaid == false else { return nil }
        connections[id]?.isCloseSaid = true
        return .close(code, reason: reason)
    }

    /// Hands out the connections that have something new to send, and forgets them.
    package mutating func takeAwakened(_ body: (SlotID) -> Void) {
        guard !awakened.isEmpty else { return }
        for id in awakened { body(id) }
        awakened.removeAll(keepingCapacity: true)
    }

    /// Hands out the connections that did not take their close in time and must be cut, and forgets them.
    package mutating func takeOverdue(_ body: (SlotID) -> Void) {
        guard !overdue.isEmpty else { return }
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
        // Rooms and tracks first: nobody needs to hear any more who leaves.
        rooms = [:]
        trackOfAlias = [:]
        trackOfID = [:]
        for id in tracks.ids { _ = tracks.remove(id) }
        let reason = "the server is shutting down"
        let text = ServerMessage.leave(Leave(reason: reason, reconnect: true)).text
        for id in connections.ids where connections[id]?.isClosing == false {
            connections[id]?.publications = []
            outlets[id.index].subscriptions = []
            send(text: text, to: id)
            beginClosing(id, .shuttingDown, reason: reason, at: now)
        }
    }

    // MARK: Time

    /// When `deadlineReached` must be called; it may be early, never late.
    package private(set) var nextDeadline: MonotonicInstant?

    /// Sees to it that `deadlineReached` is called at `deadline`.
    mutating func schedule(_ deadline: MonotonicInstant?) {
        guard let deadline else { return }
        nextDeadline = min(nextDeadline ?? deadline, deadline)
    }

    /// `nextDeadline` has come.
    package mutating func deadlineReached(at now: MonotonicInstant) {
        for id in connections.ids {
            guard let deadline = connections[id]?.deadline, deadline <= now else { continue }
            if case .awaitingJoin = connections[id]?.phase {
                fail(id, ErrorMessage(.timedOut, "no \"join\" came in time", fatal: true), at: now)
            } else {
                connections[id]?.isCutSaid = true
                overdue.append(id)
            }
        }
        for id in tracks.ids {
            if let deadline = tracks[id]?.idleDeadline, deadline <= now { becomeIdle(id) }
            if tracks[id]?.keyframes.deadlineReached(at: now) == true { askForKeyframe(of: id) }
        }
        dropSlowParticipants(at: now)
        nextDeadline = nil
        for id in connections.ids { schedule(connections[id]?.deadline) }
        for id in tracks.ids {
            schedule(tracks[id]?.keyframes.nextDeadline)
            schedule(tracks[id]?.idleDeadline)
        }
    }

    /// Lets go of packets that have become too old for anybody, also those of publishers that have fallen silent.
    ///
    /// To be called now and then; what comes on a track lets go of its older packets, too.
    package mutating func discardOldPackets(at now: MonotonicInstant) {
        for id in tracks.ids { feeds[id.index].stream.discardOld(at: now) }
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
        let before = outlets[id.index].outboxSize
        let after = before + DataSize(bytes: text.utf8.count)
        outlets[id.index].outbox.append(text)
        outlets[id.index].outboxSize = after
        if before <= settings.maximumOutbox && after > settings.maximumOutbox { overfull.append(id) }
        wake(id)
    }

    private mutating func popOutbox(of id: SlotID) -> String? {
        guard let text = outlets[id.index].outbox.first else { return nil }
        outlets[id.index].outbox.removeFirst()
        outlets[id.index].outboxSize -= DataSize(bytes: text.utf8.count)
        return text
    }

    /// Lets go of the participants whose signaling has piled up.
    mutating func dropSlowParticipants(at now: MonotonicInstant) {
        while let id = overfull.popLast() {
            guard connections[id]?.isClosing == false else { continue }
            let sentence = "more than \(settings.maximumOutbox) of signaling were waiting to be read"
            fail(id, ErrorMessage(.tooSlow, sentence, fatal: true), at: now)
        }
    }

    mutating func wake(_ id: SlotID) {
        guard connections.contains(id), !outlets[id.index].isAwake else { return }
        outlets[id.index].isAwake = true
        awakened.append(id)
    }

    /// Says a fatal error, takes the participant out of its room, and closes the connection.
    mutating func fail(_ id: SlotID, _ error: ErrorMessage, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        send(.error(error), to: id)
        notices.append(.failed(identity: connections[id]?.participant?.identity, reason: "\(error)"))
        beginClosing(id, RoomErrorCode(rawValue: error.code), reason: error.message, at: now)
    }

    /// Takes the participant out of its room; what is still to be sent goes out, then the connection is closed.
    mutating func beginClosing(
        _ id: SlotID,
        _ code: RoomErrorCode,
        reason: String,
        at now: MonotonicInstant
    ) {
        guard connections[id]?.isClosing == false else { return }
        removeParticipant(of: id, at: now)
        let deadline = now + settings.closeTimeout
        let shortReason = reason.prefix(utf8Bytes: WireFormat.maximumCloseReasonBytes)
        connections[id]?.phase = .closing(code, reason: shortReason, deadline: deadline)
        schedule(deadline)
        wake(id)
    }
}
