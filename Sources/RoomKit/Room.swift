import MediaCore
import RoomProtocol
import Threading
import V4L2Capture
import WebSockets

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
    /// lost, but for `disconnected`, which always comes, at the end. Who was there before us is in `remoteParticipants`;
    /// who came since is there and comes as an event as well.
    public nonisolated let events: AsyncStream<RoomEvent>
    /// This program in the room.
    public nonisolated let localParticipant: LocalParticipant

    /// The thread that the room lives on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// A track of ours that is published.
    struct Publication {
        var track: LocalVideoTrack
        var trackID: String
        var publisher: VideoPublisher
        /// Tells the application when the track's camera gives out.
        var watch: Task<Void, Never>?
    }

    nonisolated let loop: WebSocketLoop
    nonisolated let path: LoopConfined<PacketPath>
    let happenings = EventQueue()
    let clock = ClockBox()
    let joining = Promise<Result<Joined, RoomError>>()
    let connectionEnded = Promise<Void>()
    let options: ConnectOptions
    var session: ClientSession
    var timer: Task<Void, any Error>?
    var hasJoined = false
    var hasEnded = false
    var isHangingUp = false
    /// Why the session has ended, for those who ask for something afterwards.
    var ending = RoomError(.notConnected, "The room was left.")

    var nextRequestID = 1
    var publishReplies: [Int: Promise<Result<TrackInfo, RoomError>>] = [:]
    var publishers: [Publication] = []
    /// Which encodings of our tracks somebody receives, by track; it may be told before a track begins.
    var wantedLayers: [String: [Int]] = [:]
    /// Tracks that are about to be published.
    var waitingPublishers: [(track: LocalVideoTrack, publisher: VideoPublisher)] = []

    var participants: [String: RemoteParticipant] = [:]
    var tracks: [String: RemoteVideoTrack] = [:]
    var aliases: [String: UInt32] = [:]
    var asked: [String: MonotonicInstant] = [:]
    var joinSent = MonotonicClock.now
    /// The last receiver of a track, which may still be about to end.
    var formerReceivers: [String: VideoReceiver] = [:]
    /// Receivers that have been told to stop and whose threads still run.
    var endingReceivers = 0
    /// What `disconnect` waits for, by a number of its own.
    var unfinished: [Int: Task<Void, Never>] = [:]
    var unfinishedNumber = 0

    init(options: ConnectOptions, loop: WebSocketLoop) {
        self.options = options
        self.loop = loop
        path = LoopConfined(on: loop) { PacketPath() }
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

    /// The others in the room, in no order.
    public var remoteParticipants: [RemoteParticipant] { Array(participants.values) }

    /// The server's id for the room, `RM…`.
    public private(set) var sid = ""

    /// Leaves the room: withdraws what is published, lets what is encoded go out, closes the connection.
    ///
    /// Returns when all threads of the room's tracks have ended, so that their statistics are final, and the server has
    /// been told, or after a second if it does not listen. Leaving twice does nothing.
    public func disconnect() async {
        // In a task of its own, because a cancelled one waits for nothing.
        await Task { await leave() }.value
    }

    private func leave() async {
        for publication in publishers { await unpublish(publication.track) }
        perform(session.leave())
        while let task = unfinished.first?.value { await task.value }
        guard await connectionEnded.value(within: .seconds(1)) == nil else { return }
        // Nothing can be sent, so that the hanging up has not even begun.
        path.value.connection?.close(code: 1000, reason: "left")
    }

    /// Has `disconnect` wait for `work`.
    func finishLater(_ work: @escaping @Sendable () async -> Void) {
        unfinishedNumber += 1
        let number = unfinishedNumber
        unfinished[number] = Task {
            await work()
            unfinished[number] = nil
        }
    }

    /// Asks for a track of somebody else; only needed where automatic subscription is off.
    ///
    /// Does not wait: the answer comes as `RoomEvent.trackSubscribed`, as `trackSubscriptionFailed`, or as
    /// `requestRefused` if the track is gone. Does nothing for a track that is subscribed to already, and once the session is over.
    public func subscribe(to track: RemoteVideoTrack) {
        asked[track.sid] = MonotonicClock.now
        send(.subscribe(Subscribe(trackId: track.sid)))
    }

    /// Wants a track no longer.
    ///
    /// Does not wait: the answer comes as `RoomEvent.trackUnsubscribed`, or as `requestRefused` for a track that is not
    /// subscribed to.
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

    // MARK: Driving the session

    func send(_ message: ClientMessage) {
        guard !hasEnded else { return }
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
        if hasEnded { hangUp(1000, "the session is over") }
        if let estimate = session.clockEstimate { clock.estimate = estimate }
        armTimer()
    }

    func hangUp(_ code: UInt16, _ reason: String) {
        guard path.value.connection != nil, !isHangingUp else { return }
        isHangingUp = true
        path.value.send(.close(code: code, reason: reason))
    }

    func armTimer() {
        timer?.cancel()
        timer = nil
        guard let deadline = session.nextDeadline else { return }
        timer = Task {
            try await Task.sleep(for: max(.zero, deadline.duration(since: MonotonicClock.now)))
            perform(session.deadlineReached(at: MonotonicClock.now))
        }
    }
}
