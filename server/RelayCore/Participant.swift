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
    /// How often others joined with its identity.
    var replacements: TokenBucket
    var publications: [TrackID] = []
    /// What is kept of subscriptions that have ended, so that subscribing again does not reset it.
    var earlier: [TrackID: EarlierSubscription] = [:]
    var quality = NetworkQualityMeter()
    /// Whether its network answers while it publishes and sends nothing.
    var pulse = PublisherPulse()
    /// The packet counts of its subscriptions that have ended.
    var endedCounts = PacketCounts()
    /// The level of its network that the participant itself knows.
    var knownQuality = 5
    /// The level of its network that the others in the room know, and its message; 5 before the first one.
    var sharedQuality: (level: Int, text: String) = (5, "")
    /// The participant's description for others; `nil` after a change, until somebody joins.
    var snapshot: ParticipantSnapshot?
}

/// What is kept of a subscription after its end, so that a subscriber cannot escape its limits by subscribing again.
struct EarlierSubscription: Sendable {
    var backoff: KeyframeBackoff
    var choice: LayerChoice
}

/// What one participant receives and sends; parts of it are read for every packet.
struct SubscriberState: Sendable {
    /// A track that the participant receives or has paused.
    struct Subscription: Sendable {
        let track: TrackID
        /// The encoding of the track that the subscriber is sent.
        var encoding: EncodingID
        // Before the cursor's counts, which are seldom touched: every packet needs these.
        var isPaused = false
        /// Whether the encoding to change to can be decoded from now on.
        var isChangeReady = false
        /// Whether the subscriber was told that nothing of the track is sent.
        var isSwitchedOff = false
        /// When the last packet was sent; at first when the subscription began or was resumed.
        var lastSent: MonotonicInstant
        var cursor: ForwardingCursor
        /// The encoding to which the subscriber changes as soon as it can be decoded.
        var target: EncodingID?
        var choice: LayerChoice
        /// When the subscription began or was resumed.
        var began: MonotonicInstant
        var backoff = KeyframeBackoff()
        /// The number of packets that the track had dropped without storing when the subscription began.
        var unstoredBefore: EncodingFanout.Unstored
        /// The packet counts from before the last pause.
        var earlierCounts = PacketCounts()
        var wish = SubscriptionWish()
        /// The part of the path's rate that the track gets, in bits per second; `nil` if no limit is known.
        var share: Double?
        /// The share with which the track's bounds were last compared.
        var comparedShare: Double?
        var lag = LagEpisode()
        /// When the subscriber last had to skip to a keyframe that was not there yet.
        var lastSkip: MonotonicInstant?
        /// Whether a late joiner goes on with the cached frames.
        var catchUp = CatchUpChoice(fromCache: false)
        /// The frames of the encoding that were sent over a limited path.
        var progress = FrameProgress()
        /// The bytes that were sent over a limited path, times 4 and divided by the wish's weight (the finish tag of
        /// start-time fair queueing).
        var finishTag = 0
    }

    // The fields that every packet needs come first, so that they share a cache line.

    /// The subscriptions, in any order; `add` and `removeSubscription` alone change how many there are.
    ///
    /// A plain array, because reads through accessors of another type, such as one list of both, copy this whole value for
    /// each packet.
    var subscriptions: [Subscription] = []
    /// The track of each of `subscriptions`: small, so that a track among hundreds is found fast.
    private(set) var subscribedTracks: [TrackID] = []
    /// The turns of the subscriptions, so that no track starves another.
    var turns = RoundRobin()
    /// The participant's connection, if it has one.
    var connection: ConnectionID?
    /// Whether `Relay.participantDeadlines` has a time to look at its network.
    var isReviewDue = false
    var subscribesAutomatically = true
    /// The usage of the media that it may send.
    var budget: MediaBudget

    /// The index of the subscription to `track`.
    func index(of track: TrackID) -> Int? {
        let index = subscribedTracks.firstIndex(of: track)
        assert(subscriptions.count == subscribedTracks.count && index.map { subscriptions[$0].track == track } ?? true)
        return index
    }

    mutating func add(_ subscription: Subscription) {
        subscriptions.append(subscription)
        subscribedTracks.append(subscription.track)
    }

    /// Removes any subscription; `nil` if there is none.
    mutating func takeSubscription() -> Subscription? {
        subscriptions.isEmpty ? nil : removeSubscription(at: subscriptions.count - 1)
    }

    /// Removes the subscription at `index`; the last one takes its place.
    ///
    /// - Returns: The subscription.
    mutating func removeSubscription(at index: Int) -> Subscription {
        let last = subscriptions.count - 1
        subscriptions.swapAt(index, last)
        subscribedTracks.swapAt(index, last)
        subscribedTracks.removeLast()
        return subscriptions.removeLast()
    }
}

/// A room with at least one participant.
struct Room: Sendable {
    let id: String
    let name: String
    /// How many participants joined.
    var joins: TokenBucket
    /// How many messages to the others the joins have caused, with those of leaving.
    var joinDeliveries: TokenBucket
    /// The participants in order of joining.
    var participants: [ParticipantID] = []
    var participantsByIdentity: [String: ParticipantID] = [:]
    var trackCount = 0
}
