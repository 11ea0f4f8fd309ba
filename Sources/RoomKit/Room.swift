package import MediaCore
import RoomProtocol
import Threading
import V4L2Capture
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
    /// Nothing is missed between `connect` and the first iteration: up to 1,024 events wait; beyond that the newest are
    /// lost. Who was there before us is in `remoteParticipants`; who came since is there and comes as an event as well.
    /// The sequence ends with the session.
    public nonisolated let events: AsyncStream<RoomEvent>
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The thread that the room lives on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// A track of ours that is published.
    private struct Publication {
        var track: LocalVideoTrack
        var trackID: String
        var publisher: VideoPublisher
        /// Tells the application when the track's camera gives out.
        var watch: Task<Void, Never>?
    }

    private nonisolated let loop: WebSocketLoop
    private nonisolated let path: LoopConfined<PacketPath>
    private let eventSink: AsyncStream<RoomEvent>.Continuation
    private let clock = ClockBox()
    private let joining = Promise<Result<Joined, RoomError>>()
    private let connectionEnded = Promise<Void>()
    private let options: ConnectOptions
    private var session: ClientSession
    private var timer: Task<Void, any Error>?
    private var hasJoined = false
    private var hasEnded = false
    /// Why the session has ended, for those who ask for something afterwards.
    private var ending = RoomError(.notConnected, "The room was left.")

    private var nextRequestID = 1
    private var publishReplies: [Int: Promise<Result<TrackInfo, RoomError>>] = [:]
    private var publishers: [Publication] = []
    /// Publishers of tracks that are about to be published.
    private var waitingPublishers: [VideoPublisher] = []

    private var participants: [String: RemoteParticipant] = [:]
    private var tracks: [String: RemoteVideoTrack] = [:]
    private var aliases: [String: UInt32] = [:]
    private var asked: [String: MonotonicInstant] = [:]
    private var joinSent = MonotonicClock.now
    /// The last receiver of a track, which may still be about to end.
    private var formerReceivers: [String: VideoReceiver] = [:]
    /// What `disconnect` waits for, by a number of its own.
    private var unfinished: [Int: Task<Void, Never>] = [:]
    private var unfinishedNumber = 0

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

    /// The server's id for the room, `RM…`.
    public private(set) var sid = ""

    /// Leaves the room: withdraws what is published, lets what is encoded go out, closes the connection.
    ///
    /// Returns when all threads of the room's tracks have ended, so that their statistics are final, and the server has
    /// been told, or after a second if it does not listen. Leaving twice does nothing.
    public func disconnect() async {
        for publication in publishers { await unpublish(publication.track) }
        perform(session.leave())
        while let task = unfinished.first?.value { await task.value }
        _ = await connectionEnded.value(within: .seconds(1))
    }

    /// Has `disconnect` wait for `work`.
    private func finishLater(_ work: @escaping @Sendable () async -> Void) {
        unfinishedNumber += 1
        let number = unfinishedNumber
        unfinished[number] = Task {
            await work()
            unfinished[number] = nil
        }
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
        let answer = await joining.value(within: .seconds(30))
        guard let result = answer, !Task.isCancelled else {
            perform(session.leave())
            try Task.checkCancellation()
            throw RoomError(.serverUnavailable, "No answer from \(options.url) in time.")
        }
        let joined = try result.get()
        sid = joined.room.id
        localParticipant.joined(as: joined.participant.id)
    }

    // MARK: Publishing

    func publish(_ track: LocalVideoTrack, options: VideoPublishOptions) async throws {
        guard !hasEnded else { throw ending }
        let publisher = VideoPublisher(options: options)
        guard track.attach(publisher) else {
            throw RoomError(.alreadyPublished, "The track \"\(track.name)\" is published already.")
        }
        let settled = Promise<Void>()
        finishLater { _ = await settled.value() }
        waitingPublishers.append(publisher)
        defer {
            waitingPublishers.removeAll { $0 === publisher }
            settled.fulfill(())
        }
        do {
            try await start(track, publisher)
        } catch {
            await stop(track, publisher)
            publisher.retire()
            throw error
        }
    }

    /// Starts a track's source, announces the track with what the source delivers, and begins to encode.
    private func start(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async throws {
        let camera = track.source as? CameraSource
        let capturer = track.source as? any VideoCapturer
        let failures = camera?.failures()
        track.source.sink = publisher
        try await capturer?.startCapture()
        let dimensions = await publisher.firstDimensions(within: .seconds(10))
        try Task.checkCancellation()
        guard !hasEnded else { throw ending }
        guard let dimensions else {
            if let failure = camera?.failure { throw failure }
            throw RoomError(.noFramesCaptured, "The source of \"\(track.name)\" delivered no picture within 10 s.")
        }
        let rate = capturer?.captureFormat?.frameRate ?? FrameRate(30)
        let info = try await announce(track, dimensions: dimensions, frameRate: rate)
        // The session may have ended between the answer and now.
        guard !hasEnded else { throw ending }
        begin(track, publisher, info, frameRate: rate)
        guard let failures else { return }
        let watch = Task { [weak self] in
            for await failure in failures { await self?.report(failure, of: track) }
        }
        publishers[publishers.count - 1].watch = watch
    }

    func unpublish(_ track: LocalVideoTrack) async {
        guard let publication = publishers.first(where: { $0.track === track }) else { return }
        let publisher = publication.publisher
        publication.watch?.cancel()
        await stop(track, publisher)
        await flush(publisher.sendQueue)
        defer { publisher.retire() }
        // The session may have ended meanwhile, or somebody else have done the same.
        guard let index = publishers.firstIndex(where: { $0.publisher === publisher }) else { return }
        publishers.remove(at: index)
        path.value.remove(publisher.sendQueue)
        wantedLayers[publication.trackID] = nil
        send(.unpublish(Unpublish(trackId: publication.trackID)))
    }

    private func report(_ failure: any Error, of track: LocalVideoTrack) {
        eventSink.yield(.localTrackFailed(track, failure))
    }

    /// The tracks that are published at present.
    var localTracks: [LocalVideoTrack] { publishers.map(\.track) }

    private func announce(
        _ track: LocalVideoTrack,
        dimensions: Dimensions,
        frameRate: FrameRate
    ) async throws -> TrackInfo {
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
            // An answer in the last moment: nobody will publish what it accepts.
            if case .success(let info)? = reply.current { send(.unpublish(Unpublish(trackId: info.id))) }
            try Task.checkCancellation()
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
            announceEnabled: { [weak self] isEnabled in await self?.announce(isEnabled: isEnabled, trackID: info.id) },
            reportFailure: { [eventSink, weak track] failure in
                if let track { eventSink.yield(.localTrackFailed(track, failure)) }
            }
        )
        publishers.append(Publication(track: track, trackID: info.id, publisher: publisher))
        path.value.add(publisher.sendQueue)
        publisher.setWanted(wantedLayers[info.id].map { !$0.isEmpty } ?? false)
        publisher.begin(route)
        if !track.isEnabled { announce(isEnabled: false, trackID: info.id) }
    }

    private func announce(isEnabled: Bool, trackID: String) {
        send(isEnabled ? .enable(Enable(trackId: trackID)) : .disable(Disable(trackId: trackID)))
    }

    /// Stops a track's source, then its encoder.
    private func stop(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async {
        await (track.source as? any VideoCapturer)?.stopCapture()
        if track.source.sink === publisher { track.source.sink = nil }
        await publisher.stop()
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
        guard !hasEnded else { return }
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
            guard let participant = participants.removeValue(forKey: info.id) else { return }
            for track in participant.videoTracks { withdraw(track, of: participant) }
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
            unsubscribed(track, of: participant)
        case .published(let requestID, let info):
            guard let reply = publishReplies[requestID] else {
                // The answer came too late: whoever asked has been told that nothing is published.
                return send(.unpublish(Unpublish(trackId: info.id)))
            }
            reply.fulfill(.success(info))
        case .refused(let error):
            let failure = RoomError(.refused, "The server refused: \(error.message).", serverCode: error.code)
            if let reply = error.requestId.flatMap({ publishReplies[$0] }) { return reply.fulfill(.failure(failure)) }
            eventSink.yield(.requestRefused(failure))
        case .layersWanted(let trackID, let layers):
            // Only of a track that is published, or about to be, is it worth remembering.
            let isOurs = !waitingPublishers.isEmpty || publishers.contains { $0.trackID == trackID }
            if isOurs && wantedLayers.count < 4 * WireFormat.maximumTracksPerParticipant {
                wantedLayers[trackID] = layers
            }
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

    private func known(_ info: TrackInfo, _ publisher: ParticipantInfo) -> (RemoteVideoTrack, RemoteParticipant)? {
        guard let track = tracks[info.id], let participant = participants[publisher.id] else { return nil }
        return (track, participant)
    }

    private func end(_ error: RoomError?) {
        guard !hasEnded else { return }
        hasEnded = true
        ending = error ?? ending
        joining.fulfill(.failure(ending))
        for reply in publishReplies.values { reply.fulfill(.failure(ending)) }
        for publisher in waitingPublishers { publisher.giveUpWaiting() }
        for publication in publishers {
            publication.watch?.cancel()
            finishLater { [self] in
                await stop(publication.track, publication.publisher)
                publication.publisher.retire()
            }
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
            subscribed: asked[trackID] ?? joinSent,
            after: formerReceivers.removeValue(forKey: trackID)
        )
        path.value.begin(receiver, alias: alias)
        aliases[trackID] = alias
    }

    private func endReception(of trackID: String) {
        guard let alias = aliases.removeValue(forKey: trackID) else { return }
        guard let receiver = path.value.endReception(of: alias) else { return }
        receiver.track.setKeyframeRequest(nil)
        receiver.close()
        if tracks[trackID] != nil { formerReceivers[trackID] = receiver }
        finishLater { await receiver.stop() }
    }

    /// Ends the reception of a track and tells the application, if it was received.
    private func unsubscribed(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        guard aliases[track.sid] != nil else { return }
        endReception(of: track.sid)
        eventSink.yield(.trackUnsubscribed(track, participant))
    }

    /// Forgets a track that is there no longer, and tells of it.
    private func withdraw(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        unsubscribed(track, of: participant)
        tracks[track.sid] = nil
        asked[track.sid] = nil
        formerReceivers[track.sid] = nil
        participant.remove(track)
        eventSink.yield(.trackUnpublished(track, participant))
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
        path.value.connectionEnded()
        defer { connectionEnded.fulfill(()) }
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
