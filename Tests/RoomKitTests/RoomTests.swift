import MediaCore
import RelayCore
import RelayServer
import RoomProtocol
import TestTools
import Testing
import Threading
import WebSockets

@testable import RoomKit

/// A server in this process, and those who join it.
private final class Stage {
    let server: RelayServer

    init() throws {
        var options = RelayServer.Options()
        options.port = 0
        server = try RelayServer(options)
    }

    deinit {
        server.stop()
    }

    func options(_ identity: String) -> ConnectOptions {
        var options = ConnectOptions(roomName: "lab")
        options.url = "ws://127.0.0.1:\(server.port)"
        options.identity = identity
        return options
    }

    func join(_ identity: String) async throws -> Room {
        try await RoomClient.connect(options: options(identity))
    }
}

private func pattern(_ name: String? = nil) -> LocalVideoTrack {
    LocalVideoTrack(source: PatternSource(dimensions: Dimensions(width: 64, height: 48)), name: name)
}

/// A source that says to the room, its first reader, that it has failed, and to nobody else.
private final class SlowlyFailingSource: VideoSource {
    let sinks = VideoSinks()
    private let readers = Monitor<[AsyncStream<CaptureEvent>.Continuation]>([])

    func captureEvents() -> AsyncStream<CaptureEvent> {
        let (stream, continuation) = AsyncStream<CaptureEvent>.makeStream()
        readers.withLock { $0.append(continuation) }
        return stream
    }

    func fail() { readers.withLock { $0.first }?.yield(.failed(EventSource.Trouble())) }
}

extension RoomEvent {
    /// The event's name and whom it is about.
    fileprivate var words: String {
        switch self {
        case .participantConnected(let participant): "connected \(participant.identity)"
        case .participantDisconnected(let participant): "disconnected \(participant.identity)"
        case .trackPublished(let track, _): "published \(track.name)"
        case .trackUnpublished(let track, _): "unpublished \(track.name)"
        case .trackSubscribed(let track, _): "subscribed \(track.name)"
        case .trackSubscriptionFailed(let track, _, let error): "\(error.code) \(track.name)"
        case .trackUnsubscribed(let track, _): "unsubscribed \(track.name)"
        case .trackDimensionsChanged(let track, _, let size): "\(track.name) in \(size)"
        case .localTrackDimensionsChanged(let track, let size): "own \(track.name) in \(size)"
        case .trackEnabled(let track, _): "enabled \(track.name)"
        case .trackDisabled(let track, _): "disabled \(track.name)"
        case .localTrackFailed(let track, _): "failed \(track.name)"
        case .localTrackInterrupted(let track, _): "interrupted \(track.name)"
        case .localTrackInterruptionEnded(let track): "goes on \(track.name)"
        case .localTrackFinished(let track): "ends \(track.name)"
        case .localTrackWarning(let track, _): "warning \(track.name)"
        case .requestRefused: "refused"
        case .trackSwitchedOff(let track, _, let reason): "off \(track.name) \(reason)"
        case .trackSwitchedOn(let track, _): "on \(track.name)"
        case .trackFrozen(let track, _): "frozen \(track.name)"
        case .trackUnfrozen(let track, _, _): "unfrozen \(track.name)"
        case .networkQualityChanged(let participant, let level): "\(participant.identity) \(level)"
        case .eventsMissed(let count): "missed \(count)"
        case .disconnected(let error): error.map { "lost \($0.code)" } ?? "left"
        }
    }

    /// Whether it comes as often, and when, the speed of the machine and of the network make it so.
    fileprivate var dependsOnPace: Bool {
        switch self {
        case .trackSwitchedOff, .trackSwitchedOn, .networkQualityChanged, .trackDimensionsChanged,
            .localTrackDimensionsChanged, .trackFrozen, .trackUnfrozen:
            true
        default: false
        }
    }
}

/// A room's events up to the one with the given words, or the last.
private func words(_ events: RoomEvents, through last: String) async -> [String] {
    var words: [String] = []
    for await event in events where !event.dependsOnPace {
        words.append(event.words)
        if words.last == last { break }
    }
    return words
}

