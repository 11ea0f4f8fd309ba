package import MediaCore
import RoomProtocol

/// The relay as a value: rooms, participants, tracks and their subscribers.
///
/// Each message goes in with its arrival time. `nextEffect` returns what the driver must do. The driver pulls what to
/// send from `nextMessage` for each connection when its socket can take it, so that every choice is made as late as
/// possible. The relay owns no socket, clock or random source, and never looks inside a picture. It is not copyable,
/// because each server has exactly one and must not copy it by accident.
package struct Relay: ~Copyable, Sendable {
    /// An action for the driver.
    package enum Effect: Sendable {
        /// The connection has something to send: call `nextMessage` when its socket can take it.
        ///
        /// Media are urgent: connections that have media to send come before those that have only signaling. `later` is
        /// a connection that will be woken some steps later, whose memory the driver can ask for meanwhile.
        case wake(SlotID, isUrgent: Bool, later: SlotID?)
        /// The connection did not take its close message in time: cut it.
        case cut(SlotID)
        /// Send a ping, and call `answered` when the peer answers.
        case ping(SlotID)
        /// Write a line to the log.
        case log(RelayNotice)
        /// Call `deadlineReached` at this time, or never if it is `nil`; this replaces the time before.
        case callBack(at: MonotonicInstant?)
    }

    let settings: RelaySettings
    let limits: Limits
    let videoCodecs: [String]
    let bootID: String?
    let serverName: String
    var connections = SlotTable<Connection, Outbox, ConnectionTraffic>(vacant: (Outbox(), ConnectionTraffic()))
    var participants = SlotTable<Participant, SubscriberState, Void>(vacant: SubscriberState(budget: .unused))
    var tracks = SlotTable<Track, TrackIntake, Void>(
        vacant: TrackIntake(publisher: SlotID(rawValue: 0), budget: .unused)
    )
    var encodings: SlotTable<Encoding, EncodingFanout, Void>
    var connectionDeadlines = DeadlineQueue()
    var participantDeadlines = DeadlineQueue()
    var trackDeadlines = DeadlineQueue()
    var trackOfAlias: [UInt32: TrackID] = [:]
    var trackOfID: [String: TrackID] = [:]
    var rooms: [String: Room] = [:]
    var nextAlias: UInt32 = 1
    /// The memory of the packets of all tracks.
    var storedBytes = 0
    /// When caches were last discarded without making room for another track; `nil` if that made room.
    var cachesUsedUpAt: MonotonicInstant?
    /// The length of the signaling messages in all outboxes together.
    var waitingSignaling = DataSize.zero
    /// The number of the subscriptions of all participants.
    var subscriptionCount = 0
    /// Acknowledgements of connections that have ended which could not be true.
    var disregardedAcknowledgements = 0
    /// The memory of the last acknowledgement, for the next one.
    var acknowledgementPacket = PacketBuffer(capacity: MediaAcknowledgement.length)
    /// The packet counts of subscriptions that have ended.
    var endedCounts = PacketCounts()
    var countedWork = RelayWork()
    /// The places of one participant's tracks, while its next packet is looked for.
    var places: [Place] = []
    var awakened: [ConnectionID] = []
    /// The index in `awakened` of the next one for the driver.
    private var nextAwakened = 0
    /// How many wakes ahead a connection is named: more than the misses that a processor waits for at one time.
    private static let wakeDistance = 8
    var overdue: [ConnectionID] = []
    /// Connections that are to be pinged.
    var pinged: [ConnectionID] = []
    var notices: [RelayNotice] = []
    /// Connections whose outbox has just passed its limit.
    var overfull: [ConnectionID] = []

    /// Creates a relay without rooms.
    ///
    /// Only video of one of the `videoCodecs` is relayed, whose frames are packed as the protocol's page says. Nothing else
    /// here depends on the codec. Clients get `bootID` of this machine, so that they know whether they share its clock, and `serverName`, which is
    /// program and version.
    package init(settings: RelaySettings, videoCodecs: [String], bootID: String?, serverName: String) {
        self.settings = settings
        self.videoCodecs = videoCodecs
        self.limits = Limits(settings)
        self.bootID = bootID
        self.serverName = serverName
        let nowhere = SlotID(rawValue: 0)
        encodings = SlotTable(
            vacant: EncodingFanout(track: nowhere, simulcastLayer: 0, stream: TrackStream(settings.stream))
        )
    }

    /// The limits for peers, and those of the lag, in the form in which they are compared for each packet.
    struct Limits: Sendable {
        let signaling: SignalingBudget.Limits
        let participantMedia: MediaBudget.Limits
        let trackMedia: MediaBudget.Limits
        let forwarding: ForwardingPolicy.Limits
        let joins: Allowance
        let joinDeliveries: Allowance
        let replacements: Allowance

        init(_ settings: RelaySettings) {
            let media = settings.media
            signaling = SignalingBudget.Limits(settings)
            forwarding = ForwardingPolicy.Limits(settings.forwarding)
            joins = Allowance(one: settings.joinInterval, burst: settings.joinBurst)
            joinDeliveries = Allowance(perSecond: settings.joinDeliveriesPerSecond, burst: settings.joinDeliveryBurst)
            replacements = Allowance(one: settings.replacementInterval, burst: settings.replacementBurst)
            participantMedia = MediaBudget.Limits(rate: media.participantRate, packets: media.participantPackets, media)
            trackMedia = MediaBudget.Limits(rate: media.trackRate, packets: media.trackPackets, media)
        }
    }

    // MARK: Connections

    /// A WebSocket has opened, with the client's offered `subprotocol` and requested `path`.
    ///
    /// Returns the connection's name for all further calls.
    package mutating func connectionOpened(
        subprotocol: String?,
        path: String = "/",
        at now: MonotonicInstant
    ) -> SlotID {
        let roomPath = RoomPath(reading: path)
        let deadline = now + settings.joinTimeout
        let connection = Connection(path: roomPath ?? .anyRoom, joinsBefore: deadline, at: now)
        let id = connections.insert(connection, Outbox(), ConnectionTraffic())
        connectionDeadlines.set(deadline, for: id)
        // Byte by byte, because other texts can take long to compare.
        if subprotocol?.utf8.elementsEqual(WireFormat.subprotocol.utf8) != true {
            let offer = subprotocol.map { "\"\($0.prefix(utf8Bytes: 64))\"" } ?? "no subprotocol"
            let sentence = "this server speaks the WebSocket subprotocol \"\(WireFormat.subprotocol)\"; "
            fail(id, ErrorMessage(.notSupported, sentence + "the client asked for \(offer)", fatal: true), at: now)
        } else if roomPath == nil {
            let sentence = "the URL names no room; its path has to be \"/rooms/\" and a room's name, or \"/\""
            fail(id, ErrorMessage(.invalidArgument, sentence, fatal: true), at: now)
        }
        return id
    }

    /// A WebSocket has closed, whichever side closed it.
    package mutating func connectionClosed(_ id: SlotID, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        // First, because what it was not sent counts in its participant's figures.
        discardOutbox(of: id)
        if let participant = connections.hot[id.index].participant { removeParticipant(participant, at: now) }
        connectionDeadlines.set(nil, for: id)
        disregardedAcknowledgements += connections.bulk[id.index].path.disregarded
        // The participant's leaving may have put messages there.
        discardOutbox(of: id)
        _ = connections.remove(id)
        dropSlowConnections(at: now)
    }

    /// Tells all peers that the server is going down, and closes all connections.
    package mutating func shutDown(at now: MonotonicInstant) {
        // Remove rooms and tracks first, so that nobody is told who leaves.
        for id in participants.ids { forgetParticipant(id, at: now) }
        rooms = [:]
        let reason = "the server is shutting down"
        let text = encode(.leave(Leave(reason: reason, reconnect: true)))
        for id in connections.ids where connections[id]?.isClosing == false {
            send(text: text, to: id)
            beginClosing(id, .shuttingDown, reason: reason, at: now)
        }
    }

    /// Sends a fatal error, takes the participant out of its room, and closes the connection.
    mutating func fail(_ id: ConnectionID, _ error: ErrorMessage, at now: MonotonicInstant) {
        guard connections.contains(id) else { return }
        send(.error(error), to: id)
        let identity = connections.hot[id.index].participant.flatMap { participants[$0]?.identity }
        notices.append(.failed(identity: identity, reason: "\(error)"))
        beginClosing(id, RoomErrorCode(rawValue: error.code), reason: error.message, at: now)
    }

    /// Takes the participant out of its room; the connection closes once its remaining messages have been sent.
    mutating func beginClosing(_ id: ConnectionID, _ code: RoomErrorCode, reason: String, at now: MonotonicInstant) {
        guard connections[id]?.isClosing == false else { return }
        if let participant = connections.hot[id.index].participant { removeParticipant(participant, at: now) }
        let deadline = now + settings.closeTimeout
        let shortReason = reason.prefix(utf8Bytes: WireFormat.maximumCloseReasonBytes)
        connections[id]?.phase = .closing(code, reason: shortReason, deadline: deadline)
        connectionDeadlines.set(deadline, for: id)
        // A peer that is to go costs the server less once it is gone.
        wake(id, for: .urgent)
    }

    // MARK: Effects

    /// The next action for the driver; call it after each call that changes the relay, until it returns `nil`.
    package mutating func nextEffect() -> Effect? {
        if nextAwakened < awakened.count {
            let id = awakened[nextAwakened]
            let distant = nextAwakened + Self.wakeDistance
            nextAwakened += 1
            let later = distant < awakened.count ? awakened[distant] : nil
            return .wake(id, isUrgent: connections.hot[id.index].wakefulness == .urgent, later: later)
        }
        if nextAwakened > 0 {
            awakened.removeAll(keepingCapacity: true)
            nextAwakened = 0
        }
        if !overdue.isEmpty { return .cut(overdue.removeFirst()) }
        if let id = pinged.popLast() { return .ping(id) }
        if !notices.isEmpty { return .log(notices.removeFirst()) }
        guard takeDeadlineChange() else { return nil }
        // The property would copy the relay to the stack.
        let next = Self.earliest(connectionDeadlines.next, participantDeadlines.next, trackDeadlines.next)
        return .callBack(at: next)
    }

    private mutating func takeDeadlineChange() -> Bool {
        guard connectionDeadlines.isChanged || participantDeadlines.isChanged || trackDeadlines.isChanged else {
            return false
        }
        connectionDeadlines.noteTaken()
        participantDeadlines.noteTaken()
        trackDeadlines.noteTaken()
        return true
    }

    // MARK: Statistics

    /// The number of open connections.
    package var connectionCount: Int { connections.count }

    /// The numbers of connections, rooms and tracks, and the memory of stored packets.
    package var statistics: RelayStatistics {
        RelayStatistics(
            connections: connections.count,
            rooms: rooms.count,
            tracks: tracks.count,
            subscriptions: subscriptionCount,
            storedBytes: storedBytes,
            disregardedAcknowledgements: connections.ids.reduce(disregardedAcknowledgements) {
                $0 + connections.bulk[$1.index].path.disregarded
            }
        )
    }

    /// The packet counts of all subscriptions so far, including those that have ended.
    package var packetCounts: PacketCounts {
        var counts = endedCounts
        for id in participants.ids {
            for subscription in participants.hot[id.index].subscriptions { counts.add(self.counts(of: subscription)) }
        }
        return counts
    }

    /// The packet counts of the track with id `track` for the participant of a connection.
    ///
    /// `nil` if the participant does not subscribe to it.
    package func packetCounts(ofTrack track: String, for id: SlotID) -> PacketCounts? {
        guard connections.contains(id), let participant = connections.hot[id.index].participant else { return nil }
        let subscriptions = participants.hot[participant.index].subscriptions
        return subscriptions.first { tracks[$0.track]?.info.id == track }.map { counts(of: $0) }
    }

    /// The operations of the relay so far, for tests of the cost.
    package var work: RelayWork {
        var work = countedWork
        work.deadlineSteps = connectionDeadlines.steps + trackDeadlines.steps
        work.reviewSteps = participantDeadlines.steps
        return work
    }

    func counts(of subscription: SubscriberState.Subscription) -> PacketCounts {
        var counts = subscription.earlierCounts
        guard !subscription.isPaused else { return counts }
        let unstored = encodings.hot[subscription.encoding.index].unstored
        var current = subscription.cursor.counts(in: encodings.hot[subscription.encoding.index].stream)
        let disabled = unstored.disabled - subscription.unstoredBefore.disabled
        let awaiting = unstored.awaitingKeyframe - subscription.unstoredBefore.awaitingKeyframe
        current.received += disabled + awaiting
        current.dropped[.disabled] += disabled
        current.dropped[.awaitingKeyframe] += awaiting
        counts.add(current)
        return counts
    }
}
