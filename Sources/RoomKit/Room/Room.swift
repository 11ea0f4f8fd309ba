import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// A room that this program has joined.
///
/// The room lives on the thread of its event loop. Calls from elsewhere hop to that thread; what comes from the
/// connection is there already. Pictures never wait for it: they are encoded and decoded on threads of their own.
public actor Room {
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The thread that the room lives on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    nonisolated let options: ConnectOptions
    nonisolated let loop: WebSocketLoop
    nonisolated let path: LoopConfined<PacketPath>
    nonisolated let eventQueue = EventQueue()
    nonisolated let clock = ClockBox()
    var link: SessionLink
    var publications = Publications()
    var remote = RemoteTracks()
    private var unfinished = UnfinishedWork()

    init(options: ConnectOptions, loop: WebSocketLoop) {
        self.options = options
        self.loop = loop
        path = LoopConfined(on: loop) { PacketPath() }
        localParticipant = LocalParticipant(identity: options.identity)
        link = SessionLink(options)
    }

    // MARK: For the application

    /// The room's name.
    public nonisolated var name: String { options.roomName }

    /// What happens in the room, for one more reader.
    ///
    /// Each use of this property makes a place where events wait for one reader: to read on after a `break`, keep the
    /// value. The first reader gets all events since joining, later ones those from now on; all get `disconnected`. The
    /// participants and tracks that were there before us are in `remoteParticipants`.
    public nonisolated var events: RoomEvents { eventQueue.makeEvents() }

    /// Whether the room can be used.
    public var state: RoomState { link.hasEnded ? .disconnected : .connected }

    /// The other participants in the room, in no order.
    public var remoteParticipants: [RemoteParticipant] { Array(remote.participants.values) }

    /// The server's id for the room, `RM…`.
    public var sid: String { link.sid }

    /// Leaves the room: withdraws what is published, lets what is encoded go out, closes the connection.
    ///
    /// Returns when all threads of the room's tracks have ended, so that their statistics are final, and the server has
    /// been told; a server that does not listen is waited for at most a second. Leaving twice does nothing.
    public func disconnect() async {
        // In a task of its own, because a cancelled one waits for nothing.
        await Task { await leave() }.value
    }

    private func leave() async {
        // All at once: each may take half a second on a slow connection.
        let withdrawals = publications.published.map { withdraw($0) }
        for withdrawal in withdrawals { await withdrawal.value }
        perform(link.session.leave())
        while let task = unfinished.first { await task.value }
        guard await link.connectionEnded.value(within: .seconds(1)) == nil else { return }
        // Nothing can be sent, so that the hanging up has not even begun.
        path.value.connection?.close(code: 1000, reason: "left")
    }

    /// Has `disconnect` wait for `work`.
    func finishLater(_ work: @escaping @Sendable () async -> Void) {
        let number = unfinished.takeNumber()
        unfinished[number] = Task {
            await work()
            unfinished[number] = nil
        }
    }

    /// Asks for a track of another participant; only needed where automatic subscription is off, or after a failure.
    ///
    /// Does not wait. The answer is one of the events `trackSubscribed`, `trackSubscriptionFailed`, and `requestRefused` if
    /// the track is gone. Does nothing for a track that is subscribed to already, and after the end of the session.
    public func subscribe(to track: RemoteVideoTrack) {
        remote.entries[track.sid]?.asked = MonotonicClock.now
        send(.subscribe(Subscribe(trackId: track.sid)))
    }

    /// Gives up the subscription to a track.
    ///
    /// Does not wait. The answer is the event `trackUnsubscribed`, or `requestRefused` for a track that is not subscribed
    /// to.
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
        let answer = await link.joining.value(within: .seconds(30))
        guard let result = answer, !Task.isCancelled else {
            perform(link.session.leave())
            try Task.checkCancellation()
            throw RoomError(.serverUnavailable, "No answer from \(options.url) in time.")
        }
        let joined = try result.get()
        link.sid = joined.room.id
        localParticipant.joined(as: joined.participant.id)
    }

    // MARK: Driving the session

    func send(_ message: ClientMessage) {
        guard !link.hasEnded else { return }
        perform([.send(message)])
    }

    func perform(_ actions: [ClientSession.Action]) {
        for action in actions {
            switch action {
            case .send(let message): path.value.send(.text(message.text))
            case .close(let code, let reason): hangUp(code, reason)
            case .notify(let event): handle(event)
            }
        }
        // A server that ends the session hangs up; one that does not is hung up on.
        if link.hasEnded { hangUp(1000, "the session is over") }
        if let estimate = link.session.clockEstimate { clock.estimate = estimate }
        armTimer()
    }

    private func hangUp(_ code: UInt16, _ reason: String) {
        guard path.value.connection != nil, !link.isHangingUp else { return }
        link.isHangingUp = true
        path.value.send(.close(code: code, reason: reason))
    }

    private func armTimer() {
        link.timer?.cancel()
        link.timer = nil
        guard let deadline = link.session.nextDeadline else { return }
        link.timer = Task {
            try await Task.sleep(for: max(.zero, deadline.duration(since: MonotonicClock.now)))
            perform(link.session.deadlineReached(at: MonotonicClock.now))
        }
    }
}