private func error<Value>(of task: Task<Value, any Error>) async -> (any Error)? {
    do {
        _ = try await task.value
        return nil
    } catch {
        return error
    }
}

@Suite("Room", .timeLimit(.minutes(2)))
struct RoomTests {
    @Test("A room that was left is freed, with its tracks and their threads")
    func freed() async throws {
        let stage = try Stage()
        weak var weakRoom: Room?
        weak var weakOther: Room?
        weak var weakTrack: RemoteVideoTrack?
        weak var weakPublisher: VideoPublisher?
        do {
            let (room, other) = (try await stage.join("robot"), try await stage.join("viewer"))
            (weakRoom, weakOther) = (room, other)
            let otherEvents = other.events
            let track = pattern()
            try await room.localParticipant.publish(track)
            weakPublisher = track.source.sink as? VideoPublisher
            #expect(weakPublisher != nil)
            for await event in otherEvents {
                guard case .trackSubscribed(let track, _) = event else { continue }
                weakTrack = track
                break
            }
            try await eventually { (weakTrack?.statistics.framesDecoded ?? 1) > 0 }
            await room.disconnect()
            await other.disconnect()
            await room.disconnect()
            #expect(await room.state == .disconnected)
        }
        try await eventually { weakRoom == nil && weakOther == nil }
        #expect(weakTrack == nil && weakPublisher == nil)
    }

    @Test("Once disconnect returns, the server knows, and nobody has to wait for it")
    func toldOfLeaving() async throws {
        let stage = try Stage()
        let room = try await stage.join("robot")
        #expect(await stage.server.statistics().rooms == 1)
        #expect(await room.sid.hasPrefix("RM_"))
        let began = MonotonicClock.now
        await room.disconnect()
        let rooms = await stage.server.statistics().rooms
        // It waits for the server for a second, which is over when this process was stopped meanwhile.
        #expect(rooms == 0 || MonotonicClock.now.duration(since: began) >= .seconds(1))
    }

    @Test("A task that was cancelled leaves in good order as well")
    func cancelledLeaving() async throws {
        let stage = try Stage()
        for round in 0..<20 {
            let room = try await stage.join("robot-\(round)")
            let leaving = Task {
                try? await Task.sleep(for: .seconds(60))
                await room.disconnect()
            }
            let began = MonotonicClock.now
            leaving.cancel()
            await leaving.value
            let rooms = await stage.server.statistics().rooms
            #expect(rooms == 0 || MonotonicClock.now.duration(since: began) >= .seconds(1))
        }
    }

