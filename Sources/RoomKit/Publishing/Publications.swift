import MediaCore
import RoomProtocol
import Threading

/// The properties of a published track that can change.
struct ChangeableProperties: Hashable {
    /// The highest rate of the pictures, in frames per second.
    var frameRate: Double?
    /// The encodings with their highest bitrates and largest sizes; `nil` if there is one.
    var encodings: [SimulcastLayer]?

    /// The message that tells the server of them; it leaves out what is as in `former`.
    func update(of trackID: String, since former: ChangeableProperties) -> UpdateTrack {
        var update = UpdateTrack(trackId: trackID)
        if frameRate != former.frameRate { update.frameRate = frameRate }
        if let encodings {
            let (bitrates, sizes) = (encodings.compactMap(\.bitrate), encodings.map(\.size))
            if bitrates != former.encodings?.compactMap(\.bitrate) { update.bitrates = bitrates }
            if sizes != former.encodings?.map(\.size) { update.sizes = sizes }
        }
        return update
    }
}

/// A local track in a room, from the call of `publish` until it is withdrawn; confined to the room.
final class Publication {
    let track: LocalVideoTrack
    let publisher: VideoPublisher
    /// The server's id for the track; `nil` until it has accepted the track.
    var trackID: String?
    /// Whether `unpublish` was called before the publication was complete.
    var isWithdrawn = false
    /// Will hold the server's answer, while a request is open.
    var reply: Promise<Result<TrackInfo, RoomError>>?
    /// The value of `isEnabled` that the server was told last.
    var announcedEnabled = true
    /// What the server was told last of the properties that can change.
    var announced = ChangeableProperties()
    /// When the server may be told other ones; `nil` for at once.
    var nextAnnouncement: MonotonicInstant?
    /// Whether it is going to be told the present ones at that time.
    var isAnnouncementDue = false
    /// Reports the events of the track's source, from before its start.
    var watch: Task<Void, Never>?
    /// The task that withdraws the track, once it has begun.
    var withdrawal: Task<Void, Never>?
    /// Fulfilled when `publish` has returned or failed.
    let settled = Promise<Void>()

    init(_ track: LocalVideoTrack, _ publisher: VideoPublisher) {
        self.track = track
        self.publisher = publisher
    }

    /// Ends whatever `publish` may be waiting for, so that it fails.
    func giveUp() {
        publisher.giveUpWaiting()
        reply?.fulfill(.failure(Self.unpublished))
    }

    /// The error that `publish` throws if the track is withdrawn meanwhile.
    static let unpublished = RoomError(.unpublished, "The track was unpublished before its publication was complete.")
}

/// The tracks that a room publishes, and its open requests to the server; confined to the room.
struct Publications {
    /// The tracks, in the order in which `publish` was called.
    private(set) var all: [Publication] = []
    /// The encodings that somebody receives, by track; the server may report them before we begin to encode a track.
    private var wantedLayers: [String: [WantedLayer]] = [:]
    /// The requests for whose answer a task waits.
    private var requests: [Int: Publication] = [:]
    /// The requests that were sent and that the server has not answered.
    private var unanswered: Set<Int> = []
    /// Those of them for whose answer no task waits any more: the server may accept the track yet.
    private var abandoned: [Int: Abandoned] = [:]
    private var nextRequestID = 1

    /// A request whose answer still decides whether its name is free.
    private struct Abandoned {
        var name: String
        /// The requests of the same name that are to be sent after the answer.
        var next: [(number: Int, message: ClientMessage)] = []
    }

    /// The tracks that the server has accepted.
    var published: [Publication] { all.filter { $0.trackID != nil } }

    /// The publication of a track that the server has accepted.
    func publication(withID trackID: String) -> Publication? { all.first { $0.trackID == trackID } }

    mutating func add(_ publication: Publication) {
        all.append(publication)
    }

