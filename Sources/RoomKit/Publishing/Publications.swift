import MediaCore
import RoomProtocol
import Threading

/// A local track in a room, from the call of `publish` to its withdrawal; confined to the room.
final class Publication {
    let track: LocalVideoTrack
    let publisher: VideoPublisher
    /// The server's id for the track; `nil` until it has accepted the track.
    var trackID: String?
    /// Whether `unpublish` was called before the publication was complete.
    var isWithdrawn = false
    /// The server's answer, while it is asked.
    var reply: Promise<Result<TrackInfo, RoomError>>?
    /// Whether the track is enabled, as the server was told last.
    var announcedEnabled = true
    /// Reports when the track's camera fails.
    var watch: Task<Void, Never>?
    /// The withdrawing, once it has begun.
    var withdrawal: Task<Void, Never>?
    /// Fulfilled when `publish` has returned or failed.
    let settled = Promise<Void>()

    init(_ track: LocalVideoTrack, _ publisher: VideoPublisher) {
        self.track = track
        self.publisher = publisher
    }

    /// Ends all waiting that `publish` may be in, so that it fails.
    func giveUp() {
        publisher.giveUpWaiting()
        reply?.fulfill(.failure(Self.unpublished))
    }

    /// What `publish` throws when the track is withdrawn meanwhile.
    static let unpublished = RoomError(.unpublished, "The track was unpublished before its publication was complete.")
}

/// What a room publishes, and what it has asked the server; confined to the room.
struct Publications {
    /// The tracks, in the order in which `publish` was called.
    private(set) var all: [Publication] = []
    /// Which encodings of our tracks somebody receives, by track; it may be told before a track begins.
    private var wantedLayers: [String: [Int]] = [:]
    private var requests: [Int: Publication] = [:]
    private var nextRequestID = 1

    /// The tracks that the server has accepted.
    var published: [Publication] { all.filter { $0.trackID != nil } }

    /// The publication of `track`, complete or not.
    func publication(of track: LocalVideoTrack) -> Publication? { all.first { $0.track === track } }

    /// The publication of a track that the server has accepted.
    func publication(withID trackID: String) -> Publication? { all.first { $0.trackID == trackID } }

    mutating func add(_ publication: Publication) {
        all.append(publication)
    }

    /// Forgets a publication.
    ///
    /// - Returns: Whether it was there.
    @discardableResult
    mutating func remove(_ publication: Publication) -> Bool {
        guard let index = all.firstIndex(where: { $0 === publication }) else { return false }
        all.remove(at: index)
        if let trackID = publication.trackID { wantedLayers[trackID] = nil }
        return true
    }

    /// Begins to wait for the server's answer about `publication`.
    ///
    /// - Returns: The number of the request.
    mutating func beginRequest(for publication: Publication) -> Int {
        defer { nextRequestID += 1 }
        requests[nextRequestID] = publication
        publication.reply = Promise()
        return nextRequestID
    }

    mutating func endRequest(_ number: Int) {
        requests.removeValue(forKey: number)?.reply = nil
    }

    /// Hands the server's answer to whoever waits for it.
    ///
    /// - Returns: Whether somebody does.
    func answer(_ number: Int, with result: Result<TrackInfo, RoomError>) -> Bool {
        guard let reply = requests[number]?.reply else { return false }
        reply.fulfill(result)
        return true
    }

    /// Notes which encodings of a track somebody receives.
    mutating func setWanted(_ layers: [Int], trackID: String) {
        // Worth remembering only for a track that is published or about to be.
        let isOurs = all.contains { $0.trackID == trackID || $0.trackID == nil }
        if isOurs && wantedLayers.count < 4 * WireFormat.maximumTracksPerParticipant { wantedLayers[trackID] = layers }
        publication(withID: trackID)?.publisher.setWanted(!layers.isEmpty)
    }

    /// Whether somebody receives a track.
    func isWanted(_ trackID: String) -> Bool { wantedLayers[trackID].map { !$0.isEmpty } ?? false }

    /// Forgets everything; what waits for the server fails with `error`.
    mutating func end(with error: RoomError) -> [Publication] {
        for publication in requests.values { publication.reply?.fulfill(.failure(error)) }
        defer { (all, wantedLayers) = ([], [:]) }
        return all
    }
}
