import ClientCommandLine
import RoomKit
import Threading
import Tiles

/// The program's part in the room: the tracks that are received, for the window's thread.
///
/// The main thread begins, looks and leaves; a task joins and follows the room's events.
final class RoomSession: Sendable {
    /// The content to show.
    struct Scene: Sendable {
        /// Whether the room was joined.
        var isJoined = false
        /// The tracks that are received, in the order in which they came.
        var views: [TrackView] = []
        /// The ids of tracks that the server does not send, because the network does not carry them.
        var heldBack: Set<String> = []
        /// A sentence to show for a while, and how many there were before.
        var notice: (number: Int, text: String) = (0, "")
        /// Why nothing more will come; `nil` as long as the session lasts.
        var ending: Ending?
    }

    /// Why a session has ended.
    enum Ending: Sendable {
        /// Somebody wanted it: by a signal, or because the time is up.
        case wanted
        /// The connection was lost, or the server ended it.
        case failed(any Error)
    }

    /// How long leaving the room may take.
    private static let leavingPatience = Duration.seconds(3)
    /// How long pictures that were to be written may take when the program ends.
    private static let savingPatience = Duration.seconds(10)

    /// Wakes the window's thread for each picture and each change.
    let bell = WindowBell()
    private let participant: String?
    private let track: String?
    private let scene = Monitor(Scene())
    private let room = Monitor<Room?>(nil)
    private let joining = Monitor<Task<Void, Never>?>(nil)
    /// The snapshots that are being written.
    private let saves = Monitor(0)
    /// What the window asks for, in its order; each waits for the one before.
    ///
    /// Without a bound, because `TileNeeds` asks only for what has changed and rests.
    private let needs = AsyncStream<(TileNeeds.Need, RemoteVideoTrack)>.makeStream()

    /// Creates a session that receives the tracks of `participant` with the name `track`; `nil` for all.
    init(participant: String?, track: String?) {
        self.participant = participant
        self.track = track
    }

    /// The content to show now.
    var now: Scene { scene.withLock { $0 } }

    /// Shows a sentence for a while.
    func notify(_ text: String) {
        scene.withLock { $0.notice = ($0.notice.number + 1, text) }
        bell.ring()
    }

    // MARK: Joining and leaving

    /// Begins to join the room; the session ends `duration` after that, or by a signal, or if the room cannot be
    /// joined.
    func begin(_ options: ConnectOptions, leavingAfter duration: Duration?) {
        var options = options
        options.isAutomaticSubscriptionEnabled = participant == nil && track == nil
        let task = Task { [options] in
            await EndingSignals.heed { self.end(.wanted) }
            do {
                let room = try await RoomClient.connect(options: options)
                self.room.withLock { $0 = room }
                change { $0.isJoined = true }
                Task { await follow(room) }
                Task { await passNeeds(to: room) }
                guard let duration else { return }
                try await Task.sleep(for: duration)
                end(.wanted)
            } catch is CancellationError {
                end(.wanted)
            } catch {
                end(.failed(error))
            }
        }
        joining.withLock { $0 = task }
    }

    /// Waits until the room is joined or the session has ended, for `patience` at most.
    func waitToJoin(within patience: Duration) {
        let end = MonotonicClock.now + patience
        _ = scene.wait(until: end) { scene in scene.isJoined || scene.ending != nil ? true : nil }
    }

    /// Leaves the room, if it was joined, and waits for snapshots that are being written; some seconds at most.
    func leave() {
        joining.withLock { $0 }?.cancel()
        let isDone = Monitor(false)
        Task {
            await joining.withLock { $0 }?.value
            await room.withLock { $0 }?.disconnect()
            isDone.change { $0 = true }
        }
        _ = isDone.wait(until: MonotonicClock.now + Self.leavingPatience) { $0 ? true : nil }
        let isSaved = saves.wait(until: MonotonicClock.now + Self.savingPatience) { $0 == 0 ? true : nil }
        if isSaved == nil { complain("A snapshot could not be written in time.") }
    }

    /// Asks the server for as much of a track as its tile needs.
    func ask(for need: TileNeeds.Need, of track: RemoteVideoTrack) {
        needs.continuation.yield((need, track))
    }

    /// Does `work` in the background; `leave` waits for it.
    func save(_ work: @escaping @Sendable () -> Void) {
        saves.withLock { $0 += 1 }
        Task.detached { [saves] in
            work()
            saves.change { $0 -= 1 }
        }
    }

    private func end(_ ending: Ending) {
        change { $0.ending = $0.ending ?? ending }
    }

    // MARK: Following the room

    private func follow(_ room: Room) async {
        await considerAll(of: room)
        for await event in room.events {
            switch event {
            case .trackPublished(let track, let participant): await consider(track, of: participant, in: room)
            case .trackSubscribed(let track, _): add(track)
            case .trackUnsubscribed(let track, _), .trackUnpublished(let track, _): remove(track)
            case .trackSwitchedOff(let track, _, _): change { $0.heldBack.insert(track.sid) }
            case .trackSwitchedOn(let track, _): change { $0.heldBack.remove(track.sid) }
            case .trackSubscriptionFailed(let track, _, let error):
                remove(track)
                tell(error)
            case .requestRefused(let error): tell(error)
            case .eventsMissed: await makeUp(in: room)
            case .disconnected(let error): end(error.map { .failed($0) } ?? .wanted)
            default: break
            }
        }
    }

    private func considerAll(of room: Room) async {
        for participant in await room.remoteParticipants {
            for track in participant.videoTracks { await consider(track, of: participant, in: room) }
        }
    }

    /// Makes up for events that were missed, by the tracks that the room has now.
    private func makeUp(in room: Room) async {
        let received = await room.remoteParticipants.flatMap(\.videoTracks).filter(\.isSubscribed)
        for view in now.views where !received.contains(where: { $0 === view.track }) { remove(view.track) }
        for track in received { add(track) }
        change { $0.heldBack = Set(received.filter(\.isSwitchedOff).map(\.sid)) }
        await considerAll(of: room)
    }

    /// Subscribes to a track that was asked for by name; without names, the server sends every track by itself.
    private func consider(_ track: RemoteVideoTrack, of participant: RemoteParticipant, in room: Room) async {
        guard self.participant != nil || self.track != nil else { return }
        if let name = self.participant, name != participant.identity, name != participant.sid { return }
        if let name = self.track, name != track.name, name != track.sid { return }
        await room.subscribe(to: track)
    }

    private func passNeeds(to room: Room) async {
        for await (need, track) in needs.stream {
            var preferences = track.preferences
            switch need {
            case .nothing: preferences.isPaused = true
            case .pictures(let size): (preferences.isPaused, preferences.dimensions) = (false, size)
            }
            await room.setPreferences(preferences, of: track)
        }
    }

    private func add(_ track: RemoteVideoTrack) {
        guard !scene.withLock({ scene in scene.views.contains { $0.track === track } }) else { return }
        let view = TrackView(of: track, bell: bell)
        change { $0.views.append(view) }
        track.addRenderer(view)
    }

    private func remove(_ track: RemoteVideoTrack) {
        guard let view = scene.withLock({ scene in scene.views.first { $0.track === track } }) else { return }
        track.removeRenderer(view)
        change { scene in
            scene.views.removeAll { $0 === view }
            scene.heldBack.remove(track.sid)
        }
    }

    private func tell(_ error: RoomError) {
        complain("\(error)")
        notify("\(error)")
    }

    private func change(_ body: (inout Scene) -> Void) {
        scene.change { body(&$0) }
        bell.ring()
    }
}
