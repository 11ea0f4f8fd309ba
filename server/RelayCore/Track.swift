import MediaCore
import RoomProtocol

/// A published track: what is seldom read of it.
struct Track: Sendable {
    /// A `subscribed` message with the values that it was made from.
    struct SubscribedText: Sendable {
        let simulcastLayer: Int
        let catchUpThrough: UInt32?
        let text: String
    }

    var info: TrackInfo
    /// What the publisher knows of its subscribers.
    var wanted = WantedLayers()
    /// Whether any subscriber has wished for a size, rate or priority.
    var hasWishes = false
    /// The participants that have paused their subscription.
    var pausedSubscribers: [ParticipantID] = []
    /// The last message made; many participants that join at one time get the same one.
    var subscribedText: SubscribedText?
}

/// What is read of a track for every packet that comes in.
struct TrackIntake: Sendable {
    let publisher: ParticipantID
    /// The usage of what the publisher may send of it, in all encodings together.
    var budget: MediaBudget
    /// Its encodings, by their numbers.
    var encodings: [EncodingID] = []
}

/// One of the separate encodings of a track: what is seldom read of it.
struct Encoding: Sendable {
    var keyframes: KeyframeRequestGate
    /// What the requests of subscribers that have only just come cost the others, together.
    var newcomerRequests = KeyframeBackoff()
    /// Its highest rate as announced, in bits per second.
    var announcedRate: Double?
}

/// The packets of one encoding of a track, and the subscribers that get them.
struct EncodingFanout: Sendable {
    /// Which packets the encoding accepts.
    enum Acceptance: Sendable {
        case all
        /// The first packet must be a keyframe's.
        case fromKeyframe
        /// The publisher has disabled the track.
        case none
    }

    /// The number of packets that were dropped without being stored.
    struct Unstored: Sendable {
        var disabled = 0
        var awaitingKeyframe = 0
    }

    let track: TrackID
    /// The encoding's number.
    let simulcastLayer: Int
    var stream: TrackStream
    var subscribers: [ParticipantID] = []
    /// The subscribers of the track's other encodings that change to this one at its next keyframe.
    var waiting: [ParticipantID] = []
    var order = FrameOrder()
    var acceptance = Acceptance.all
    var unstored = Unstored()
    /// The rate at which the publisher sends.
    var rate = SentRate()
    /// When the last packet came that was stored.
    var lastArrival: MonotonicInstant?
    /// When packets began to come after a silence.
    var flowSince: MonotonicInstant?
    /// When somebody last began to receive the encoding or to wait for it, while nobody did, or when the track was
    /// enabled for those who do.
    var wantedSince: MonotonicInstant?
    /// How long the publisher took, when it last began to send the encoding because somebody wanted it, in microseconds.
    var answerTime: Int64 = 0
    /// When the publisher is told that nobody receives the encoding, unless somebody subscribes before.
    var idleDeadline: MonotonicInstant?

    /// Whether somebody receives the encoding, or waits for it.
    var hasUsers: Bool { !subscribers.isEmpty || !waiting.isEmpty }

    /// Whether anybody but `id` receives the encoding or waits for it.
    func hasUsers(besides id: ParticipantID) -> Bool {
        subscribers.contains { $0 != id } || waiting.contains { $0 != id }
    }

    /// The one that receives the encoding or waits for it, if there is exactly one.
    var onlyUser: ParticipantID? {
        subscribers.count + waiting.count == 1 ? subscribers.first ?? waiting.first : nil
    }

    /// Whether somebody receives the encoding or waits for it, or has only just stopped.
    var isReceived: Bool { hasUsers || idleDeadline != nil }

    /// Whether packets came in the last `time`.
    func hasFlowed(within time: Duration, at now: MonotonicInstant) -> Bool {
        lastArrival.map { $0 + time >= now } ?? false
    }

    /// Notes that packets begin to come after a silence.
    mutating func beginFlow(at now: MonotonicInstant) {
        flowSince = now
        guard let wantedSince, lastArrival.map({ $0 < wantedSince }) ?? true else { return }
        answerTime = min(now.duration(since: wantedSince).wholeMicroseconds, Self.longestAnswerTime)
    }

    /// What takes longer has other reasons than the way to the publisher and back; in microseconds.
    private static let longestAnswerTime: Int64 = 10_000_000

    /// Admits a packet in order, or counts it as one that was dropped; the keyframe that is awaited admits all after it.
    ///
    /// - Returns: Whether the packet is admitted.
    mutating func admit(_ header: MediaPacketHeader) -> Bool {
        switch acceptance {
        case .all: return true
        case .none:
            unstored.disabled += 1
            return false
        case .fromKeyframe:
            guard header.isKeyframe && header.isFirstChunk else {
                unstored.awaitingKeyframe += 1
                return false
            }
            acceptance = .all
            return true
        }
    }
}
