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
    /// Up to 1,024 events wait for it; beyond that the newest are lost.
    public nonisolated let events: AsyncStream<RoomEvent>
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The thread that the room lives on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private nonisolated let loop: WebSocketLoop
    private nonisolated let path: LoopConfined<PacketPath>
    private let eventSink: AsyncStream<RoomEvent>.Continuation
    private let clock = ClockBox()
    private let joining = Promise<Result<Joined, RoomError>>()
    private let options: ConnectOptions
    private var session: ClientSession
    private var timer: Task<Void, any Error>?
    private var hasJoined = false
    private var hasEnded = false

    private var nextRequestID = 1
    private var publishReplies: [Int: Promise<Result<TrackInfo, RoomError>>] = [:]
    private var publishers: [(track: LocalVideoTrack, trackID: String, publisher: VideoPublisher)] = []

    private var participants: [String: RemoteParticipant] = [:]
    private var tracks: [String: RemoteVideoTrack] = [:]
    private var aliases: [String: UInt32] = [:]
    private var asked: [String: MonotonicInstant] = [:]
    private var joinSent = MonotonicClock.now
    private var stopping: [Int: Task<Void, Never>] = [:]
    private var nextTicket = 0

    init(options: ConnectOptions, loop: WebSocketLoop) {
        self.options = options
        self.loop = loop
        path = LoopConfined(on: loop) { PacketPath() }
        name = options.roomName
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1024))
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
            maximumTextMessage: WireFormat.maximumTextMessage.bytes
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
        do {
            let capturer = track.source as? any VideoCapturer
            try await capturer?.startCapture()
            guard let dimensions = await publisher.firstDimensions(within: .seconds(10)) else {
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
        path.value.remove(publication.publisher.sendQueue)
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
        let requestWrite: @Sendable () -> Void = { [path] in path.value.requestWrite() }
        let route = VideoPublisher.Route(
            trackID: info.id,
            packetizer: Packetizer(trackAlias: info.alias),
            frameRate: frameRate,
            clock: clock,
            wake: { [loop] in loop.execute(requestWrite) },
            announceEnabled: { [weak self] isEnabled in await self?.announce(isEnabled: isEnabled, trackID: info.id) }
        )
        publishers.append((track, info.id, publisher))
        path.value.add(publisher.sendQueue)
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
            path.value.requestWrite()
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Which encodings of our tracks somebody receives; it may be told before `begin`.
    private var wantedLayers: [String: [Int]] = [:]

    // MARK: Driving the session

    private func send(_ message: ClientMessage) {
        perform([.send(message)])
    }

    private func perform(_ actions: [ClientSession.Action]) {
        for action in actions {
            switch action {
            case .send(let message): path.value.send(.text(message.text))
            case .close(let code, let reason): path.value.send(.close(code: code, reason: reason))
            case .notify(let event): handle(event)
            }
        }
        if let estimate = session.clockEstimate { clock.estimate = estimate }
        armTimer()
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

    private func handle(_ event: ClientSession.Event) {
        switch event {
        case .joined(let joined): welcome(joined)
        case .participantConnected(let info):
            eventSink.yield(.participantConnected(add(info)))
        case .participantDisconnected(let info):
            guard let participant = participants[info.id] else { return }
            for track in participant.videoTracks { withdraw(track, of: participant) }
            participants[info.id] = nil
            eventSink.yield(.participantDisconnected(participant))
        case .trackPublished(let info, let publisher):
            guard let participant = participants[publisher.id] else { return }
            eventSink.yield(.trackPublished(add(info, of: participant), participant))
        case .trackUnpublished(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            withdraw(track, of: participant)
        case .trackEnabled(let info, let publisher), .trackDisabled(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            track.setEnabled(info.enabled)
            eventSink.yield(info.enabled ? .trackEnabled(track, participant) : .trackDisabled(track, participant))
        case .subscribed(let info, let publisher, let catchUpThrough):
            guard let (track, participant) = known(info, publisher), !path.value.receives(info.alias) else { return }
            eventSink.yield(.trackSubscribed(track, participant))
            beginReception(of: track, alias: info.alias, catchUpThrough: catchUpThrough)
        case .unsubscribed(let info, let publisher):
            guard let (track, participant) = known(info, publisher) else { return }
            if endReception(of: info.id) { eventSink.yield(.trackUnsubscribed(track, participant)) }
        case .published(let requestID, let info):
            publishReplies[requestID]?.fulfill(.success(info))
        case .refused(let error):
            let failure = RoomError(.refused, "The server refused: \(error.message).", serverCode: error.code)
            if let reply = error.requestId.flatMap({ publishReplies[$0] }) { return reply.fulfill(.failure(failure)) }
            eventSink.yield(.requestRefused(failure))
        case .layersWanted(let trackID, let layers):
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
        if endReception(of: track.sid) { eventSink.yield(.trackUnsubscribed(track, participant)) }
        tracks[track.sid] = nil
        asked[track.sid] = nil
        participant.remove(track)
        eventSink.yield(.trackUnpublished(track, participant))
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
        for publication in publishers {
            let (track, publisher) = (publication.track, publication.publisher)
            finish { await self.stop(track, publisher) }
        }
        for publication in publishers { path.value.remove(publication.publisher.sendQueue) }
        publishers = []
        for track in Array(aliases.keys) { endReception(of: track) }
        eventSink.yield(.disconnected(error))
        eventSink.finish()
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
        path.value.begin(receiver, alias: alias)
        aliases[trackID] = alias
    }

    /// Ends the receiving of a track; says whether it was received.
    @discardableResult
    private func endReception(of trackID: String) -> Bool {
        guard let alias = aliases.removeValue(forKey: trackID) else { return false }
        guard let receiver = path.value.endReception(of: alias) else { return false }
        receiver.track.setKeyframeRequest(nil)
        finish { await Task.detached { receiver.stop() }.value }
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
}

/// The connection's calls, all of them on the loop's thread, which is the room's own.
extension Room: WebSocketHandler {
    package nonisolated func opened(_ connection: WebSocketConnection) {
        assumeIsolated { room in
            room.path.value.connection = connection
            room.joinSent = MonotonicClock.now
            room.perform(room.session.connectionOpened(at: room.joinSent))
        }
    }

    package nonisolated func receivedText(_ text: String, from connection: WebSocketConnection) {
        assumeIsolated { room in room.perform(room.session.received(text, at: MonotonicClock.now)) }
    }

    package nonisolated func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        do {
            try path.value.receive(message)
        } catch {
            let reason = "it sent a packet that breaks the wire format: \(error)"
            assumeIsolated { room in room.perform(room.session.violated(reason)) }
        }
    }

    package nonisolated func hasMessage(for connection: WebSocketConnection) -> Bool {
        path.value.hasMessage
    }

    package nonisolated func nextMessage(for connection: WebSocketConnection) -> OutgoingMessage? {
        path.value.nextMessage(at: MonotonicClock.now)
    }

    package nonisolated func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        assumeIsolated { room in room.closed(closure) }
    }

    private func closed(_ closure: WebSocketClosure) {
        path.value.connection = nil
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
