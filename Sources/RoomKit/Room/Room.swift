import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// A room that this program has joined.
///
/// The room runs on the thread of its event loop. Calls from other threads hop to that thread; events of the connection
/// are already on it. Pictures never wait for the room: they are encoded and decoded on threads of their own.
public actor Room {
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The executor that runs the room: its event loop's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    nonisolated let options: ConnectOptions
    /// The loop whose thread runs the room.
    nonisolated var loop: WebSocketLoop { path.loop }
    /// Decides what the connection carries; the published tracks share it.
    nonisolated let uplink: Uplink
    /// Writes the inputs of the uplink to a file.
    nonisolated let recorder: UplinkRecorder?
    nonisolated let path: LoopConfined<PacketPath>
    nonisolated let eventQueue = EventQueue()
    nonisolated let clock = ClockBox()
    var link: SessionLink
    var publications = Publications()
    var remote = RemoteTracks()
    private var unfinished = UnfinishedWork()

    init(options: ConnectOptions, loop: WebSocketLoop) throws(RoomError) {
        self.options = options
        let uplink = Uplink()
        self.uplink = uplink
        recorder = try options.adaptationLog.map { path throws(RoomError) in try UplinkRecorder(path: path, of: uplink)
        }
        path = LoopConfined(on: loop) { PacketPath(uplink: uplink) }
        localParticipant = LocalParticipant(identity: options.identity)
        link = SessionLink(options)
    }

    // MARK: For the application

    /// The room's name.
    public nonisolated var name: String { options.roomName }

    /// The events of the room, for one more reader.
    ///
    /// Each use of this property makes a new reader with its own queue of events. To read on after a `break`, keep the
    /// value. The first reader gets all events since joining. Later readers get the events from then on. All readers
    /// get `disconnected`. Participants and tracks that were there before we joined are in `remoteParticipants`.
    public nonisolated var events: RoomEvents { eventQueue.makeEvents() }

    /// Whether the room can be used.
    public var state: RoomState { link.hasEnded ? .disconnected : .connected }

    /// The other participants in the room, in no particular order.
    public var remoteParticipants: [RemoteParticipant] { Array(remote.participants.values) }

    /// The server's id for the room, `RM…`.
    public var sid: String { link.sid }

    /// Why the file of `ConnectOptions.adaptationLog` is not complete; `nil` if it is, or there is none.
    ///
    /// It is known once the room is left.
    public nonisolated var adaptationLogFailure: RoomError? { recorder?.failure }

    /// Leaves the room: withdraws the published tracks, sends the frames that are already encoded, closes the
    /// connection.
    ///
    /// It returns when all threads of the room's tracks have ended, so that their statistics are final, and the server
    /// has been told. It waits at most one second for a server that does not read. A second call does nothing.
    public func disconnect() async {
        // This needs a task of its own, because a cancelled task would not wait.
        await Task { await leave() }.value
    }

    private func leave() async {
        // Withdraw all tracks at once: each may take half a second on a slow connection.
        let withdrawals = publications.published.map { withdraw($0) }
        for withdrawal in withdrawals { await withdrawal.value }
        perform(link.session.leave())
        while let task = unfinished.first { await task.value }
        if await link.connectionEnded.value(within: .seconds(1)) == nil {
            // The connection is blocked, so the close that is queued behind it has not even begun. Close directly.
            path.value.connection?.close(code: 1000, reason: "left")
        }
        await recorder?.close()
    }

    /// Runs `work` in the background, and makes `disconnect` wait for it.
    func finishLater(_ work: @escaping @Sendable () async -> Void) {
        let number = unfinished.takeNumber()
        unfinished[number] = Task {
            await work()
            unfinished[number] = nil
        }
    }

    /// Subscribes to a track of another participant; needed if automatic subscription is off, or after a failure.
    ///
    /// It does not wait. The answer is one of these events: `trackSubscribed`, `trackSubscriptionFailed`, or
    /// `requestRefused` if the track is gone. It does nothing if the track is already subscribed to, or the session has
    /// ended. The track's preferences hold from the first frame on.
    ///
    /// A track that fails because too many are received (`RoomError.Code.tooManyTracks`) is subscribed to once another one
    /// has ended, unless `unsubscribe(from:)` is called. This holds for automatic subscriptions as well.
    public func subscribe(to track: RemoteVideoTrack) {
        remote.entries[track.sid]?.asked = MonotonicClock.now
        remote.entries[track.sid]?.isGivenUp = false
        remote.entries[track.sid]?.waitingSince = nil
        sayPreferences(of: track)
    }

    /// Ends the subscription to a track.
    ///
    /// It does not wait. The answer is the event `trackUnsubscribed`, or `requestRefused` if the track is not
    /// subscribed to. A track that waits because too many are received waits no longer, without an event.
    public func unsubscribe(from track: RemoteVideoTrack) {
        let isWaiting = remote.entries[track.sid]?.waitingSince != nil
        remote.entries[track.sid]?.waitingSince = nil
        remote.entries[track.sid]?.isGivenUp = true
        guard !isWaiting else { return }
        send(.unsubscribe(Unsubscribe(trackId: track.sid)))
    }

    /// Sets what this program needs of a track: a size, a frame rate, a priority, or nothing for now.
    ///
    /// They replace the former preferences. They may be set before the track is subscribed to, and are kept when the
    /// subscription ends. It does not wait, there is no event, and it does nothing to a track that is withdrawn.
    public func setPreferences(_ preferences: VideoSubscriptionPreferences, of track: RemoteVideoTrack) {
        track.setPreferences(preferences)
        updatePreferences(of: track)
    }

    // MARK: Joining

    func join(_ url: WebSocketURL) async throws {
        localParticipant.attach(self)
        var connectOptions = ClientOptions(url: url)
        connectOptions.subprotocol = WireFormat.subprotocol
        connectOptions.congestionControl = options.congestionControl
        connectOptions.limits = MessageLimits(
            maximumBinaryMessage: WireFormat.maximumBinaryMessage.bytes,
            maximumTextMessage: WireFormat.maximumTextMessage.bytes
        )
        path.value.room = self
        loop.connect(connectOptions) { [path] in path.value }
        let answer = await link.joining.value(within: .seconds(30))
        guard let result = answer, !Task.isCancelled else {
            perform(link.session.leave())
            try Task.checkCancellation()
            throw RoomError(.serverUnavailable, "No answer from \(options.url) in time; check that the server runs.")
        }
        let joined = try result.get()
        link.sid = joined.room.id
        link.server = joined.server
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
        // A server that ends the session closes the connection. If it does not, we close it.
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