    /// Removes a publication.
    ///
    /// - Returns: Whether it was there.
    @discardableResult
    mutating func remove(_ publication: Publication) -> Bool {
        guard let index = all.firstIndex(where: { $0 === publication }) else { return false }
        all.remove(at: index)
        if let trackID = publication.trackID { wantedLayers[trackID] = nil }
        forgetUnclaimed()
        return true
    }

    /// Records that the server has accepted `publication` as the track `trackID`.
    mutating func accepted(_ publication: Publication, as trackID: String) {
        publication.trackID = trackID
        forgetUnclaimed()
    }

    /// Forgets the wanted layers of tracks that are not published, unless one is about to be.
    ///
    /// The server may send them for tracks whose publication failed, or that were withdrawn.
    private mutating func forgetUnclaimed() {
        if !all.contains(where: { $0.trackID == nil }) { keepPublished() }
    }

    private mutating func keepPublished() {
        let published = Set(all.compactMap(\.trackID))
        wantedLayers = wantedLayers.filter { published.contains($0.key) }
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

    /// Notes a request, with its message that publishes a track.
    ///
    /// - Returns: Whether to send the message now. If not, a former request of the same name is still open that was given
    ///   up: the server would refuse a second one. The message is then among `messages(after:)` the former one.
    mutating func note(_ number: Int, _ message: ClientMessage) -> Bool {
        let name = requests[number]?.track.name
        if let former = abandoned.first(where: { $0.value.name == name })?.key {
            abandoned[former]?.next.append((number, message))
            return false
        }
        unanswered.insert(number)
        return true
    }

    /// Forgets the former request for whose answer this one has waited in vain, so that it blocks no further one.
    mutating func forgetRequest(before number: Int) {
        for (former, request) in abandoned where request.next.contains(where: { $0.number == number }) {
            abandoned[former] = nil
            unanswered.remove(former)
        }
    }

    mutating func endRequest(_ number: Int) {
        guard let publication = requests.removeValue(forKey: number) else { return }
        publication.reply = nil
        for former in abandoned.keys { abandoned[former]?.next.removeAll { $0.number == number } }
        if unanswered.contains(number) { abandoned[number] = Abandoned(name: publication.track.name) }
    }

    /// Passes the server's answer to the task that waits for it.
    ///
    /// - Returns: Whether a task waits. If it does not, the caller of `publish` has been told that nothing is published.
    mutating func answer(_ number: Int, with result: Result<TrackInfo, RoomError>) -> Bool {
        unanswered.remove(number)
        guard let reply = requests[number]?.reply, reply.current == nil else { return false }
        reply.fulfill(result)
        return true
    }

    /// Takes the messages that are to be sent after the answer to a request that was given up.
    mutating func messages(after number: Int) -> [ClientMessage] {
        guard let next = abandoned.removeValue(forKey: number)?.next else { return [] }
        unanswered.formUnion(next.map(\.number))
        return next.map(\.message)
    }

    /// Records which encodings of a track somebody receives, and what can be used of them.
    mutating func setWanted(_ layers: [WantedLayer], trackID: String) {
        // This matters only for a track that is published or about to be.
        guard all.contains(where: { $0.trackID == trackID || $0.trackID == nil }) else { return }
        if wantedLayers[trackID] == nil, wantedLayers.count >= 4 * WireFormat.maximumTracksPerParticipant {
            keepPublished()
        }
        wantedLayers[trackID] = layers
        publication(withID: trackID)?.publisher.setWanted(layers)
    }

    /// The encodings of a track that somebody receives.
    func wantedLayers(of trackID: String) -> [WantedLayer] { wantedLayers[trackID] ?? [] }

    /// Removes all publications; open requests to the server fail with `error`.
    mutating func end(with error: RoomError) -> [Publication] {
        for publication in requests.values { publication.reply?.fulfill(.failure(error)) }
        defer { (all, wantedLayers, unanswered, abandoned) = ([], [:], [], [:]) }
        return all
    }
}
