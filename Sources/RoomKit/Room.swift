package import MediaCore
import RoomProtocol
import Threading
package import WebSockets

/// A room that this program has joined.
///
/// Lives on the thread of its event loop: calls from elsewhere hop there, and what comes from the connection is already
/// there. Pictures never wait for it: they are encoded and decoded on threads of their own.
public actor Room {
    /// The room's name.
    public nonisolated let name: String
    /// What happens in the room from the moment of joining, for one reader.
    ///
    /// Up to 1,024 events wait for it; beyond that the newest are lost, but for `disconnected`, which always comes.
    public nonisolated let events: AsyncStream<RoomEvent>
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The thread that the room lives on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// Something to send besides pictures.
    private enum Signal {
        case text(String)
        case close(code: UInt16, reason: String)
    }

    /// A track that is received.
    private struct Reception {
        var assembler = FrameAssembler()
        var continuity = BaseLayerContinuity()
        var receiver: VideoReceiver
    }

    private nonisolated let loop: WebSocketLoop
    private let happenings = EventQueue()
    private let clock = ClockBox()
    private let packets = PacketBufferPool()
    private let joining = Promise<Result<Joined, RoomError>>()
    private let options: ConnectOptions
    private var session: ClientSession
    private var connection: WebSocketConnection?
    private var signals: [Signal] = []
    private var timer: Task<Void, any Error>?
    private var hasJoined = false
    private var hasEnded = false
    private var isHangingUp = false

    private var nextRequestID = 1
    private var publishReplies: [Int: Promise<Result<TrackInfo, RoomError>>] = [:]
    private var publishers: [(track: LocalVideoTrack, trackID: String, publisher: VideoPublisher)] = []
    /// Those whose tracks the server has not accepted yet.
    private var starting: [VideoPublisher] = []
    private var turn = 0

    private var participants: [String: RemoteParticipant] = [:]
    private var tracks: [String: RemoteVideoTrack] = [:]
    private var receptions: [UInt32: Reception] = [:]
    private var aliases: [String: UInt32] = [:]
    private var asked: [String: MonotonicInstant] = [:]
    private var joinSent = MonotonicClock.now
    private var stopping: [Int: Task<Void, Never>] = [:]
    private var nextTicket = 0

    init(options: ConnectOptions, loop: WebSocketLoop) {
        self.options = options
        self.loop = loop
        name = options.roomName
        events = happenings.stream
        localParticipant = LocalParticipant(identity: options.identity)
        session = ClientSession(
            ClientSession.Settings(
                join: Join(
                    room: options.roomName,
                    identity: options.identity,
                    token: options.accessToken,
                    bootId: MonotonicClock.bootID,
                    automaticSubscription: options.isAutomaticSubscriptionEnabled,
                    client: options.clientName
                )
            )
        )
    }

    // MARK: For the application

    /// Whether the room can be used.
    public var state: RoomState { hasEnded ? .disconnected : .connected }

    /// The others in the room.
    public var remoteParticipants: [RemoteParticipant] { Array(participants.values) }

    /// Leaves the room: withdraws what is published, lets what is encoded go out, closes the connection.
    ///
    /// Returns when all threads of the room's tracks have ended, so that their statistics are final. Leaving twice does
    /// nothing.
    public func disconnect() async {
        for publication in publishers { await unpublish(publication.track) }
        perform(session.leave())
        for task in Array(stopping.values) { await task.value }
    }

    /// Asks for a track of somebody else; only needed where automatic subscription is off.
    public func subscribe(to track: RemoteVideoTrack) {
        asked[track.sid] = MonotonicClock.now
        send(.subscribe(Subscribe(trackId: track.sid)))
    }

    /// Wants a track no longer.
    public func unsubscribe(from track: RemoteVideoTrack) {
        send(.unsubscribe(Unsubscribe(trackId: track.sid)))
    }

    // MARK: Joining

    func join(_ url: WebSocketURL) async throws {
        localParticipant.attach(self)
        var connectOptions = ClientOptions(url: url)
        connectOptions.subprotocol = WireFormat.subprotocol
        connectOptions.limits = MessageLimits(
            maximumBinaryMessage: WireFormat.maximumBinaryMessage.bytes,
            maximumTextMessage: WireFormat.maximumServerText.bytes
        )
        loop.connect(connectOptions, handler: self)
        guard let result = await joining.value(within: .seconds(30)) else {
            throw RoomError(.serverUnavailable, "No answer from \(options.url) in time.")
        }
        let joined = try result.get()
        localParticipant.joined(as: joined.participant.id)
    }

    // MARK: Publishing

    func publish(_ track: LocalVideoTrack, options: VideoPublishOptions) async throws {
        guard !hasEnded else { throw RoomError(.notConnected, "The room was left.") }
        let publisher = VideoPublisher(options: options)
        guard track.attach(publisher) else {
            throw RoomError(.alreadyPublished, "The track \"\(track.name)\" is published already.")
        }
        track.source.sink = publisher
        starting.append(publisher)
        defer { starting.removeAll { $0 === publisher } }
        do {
            let capturer = track.source as? any VideoCapturer
            try await capturer?.startCapture()
            let dimensions = await publisher.firstDimensions(within: .seconds(10))
            guard !hasEnded else { throw RoomError(.notConnected, "The room was left.") }
            guard let dimensions else {
                throw RoomError(.noFramesCaptured, "The source of \"\(track.name)\" delivered no picture within 10 s.")
            }
            let rate = capturer?.captureFormat?.frameRate ?? FrameRate(30)
            let info = try await announce(track, dimensions: dimensions, frameRate: rate)
            begin(track, publisher, info, frameRate: rate)
        } catch {
            await stop(track, publisher)
            throw error
        }
    }

    func unpublish(_ track: LocalVideoTrack) async {
        guard let publication = publishers.first(where: { $0.track === track }) else { return }
        await stop(track, publication.publisher)
        await flush(publication.publisher.sendQueue)
        guard publishers.contains(where: { $0.track === track }) else { return }
        publishers.removeAll { $0.track === track }
        wantedLayers[publication.trackID] = nil
        send(.unpublish(Unpublish(trackId: publication.trackID)))
    }

    private func announce(
        _ track: LocalVideoTrack,
        dimensions: Dimensions,
        frameRate: FrameRate
    ) async throws -> TrackInfo {
        guard !hasEnded else { throw RoomError(.notConnected, "The room was left.") }
        let requestID = nextRequestID
        nextRequestID += 1
        let reply = Promise<Result<TrackInfo, RoomError>>()
        publishReplies[requestID] = reply
        defer { publishReplies[requestID] = nil }
        send(
            .publish(
                Publish(
                    requestId: requestID,
                    name: track.name,
                    source: track.sourceKind,
                    width: dimensions.width,
                    height: dimensions.height,
                    frameRate: frameRate.framesPerSecond
                )
            )
        )
        guard let result = await reply.value(within: .seconds(10)) else {
            throw RoomError(.connectionLost, "The server did not answer the request to publish in time.")
        }
        return try result.get()
    }

    private func begin(_ track: LocalVideoTrack, _ publisher: VideoPublisher, _ info: TrackInfo, frameRate: FrameRate) {
        let requestWrite: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.requestWrite() } }
        let route = VideoPublisher.Route(
            trackID: info.id,
            packetizer: Packetizer(trackAlias: info.alias),
            frameRate: frameRate,
            clock: clock,
            wake: { [loop] in loop.execute(requestWrite) },
            announceEnabled: { [weak self] isEnabled in await self?.announce(isEnabled: isEnabled, trackID: info.id) }
        )
        publishers.append((track, info.id, publisher))
        publisher.setWanted(wantedLayers[info.id].map { !$0.isEmpty } ?? false)
        publisher.begin(route)
        // Paused before there was anybody to tell; telling it twice does no harm.
        if publisher.isPaused { announce(isEnabled: false, trackID: info.id) }
    }

    private func announce(isEnabled: Bool, trackID: String) {
        send(isEnabled ? .enable(Enable(trackId: trackID)) : .disable(Disable(trackId: trackID)))
    }

    /// Stops a track's source, then its encoder; neither on the room's own thread, as both are waited for.
    private func stop(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async {
        await (track.source as? any VideoCapturer)?.stopCapture()
        track.source.sink = nil
        await Task.detached { publisher.stop() }.value
    }

    /// Lets the frames that are encoded go out, for at most half a second.
    private func flush(_ queue: SendQueue) async {
        for _ in 0..<100 where !queue.isEmpty && !hasEnded {
            requestWrite()
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Which encodings of our tracks somebody receives, from `published` on; it may be told before `begin`.
    private var wantedLayers: [String: [Int]] = [:]

    // MARK: Driving the session

    private func send(_ message: ClientMessage) {
        perform([.send(message)])
    }

    private func perform(_ actions: [ClientSession.Action]) {
        for action in actions {
            switch action {
            case .send(let message): signals.append(.text(message.text))
            case .close(let code, let reason): hangUp(code, reason)
            case .notify(let event): handle(event)
            }
        }
        // A server that ends the session hangs up; one that does not is hung up on.
        if hasEnded { hangUp(1000, "the session is over") }
        if let estimate = session.clockEstimate { clock.estimate = estimate }
        if !signals.isEmpty { requestWrite() }
        armTimer()
    }

    private func hangUp(_ code: UInt16, _ reason: String) {
        guard connection != nil, !isHangingUp else { return }
        isHangingUp = true
        signals.append(.close(code: code, reason: reason))
    }

    private func armTimer() {
        timer?.cancel()
        timer = nil
        guard let deadline = session.nextDeadline else { return }
        timer = Task {
            try await Task.sleep(for: max(.zero, deadline.duration(since: MonotonicClock.now)))
            perform(session.deadlineReached(at: MonotonicClock.now))
        }
    }

    private func requestWrite() {
        connection?.requestWrite()
    }

    private func handle(_ event: ClientSession.Event) {
        switch event {
        case .joined(let joined): welcome(joined)
        case .participantConnected(let info):
            happenings.put(.participantConnected(add(info)))
        case .participantDisconnected(let info):
            guard let participant = participants[info.id] else { return }
            for track in participant.videoTracks { withdraw(track, of: participant) }
            participants[info.id] = nil
            happenings.put(.participantDisconnected(participant))
        case .trackPublished(let info, let publisher):
            guard let participant = participants[publisher.id] else { return }
            happenings.put(.trackPublished(add(info, of: participant), participant))
        case .trackUnpublished(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            withdraw(track, of: participant)
        case .trackEnabled(let info, let publisher), .trackDisabled(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            track.setEnabled(info.enabled)
            happenings.put(info.enabled ? .trackEnabled(track, participant) : .trackDisabled(track, participant))
        case .subscribed(let info, let publisher, let catchUpThrough):
            guard let (track, participant) = known(info, publisher), receptions[info.alias] == nil else { return }
            happenings.put(.trackSubscribed(track, participant))
            beginReception(of: track, alias: info.alias, catchUpThrough: catchUpThrough)
        case .unsubscribed(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            if endReception(of: info.id) { happenings.put(.trackUnsubscribed(track, participant)) }
        case .published(let requestID, let info):
            guard let reply = publishReplies[requestID] else { return }
            wantedLayers[info.id] = []
            reply.fulfill(.success(info))
        case .refused(let error):
            let failure = RoomError(.refused, "The server refused: \(error.message).", serverCode: error.code)
            if let reply = error.requestId.flatMap({ publishReplies[$0] }) { return reply.fulfill(.failure(failure)) }
            happenings.put(.requestRefused(failure))
        case .layersWanted(let trackID, let layers):
            guard wantedLayers[trackID] != nil else { return }
            wantedLayers[trackID] = layers
            publishers.first { $0.trackID == trackID }?.publisher.setWanted(!layers.isEmpty)
        case .keyframeRequested(let trackID):
            publishers.first { $0.trackID == trackID }?.publisher.requestKeyframe()
        case .ended(let ending): end(RoomError(ending))
        }
    }

    private func welcome(_ joined: Joined) {
        hasJoined = true
        for info in joined.participants { add(info) }
        joining.fulfill(.success(joined))
    }

    @discardableResult
    private func add(_ info: ParticipantInfo) -> RemoteParticipant {
        let participant = RemoteParticipant(sid: info.id, identity: info.identity)
        participants[info.id] = participant
        for track in info.tracks { add(track, of: participant) }
        return participant
    }

    @discardableResult
    private func add(_ info: TrackInfo, of participant: RemoteParticipant) -> RemoteVideoTrack {
        let track = RemoteVideoTrack(info, publisherIdentity: participant.identity)
        tracks[info.id] = track
        participant.add(track)
        return track
    }

    /// Forgets a track that is there no longer, and tells of it.
    private func withdraw(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        if endReception(of: track.sid) { happenings.put(.trackUnsubscribed(track, participant)) }
        tracks[track.sid] = nil
        asked[track.sid] = nil
        participant.remove(track)
        happenings.put(.trackUnpublished(track, participant))
    }

    private func known(_ info: TrackInfo, _ publisher: ParticipantInfo) -> (RemoteVideoTrack, RemoteParticipant)? {
        guard let track = tracks[info.id], let participant = participants[publisher.id] else { return nil }
        return (track, participant)
    }

    private func end(_ error: RoomError?) {
        guard !hasEnded else { return }
        hasEnded = true
        joining.fulfill(.failure(error ?? RoomError(.notConnected, "The room was left.")))
        let lost = error ?? RoomError(.notConnected, "The room was left.")
        for reply in publishReplies.values { reply.fulfill(.failure(lost)) }
        for publisher in starting { publisher.giveUp() }
        for publication in publishers {
            let (track, publisher) = (publication.track, publication.publisher)
            finish { await self.stop(track, publisher) }
        }
        publishers = []
        for track in Array(aliases.keys) { endReception(of: track) }
        happenings.finish(with: .disconnected(error))
    }

    // MARK: Receiving

    private func beginReception(of track: RemoteVideoTrack, alias: UInt32, catchUpThrough: UInt32?) {
        let trackID = track.sid
        track.setKeyframeRequest { [weak self] in
            guard let self else { return }
            Task { await self.send(.keyframeRequest(KeyframeRequest(trackId: trackID))) }
        }
        let receiver = VideoReceiver(
            track: track,
            clock: clock,
            catchUpThrough: catchUpThrough,
            subscribed: asked[trackID] ?? joinSent
        )
        receptions[alias] = Reception(receiver: receiver)
        aliases[trackID] = alias
    }

    /// Ends the receiving of a track; says whether it was received.
    @discardableResult
    private func endReception(of trackID: String) -> Bool {
        guard let alias = aliases.removeValue(forKey: trackID) else { return false }
        guard let reception = receptions.removeValue(forKey: alias) else { return false }
        reception.receiver.track.setKeyframeRequest(nil)
        finish { await Task.detached { reception.receiver.stop() }.value }
        return true
    }

    /// Has something ended that `disconnect` waits for.
    private func finish(_ body: @escaping @Sendable () async -> Void) {
        let ticket = nextTicket
        nextTicket += 1
        stopping[ticket] = Task {
            await body()
            stopping[ticket] = nil
        }
    }

    private func receive(_ packet: PacketBuffer) throws(MalformedPacket) {
        guard packet.withBytes({ binaryMessageKind(of: $0) }) == .video else { return }
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        let frame = try receptions[header.trackAlias]?.assembler.receive(packet, header: header) { count in
            packets.take(count: count)
        }
        guard let frame = frame ?? nil else { return }
        let isLoss = receptions[header.trackAlias]?.continuity.isLoss(before: frame.header) ?? false
        receptions[header.trackAlias]?.receiver.receive(frame, isAfterLoss: isLoss, at: MonotonicClock.now)
    }
}

/// The connection's calls, all of them on the loop's thread, which is the room's own.
extension Room: WebSocketHandler {
    package nonisolated func opened(_ connection: WebSocketConnection) {
        assumeIsolated { room in
            room.connection = connection
            room.joinSent = MonotonicClock.now
            room.perform(room.session.connectionOpened(at: room.joinSent))
        }
    }

    package nonisolated func receivedText(_ text: String, from connection: WebSocketConnection) {
        assumeIsolated { room in room.perform(room.session.received(text, at: MonotonicClock.now)) }
    }

    package nonisolated func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        assumeIsolated { room in
            // A packet that breaks the wire format is dropped, with its frame: what else comes may be good.
            try? room.receive(message)
        }
    }

    package nonisolated func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage? {
        assumeIsolated { room in room.nextMessage() }
    }

    package nonisolated func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        assumeIsolated { room in room.closed(closure) }
    }

    private func nextMessage() -> OutgoingMessage? {
        if !signals.isEmpty {
            switch signals.removeFirst() {
            case .text(let text): return .text(text)
            case .close(let code, let reason): return .close(code: code, reason: reason)
            }
        }
        let now = MonotonicClock.now
        for offset in publishers.indices {
            let index = (turn + offset) % publishers.count
            if let packet = publishers[index].publisher.sendQueue.next(at: now) {
                turn = index + 1
                return .exclusive(packet)
            }
        }
        return nil
    }

    private func closed(_ closure: WebSocketClosure) {
        connection = nil
        switch closure {
        case .byUs(_, let reason): perform(session.connectionClosed("The connection was closed: \(reason)."))
        case .byPeer(let code, let reason):
            let text = reason.isEmpty ? "" : ": \(reason)"
            perform(session.connectionClosed("The server closed the connection (\(code))\(text)."))
        case .failed(let error):
            if !hasJoined { end(RoomError(.serverUnavailable, "\(error)")) }
            perform(session.connectionClosed("\(error)"))
        }
    }
}
