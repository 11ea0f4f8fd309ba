import MediaCore
import RoomProtocol

/// A participant in a room.
///
/// A participant is not its connection, and can be without one. It then keeps its tracks and subscriptions, and
/// messages to it are dropped.
struct Participant: Sendable {
    let id: String
    let identity: String
    /// The name of its room.
    let room: String
    var publications: [TrackID] = []
    /// Backoffs for tracks that the participant received earlier, so that subscribing again does not reset them.
    var earlierBackoffs: [TrackID: KeyframeBackoff] = [:]
    /// The participant's description for others; `nil` after a change, until somebody joins.
    var snapshot: ParticipantSnapshot?
}

/// What one participant receives and sends; parts of it are read for every packet.
struct SubscriberState: Sendable {
    /// A track that the participant receives or has paused.
    struct Subscription: Sendable {
        let track: TrackID
        // Before the cursor's counts, which are seldom touched: every packet needs this.
        var isPaused = false
        var cursor: ForwardingCursor
        var backoff = KeyframeBackoff()
        /// The number of packets that the track had dropped without storing when the subscription began.
        var unstoredBefore: TrackFanout.Unstored
        /// The packet counts from before the last pause.
        var earlierCounts = PacketCounts()
        var wish = SubscriptionWish()
        /// The part of the path's rate that the track gets, in bits per second; `nil` if no limit is known.
        var share: Double?
        /// When a frame last was late enough that lower temporal layers would help.
        var lastLag: MonotonicInstant?
    }

    // The fields that every packet needs come first, so that they share a cache line.
    var subscriptions: [Subscription] = []
    /// The turns of the subscriptions, so that no track starves another.
    var turns = RoundRobin()
    /// The participant's connection, if it has one.
    var connection: ConnectionID?
    var subscribesAutomatically = true
    /// The usage of the media that it may send.
    var budget: MediaBudget

    /// The index of the subscription to `track`.
    func index(of track: TrackID) -> Int? { subscriptions.firstIndex { $0.track == track } }
}

/// A room with at least one participant.
struct Room: Sendable {
    let id: String
    let name: String
    /// The participants in order of joining.
    var participants: [ParticipantID] = []
    var participantsByIdentity: [String: ParticipantID] = [:]
    var trackCount = 0
}