    @Test("Events from before the first reading are not lost")
    func earlyEvents() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let viewerEvents = viewer.events
        let robot = try await stage.join("robot")
        try await robot.localParticipant.publish(pattern())
        await robot.disconnect()
        let seen = await words(viewerEvents, through: "disconnected robot")
        #expect(
            seen == [
                "connected robot", "published pattern", "subscribed pattern", "unsubscribed pattern",
                "unpublished pattern", "disconnected robot",
            ]
        )
        await viewer.disconnect()
        #expect(await words(viewerEvents, through: "") == ["left"])
    }

    // A track of a participant whose connection broke was never said to be unsubscribed, and its entry stayed.
    @Test("A participant who is lost takes the tracks along, each said to be unsubscribed")
    func lostParticipant() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let viewerEvents = viewer.events
        let robot = try await stage.join("robot")
        let robotEvents = robot.events
        try await robot.localParticipant.publish(pattern())
        // Another one of the same identity replaces the first, whose tracks are not withdrawn one by one.
        let second = try await stage.join("robot")
        let seen = await words(viewerEvents, through: "disconnected robot")
        #expect(seen.suffix(3) == ["unsubscribed pattern", "unpublished pattern", "disconnected robot"])
        let lost = await words(robotEvents, through: "")
        #expect(lost.last == "lost refused")
        for room in [robot, second, viewer] { await room.disconnect() }
    }

    @Test("A track can be withdrawn and published again, with one end for each beginning")
    func publishAgain() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let viewerEvents = viewer.events
        let robot = try await stage.join("robot")
        let track = pattern()
        for _ in 0..<3 {
            try await robot.localParticipant.publish(track)
            #expect(await robot.localParticipant.videoTracks.map(\.name) == ["pattern"])
            await robot.localParticipant.unpublish(track)
            await robot.localParticipant.unpublish(track)
            #expect(await robot.localParticipant.videoTracks.isEmpty)
        }
        await robot.disconnect()
        let seen = await words(viewerEvents, through: "disconnected robot")
        let cycle = ["published pattern", "subscribed pattern", "unsubscribed pattern", "unpublished pattern"]
        #expect(seen == ["connected robot"] + cycle + cycle + cycle + ["disconnected robot"])
        let statistics = track.statistics
        #expect(statistics.framesCaptured == statistics.framesEncoded + statistics.framesDropped.total)
        await viewer.disconnect()
    }

    @Test("A track that is published already is refused, and goes on")
    func publishTwice() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let track = pattern()
        try await robot.localParticipant.publish(track)
        let task = Task { try await robot.localParticipant.publish(track) }
        #expect((await error(of: task) as? RoomError)?.code == .alreadyPublished)
        #expect(track.source.sink != nil)
        let namesake = Task { try await robot.localParticipant.publish(pattern()) }
        #expect((await error(of: namesake) as? RoomError)?.code == .refused)
        await robot.disconnect()
    }

    // The track was sent all the same: what was set before publishing was forgotten.
    @Test("A track that was paused before it was published is published paused")
    func publishedPaused() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let viewerEvents = viewer.events
        let robot = try await stage.join("robot")
        let track = pattern()
        await track.setEnabled(false)
        try await robot.localParticipant.publish(track)
        _ = await words(viewerEvents, through: "disabled pattern")
        try await eventually { track.statistics.framesCaptured > 5 }
        #expect(track.statistics.framesEncoded == 0)
        await track.setEnabled(true)
        #expect(await words(viewerEvents, through: "enabled pattern") == ["enabled pattern"])
        try await eventually { track.statistics.framesEncoded > 0 }
        await robot.disconnect()
        await viewer.disconnect()
    }

    // Publishing went on waiting for a picture, ten seconds long, in a room that was left.
    @Test("Leaving ends a publishing that waits for its first picture, and the track can be used elsewhere")
    func leaveWhilePublishing() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let source = HandSource()
        let track = LocalVideoTrack(source: source)
        let task = Task { try await robot.localParticipant.publish(track) }
        try await eventually { source.sink != nil }
        await robot.disconnect()
        #expect((await error(of: task) as? RoomError)?.code == .notConnected)
        #expect(source.sink == nil)
        let again = try await stage.join("robot")
        let publishing = Task { try await again.localParticipant.publish(track) }
        try await eventually { source.sink != nil }
        source.deliver(picture(64, 48))
        try await publishing.value
        await again.disconnect()
    }

    // The alarm came after the first picture, and never if there was none.
    @Test("A source's events are events of the room, from the source's start on: first of all that no picture comes")
    func sourceEvents() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let told = Monitor<[String]>([])
        let events = robot.events
        let listening = Task {
            for await event in events where !event.dependsOnPace {
                told.withLock { $0.append(event.words) }
                if case .localTrackWarning(_, let error) = event { #expect(error is EventSource.Trouble) }
            }
        }
        let source = EventSource()
        let trouble = EventSource.Trouble()
        let track = LocalVideoTrack(source: source, name: "arm")
        let task = Task { try await robot.localParticipant.publish(track) }
        try await eventually { source.isCapturing }
        source.give(.event(.noFramesCaptured(trouble)))
        try await eventually("an alarm") { told.withLock { $0 } == ["warning arm"] }
        source.give(.frame)
        try await task.value
        source.give(.event(.warning(trouble)), .event(.interrupted(trouble)), .event(.interruptionEnded), .failure)
        let expected = ["warning arm", "warning arm", "interrupted arm", "goes on arm", "failed arm"]
        try await eventually("all events") { told.withLock { $0 } == expected }
        await robot.localParticipant.unpublish(track)
        await robot.disconnect()
        await listening.value
        #expect(told.withLock { $0 } == expected + ["left"])
    }

    @Test("A source that fails before its first picture is told by the call alone")
    func failsBeforePublished() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let events = robot.events
        let source = EventSource()
        let track = LocalVideoTrack(source: source, name: "arm")
        let failing = Task { try await robot.localParticipant.publish(track) }
        try await eventually { source.isCapturing }
        source.give(.failure)
        #expect(await error(of: failing) is EventSource.Trouble)
        // Here the event of the failure comes while the call still waits for a picture.
        let slow = SlowlyFailingSource()
        let waiting = Task { try await robot.localParticipant.publish(LocalVideoTrack(source: slow)) }
        try await eventually { slow.sink != nil }
        slow.fail()
        // Jobs of the room run one after another: what the event causes is done when these are.
        for _ in 0..<100 { #expect(await robot.state == .connected) }
        waiting.cancel()
        #expect(await error(of: waiting) is CancellationError)
        await robot.disconnect()
        #expect(await words(events, through: "") == ["left"])
    }

    @Test("A server that goes down ends a publishing with what ended the session")
    func serverStopsWhilePublishing() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let robotEvents = robot.events
        let source = HandSource()
        let task = Task { try await robot.localParticipant.publish(LocalVideoTrack(source: source)) }
        try await eventually { source.sink != nil }
        stage.server.stop()
        #expect((await error(of: task) as? RoomError)?.code == .connectionLost)
        #expect(await words(robotEvents, through: "") == ["lost connectionLost"])
        let late = Task { try await robot.localParticipant.publish(pattern()) }
        #expect((await error(of: late) as? RoomError)?.code == .connectionLost)
        await robot.disconnect()
    }

    @Test("Cancelling ends a publishing, and nothing stays behind at the server")
    func cancelledPublishing() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let source = HandSource()
        let task = Task { try await robot.localParticipant.publish(LocalVideoTrack(source: source)) }
        try await eventually { source.sink != nil }
        task.cancel()
        #expect(await error(of: task) is CancellationError)
        #expect(source.sink == nil)
        #expect(await stage.server.statistics().tracks == 0)
        await robot.disconnect()
    }

    @Test("Cancelling ends a connecting, and the server lets the participant go")
    func cancelledConnecting() async throws {
        let stage = try Stage()
        // A listener that accepts WebSockets and never answers.
        final class Silence: WebSocketHandler {
            let opened: @Sendable () -> Void
            let closed: @Sendable () -> Void
            init(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) {
                (self.opened, self.closed) = (opened, closed)
            }
            func opened(_ connection: WebSocketConnection) { opened() }
            func receivedText(_ text: String, from connection: WebSocketConnection) {}
            func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {}
            func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
                nil
            }
            func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) { closed() }
        }
        let connections = Monitor((opened: 0, closed: 0))
        let loop = try WebSocketLoop(name: "silence")
        defer { loop.shutdown() }
        var listener = ListenerOptions()
        listener.subprotocol = WireFormat.subprotocol
        let port = try loop.listen(listener) {
            Silence(
                opened: { connections.change { $0.opened += 1 } },
                closed: { connections.change { $0.closed += 1 } }
            )
        }.port
        var options = stage.options("robot")
        options.url = "ws://127.0.0.1:\(port)"
        let task = Task { [options] in try await RoomClient.connect(options: options) }
        try await eventually { connections.withLock { $0.opened } == 1 }
        task.cancel()
        #expect(await error(of: task) is CancellationError)
        try await eventually { connections.withLock { $0.closed } == 1 }
    }

    @Test("A room is not full of what was, however often others come and go")
    func comingAndGoing() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let viewerEvents = viewer.events
        weak var lastTrack: RemoteVideoTrack?
        for _ in 0..<3 {
            let robot = try await stage.join("robot")
            try await robot.localParticipant.publish(pattern())
            for await event in viewerEvents {
                if case .trackSubscribed(let track, _) = event { lastTrack = track }
                if case .trackSubscribed = event { break }
            }
            await robot.disconnect()
            for await event in viewerEvents {
                if case .participantDisconnected = event { break }
            }
            try await eventually { lastTrack == nil }
        }
        #expect(await viewer.remoteParticipants.isEmpty)
        await viewer.disconnect()
    }
}
