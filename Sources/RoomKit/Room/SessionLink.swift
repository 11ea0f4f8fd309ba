import MediaCore
import RoomProtocol
import Threading

/// A room's session with the server and its progress; confined to the room.
struct SessionLink {
    /// The session, which decides what to send and what to report.
    var session: ClientSession
    /// Wakes the room at the session's next deadline.
    var timer: Task<Void, any Error>?
    /// When `join` was sent; it also asks for the tracks that exist already.
    var joinSent = MonotonicClock.now
    /// The server's id for the room.
    var sid = ""
    /// Program and version of the server; empty until it has joined us.
    var server = ""
    var hasJoined = false
    var hasEnded = false
    var isHangingUp = false
    /// Why the session has ended; later calls throw this error.
    var ending = RoomError(.notConnected, "The room was left.")
    /// The server's answer to `join`.
    let joining = Promise<Result<Joined, RoomError>>()
    let connectionEnded = Promise<Void>()

    init(_ options: ConnectOptions) {
        let settings = ClientSession.Settings(
            join: Join(
                room: options.roomName,
                identity: options.identity,
                token: options.accessToken,
                bootId: MonotonicClock.bootID,
                automaticSubscription: options.isAutomaticSubscriptionEnabled,
                client: options.clientName
            ),
            videoCodecs: Set(TrackCodec.all.map(\.name))
        )
        session = ClientSession(settings)
    }
}

/// Background work that `Room.disconnect` waits for; confined to the room.
struct UnfinishedWork {
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var nextNumber = 0

    /// Any one of the tasks; `nil` if none is left.
    var first: Task<Void, Never>? { tasks.values.first }

    /// Takes a new number, for another task.
    mutating func takeNumber() -> Int {
        nextNumber += 1
        return nextNumber
    }

    /// The task with a number; `nil` once it is done.
    subscript(number: Int) -> Task<Void, Never>? {
        get { tasks[number] }
        set { tasks[number] = newValue }
    }
}
