import MediaCore
import RoomProtocol

/// Somebody who is in a room.
///
/// A participant is not its connection, and can be without one: then it keeps its tracks and subscriptions, and what it
/// would be told is dropped.
struct Participant: Sendable {
    let id: String
    let identity: String
    /// The name of its room.
    let room: String
    var publications: [TrackID] = []
    /// Backoffs of tracks that the participant received earlier: coming back does not begin them anew.
    var earlierBackoffs: [TrackID: KeyframeBackoff] = [:]
    /// What others are told of it; `nil` after a change, until somebody joins.
    var snapshot: ParticipantSnapshot?
}

/// What one participant receives and sends, of which something is looked at for every packet.
struct SubscriberState: Sendable {
    /// A track that the participant receives, or has paused.
    struct Subscription: Sendable {
        let track: TrackID
        var cursor: ForwardingCursor
        var isPaused = false
        var backoff = KeyframeBackoff()
        /// What the track had dropped without storing it when the subscription began.
        var unstoredBefore: TrackFanout.Unstored
        /// What became of packets before the last pause.
        var earlierCounts = PacketCounts()
    }

    /// How the participant is reached.
    var connection: ConnectionID?
    var subscribesAutomatically = true
    /// What it has sent of the media that it may send.
    var budget: MediaBudget
    /// Which subscription has the next turn, so that no track starves another.
    var turn = 0
    var subscriptions: [Subscription] = []

    /// Which of the subscriptions is the one to `track`.
    func index(of track: TrackID) -> Int? { subscriptions.firstIndex { $0.track == track } }
}

/// A room with somebody in it.
struct Room: Sendable {
    let id: String
    let name: String
    /// In order of joining.
    var participants: [ParticipantID] = []
    var participantsByIdentity: [String: ParticipantID] = [:]
    var trackCount = 0
}
