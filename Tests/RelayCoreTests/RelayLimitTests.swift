import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import RelayCore

@Suite("Relay: limits and endings", .timeLimit(.minutes(1)))
struct RelayLimitTests {
    @Test("A client that does not join in time is told, and cut off if it does not take its close")
    func joinDeadline() throws {
        let bench = RelayBench()
        let start = bench.now
        let idle = bench.open()
        let stuck = bench.open()
        let timely = bench.join("robot")
        #expect(bench.relay.nextDeadline == start + .seconds(10))
        bench.advance(.seconds(9))
        bench.pull(idle)
        #expect(idle.messages.isEmpty && idle.close == nil)
        bench.advance(.seconds(1))
        bench.pull([idle, timely])
        #expect(idle.errors == [.timedOut] && idle.close?.code == .timedOut)
        bench.close(idle)
        #expect(bench.takeOverdue() == [])
        bench.advance(.milliseconds(2999))
        #expect(bench.takeOverdue() == [])
        bench.advance(.milliseconds(1))
        #expect(bench.takeOverdue() == [stuck.id])
        #expect(timely.close == nil)
    }

    /// The deadline used to stay in the past until the connection was closed, and the connection to be named each time.
    @Test("A connection to be cut is named once, and its deadline is gone")
    func overdueOnce() {
        let bench = RelayBench()
        let stuck = bench.open()
        bench.advance(.seconds(14))
        #expect(bench.takeOverdue() == [stuck.id])
        #expect(bench.relay.nextDeadline == nil)
        bench.relay.deadlineReached(at: bench.now)
        #expect(bench.takeOverdue() == [])
        bench.close(stuck)
        #expect(bench.relay.statistics == RelayStatistics())
    }

    @Test("A deadline that comes early does nothing")
    func earlyDeadline() {
        let bench = RelayBench()
        let peer = bench.open()
        for _ in 0..<3 { bench.relay.deadlineReached(at: bench.now) }
        bench.pull(peer)
        #expect(peer.messages.isEmpty && bench.relay.nextDeadline == bench.now + .seconds(10))
    }

    @Test("A participant that does not read its signaling is disconnected as too slow, and the others are not held up")
    func tooSlow() throws {
        let bench = RelayBench { $0.maximumOutbox = .kibibytes(16) }
        let robot = bench.join("robot")
        let deaf = bench.join("deaf")
        for index in 0..<60 {
            let camera = try #require(bench.publish(robot, name: "\(index)"))
            bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        }
        bench.pull(robot)
        #expect(robot.close == nil)
        let deafID = try #require(deaf.joined?.participant.id)
        #expect(
            robot.messages.contains(
                .participantDisconnected(ParticipantDisconnected(participantId: deafID))
            )
        )
        deaf.forgetMessages()
        bench.pull(deaf)
        #expect(deaf.errors == [.tooSlow] && deaf.close?.code == .tooSlow && deaf.messages.count < 200)
    }

    /// Only those in a room were looked at, and only when somebody in it spoke.
    @Test("Nor can anybody pile up answers before joining", arguments: [true, false])
    func pilingUp(_ hasJoined: Bool) {
        let bench = RelayBench { $0.maximumOutbox = .kibibytes(16) }
        let peer = hasJoined ? bench.join("deaf") : bench.open()
        for index in 0..<1000 { bench.send(.timeSync(TimeSync(clientTime: Int64(index))), from: peer) }
        peer.forgetMessages()
        bench.pull(peer)
        #expect(peer.errors == [.tooSlow] && peer.messages.count < 400)
    }

    /// Each outbox had a limit, and 2,000 of them together had none.
    @Test("All outboxes together have a limit; those go for whom most waits, and what waited for them is freed")
    func allOutboxes() throws {
        let bench = RelayBench {
            $0.maximumOutbox = .kibibytes(64)
            $0.maximumOutboxes = .kibibytes(256)
        }
        let robot = bench.join("robot")
        // They read, but have something that waits at times.
        let slow = (0..<4).map { bench.join("slow \($0)", room: "other") }
        let deaf = (0..<20).map { bench.join("deaf \($0)") }
        for peer in slow { bench.send(.timeSync(TimeSync(clientTime: 0)), from: peer) }
        for peer in deaf { peer.forgetMessages() }
        for index in 0..<60 {
            let camera = try #require(bench.publish(robot, name: "\(index)"))
            bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        }
        bench.pull(robot)
        #expect(robot.close == nil)
        bench.pull(slow + deaf)
        #expect(slow.allSatisfy { $0.close == nil && $0.errors.isEmpty })
        let gone = deaf.filter { $0.close != nil }
        #expect(!gone.isEmpty && gone.allSatisfy { $0.errors == [.tooSlow] && $0.messages.count == 1 })
        for peer in gone { bench.close(peer) }
        // Less waits now than before, so that those who are left may have as much again.
        let left = deaf.filter { $0.close == nil }
        #expect(!left.isEmpty)
        for _ in 0..<20 {
            for peer in left + slow { bench.send(.timeSync(TimeSync(clientTime: 0)), from: peer) }
            bench.pull(left + slow)
        }
        #expect((left + slow).allSatisfy { $0.close == nil && $0.errors.isEmpty })
    }

    /// It had more that waited than anybody else, and could not have read any of it.
    @Test("One who has just joined a large room is not dropped for those who read nothing")
    func newcomer() throws {
        let bench = RelayBench {
            $0.maximumOutbox = .kibibytes(64)
            $0.maximumOutboxes = .kibibytes(256)
        }
        let robots = (0..<2).map { bench.join("robot \($0)", room: "large", automatic: false) }
        for number in 0..<32 {
            _ = try #require(bench.publish(robots[number / 16], name: "\(number) has a long name"))
        }
        bench.pull(robots)
        let deaf = (0..<40).map { bench.enter("deaf \($0)", room: "small \($0)") }
        for number in 0..<10_000 where bench.relay.waitingSignaling < .kibibytes(255) {
            bench.send(.timeSync(TimeSync(clientTime: 0)), from: deaf[number % deaf.count])
        }
        #expect(bench.relay.waitingSignaling >= .kibibytes(255))
        let newcomer = bench.join("newcomer", room: "large")
        #expect(newcomer.close == nil && newcomer.joined != nil)
        bench.pull(deaf)
        #expect(deaf.contains { $0.close != nil })
    }

    /// A room of 1,000 participants with 1,000 tracks held 760 MB, outside of all budgets.
    @Test("Subscriptions are counted, and what would add more than the server's limit is refused")
    func subscriptions() throws {
        let bench = RelayBench { $0.maximumSubscriptions = 10 }
        let robot = bench.join("robot")
        let viewers = (0..<4).map { bench.join("viewer \($0)") }
        let chooser = bench.join("chooser", automatic: false)
        let first = try #require(bench.publish(robot, name: "0"))
        _ = try #require(bench.publish(robot, name: "1"))
        #expect(bench.relay.statistics.subscriptions == 8)
        #expect(bench.publish(robot, name: "2") == nil && robot.errors == [.limitReached])
        // 8 of 10: one who takes both tracks fits in, another does not, and one who chooses does.
        let late = bench.join("late")
        #expect(late.close == nil && bench.relay.statistics.subscriptions == 10)
        let refused = bench.join("refused")
        #expect(refused.errors == [.limitReached] && refused.close?.code == .limitReached)
        // The same participant takes its own place.
        let again = bench.join("late")
        #expect(again.close == nil && bench.relay.statistics.subscriptions == 10)
        bench.send(.subscribe(Subscribe(trackId: first.track.id, requestId: 7)), from: chooser)
        bench.pull(chooser)
        guard case .error(let error) = try #require(chooser.messages.last) else {
            Issue.record("\(chooser.messages)")
            return
        }
        #expect(error.code == RoomErrorCode.limitReached.rawValue && !error.fatal)
        #expect(error.trackId == first.track.id && error.requestId == 7)
        // A change of a subscription that is there is none more, and what ends makes room.
        bench.send(.subscribe(Subscribe(trackId: first.track.id, paused: true)), from: viewers[0])
        bench.send(.unsubscribe(Unsubscribe(trackId: first.track.id)), from: viewers[1])
        bench.send(.subscribe(Subscribe(trackId: first.track.id)), from: chooser)
        bench.pull(viewers + [chooser])
        #expect(bench.relay.statistics.subscriptions == 10 && viewers.allSatisfy { $0.errors.isEmpty })
        bench.send(.unpublish(Unpublish(trackId: first.track.id)), from: robot)
        #expect(bench.relay.statistics.subscriptions == 5)
        bench.close(robot)
        #expect(bench.relay.statistics.subscriptions == 0)
    }

    // Its own tracks counted against it until its dead connection was cut.
    @Test("A publisher comes back to its place although the server has no room for more subscriptions")
    func publisherComesBack() throws {
        let bench = RelayBench { $0.maximumSubscriptions = 4 }
        let robot = bench.join("robot")
        let viewers = (0..<4).map { bench.join("viewer \($0)") }
        _ = try #require(bench.publish(robot))
        bench.pull(viewers)
        let again = bench.join("robot")
        #expect(again.errors.isEmpty && again.close == nil)
        #expect(bench.publish(again) != nil && bench.relay.statistics.subscriptions == 4)
    }

    @Test("A publisher that reads nothing is let go although it only sends media")
    func deafPublisher() throws {
        let bench = RelayBench { $0.maximumOutbox = .kibibytes(1) }
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.frame(camera)
        bench.pull([viewer, robot])
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.advance(.seconds(600))
        bench.pull(robot)
        #expect(robot.errors == [.tooSlow])
        bench.pull(viewer)
        #expect(viewer.close == nil && bench.relay.statistics.tracks == 0)
    }

    @Test("A participant that sends signaling without end is disconnected before it can fill the others' outboxes")
    func flood() throws {
        let bench = RelayBench {
            $0.messageBurst = 100
            $0.messageInterval = .milliseconds(10)
        }
        let flooder = bench.join("flooder")
        let patient = bench.join("patient")
        for _ in 0..<300 {
            bench.send(.timeSync(TimeSync(clientTime: 0)), from: patient)
            bench.pull(patient)
            bench.advance(.milliseconds(10))
        }
        #expect(patient.close == nil && patient.errors.isEmpty)
        for _ in 0..<99 { bench.send(.timeSync(TimeSync(clientTime: 0)), from: patient) }
        bench.pull(patient)
        #expect(patient.close == nil)
        for _ in 0..<101 { bench.send(.timeSync(TimeSync(clientTime: 0)), from: flooder) }
        bench.pull(flooder)
        #expect(flooder.errors == [.limitReached] && flooder.close?.code == .limitReached)
    }

    @Test("Shutting down tells everybody once to come back, and closes all; nothing is left after it")
    func shutDown() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<20).map { bench.join("viewer \($0)") }
        let waiting = bench.open()
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: viewers)
        bench.frame(camera)
        let peers = viewers + [robot, waiting]
        bench.pull(robot)
        for peer in peers { peer.forgetMessages() }
        bench.relay.shutDown(at: bench.now)
        bench.relay.shutDown(at: bench.now)
        #expect(bench.relay.statistics == RelayStatistics(connections: 22))
        bench.frame(camera)
        bench.send(.timeSync(TimeSync(clientTime: 0)), from: robot)
        bench.pull(peers)
        for peer in peers {
            #expect(peer.messages == [.leave(Leave(reason: "the server is shutting down", reconnect: true))])
            #expect(peer.close?.code == .shuttingDown && peer.problems.isEmpty)
        }
        bench.advance(.seconds(3))
        #expect(bench.takeOverdue().count == 22)
        for peer in peers { bench.close(peer) }
        #expect(bench.relay.statistics == RelayStatistics() && bench.relay.nextDeadline == nil)
    }

    // Each of them cost the server up to 2 MiB.
    @Test("A client that sends and reads nothing is cut off long before its outbox is full")
    func unread() throws {
        let bench = RelayBench { $0.messageBurst = 100_000 }
        let (hostile, busy) = (bench.join("hostile"), bench.join("busy"))
        bench.pull([hostile, busy])
        let request = ClientMessage.subscribe(Subscribe(trackId: String(repeating: "x", count: 64)))
        var sent = 0
        while hostile.close == nil, sent < 20_000 {
            bench.send(request, from: hostile)
            bench.send(request, from: busy)
            // One that reads a little, however seldom, goes on.
            if sent % 500 == 0 { bench.pull(busy, limit: 1) }
            sent += 1
            if sent > 1100 { bench.pull(hostile) }
        }
        #expect(hostile.close?.code == .tooSlow && sent < 1200, "\(sent)")
        #expect(busy.close == nil)
    }

    @Test("What causes no message for the others does not count as one")
    func uncausedDeliveries() throws {
        let bench = RelayBench {
            $0.messageBurst = 100_000
            $0.deliveryBurst = 100
        }
        let robot = bench.join("robot")
        let viewers = (0..<10).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        for _ in 0..<100 {
            bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
            bench.send(.unpublish(Unpublish(trackId: "TR_none")), from: robot)
            bench.send(.disable(Disable(trackId: camera.track.id)), from: viewers[0])
            bench.pull([robot] + viewers)
        }
        #expect(robot.close == nil && viewers[0].close == nil)
        for _ in 0..<10 {
            bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
            bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
            bench.pull([robot] + viewers)
        }
        #expect(robot.close?.code == .limitReached)
    }

    @Test("Sizes that change again and again, for which the wishes of all subscribers are looked at, have a limit")
    func changingSizes() throws {
        let bench = RelayBench {
            $0.messageBurst = 100_000
            $0.deliveryBurst = 100
        }
        let robot = bench.join("robot")
        let viewers = (0..<10).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot, layers: SimulcastTests.layers))
        let bitrates = SimulcastTests.layers.compactMap(\.bitrate)
        let sizes = SimulcastTests.layers.map(\.size)
        let larger = sizes.map { PictureSize(width: 2 * $0.width, height: 2 * $0.height) }
        func announce(_ sizes: [PictureSize]?) {
            let request = UpdateTrack(trackId: camera.track.id, bitrates: bitrates, sizes: sizes)
            bench.send(.updateTrack(request), from: robot)
        }
        for _ in 0..<100 {
            announce(nil)
            announce(sizes)
        }
        // Nobody has wishes that would have to be looked at.
        for index in 0..<20 { announce(index % 2 == 0 ? larger : sizes) }
        bench.pull(robot)
        #expect(robot.close == nil)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, width: 640, height: 360)), from: viewers[0])
        for index in 0..<20 { announce(index % 2 == 0 ? larger : sizes) }
        bench.pull(robot)
        #expect(robot.close?.code == .limitReached)
    }

    @Test("A session that has ended takes no more words or media")
    func afterEnd() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        robot.forgetMessages()
        bench.send(.leave(Leave(reason: "left")), from: robot)
        bench.send(.join(Join(room: "room", identity: "robot")), from: robot)
        bench.send(text: "nonsense", from: robot)
        bench.frame(camera)
        bench.pull(robot)
        #expect(robot.messages.isEmpty && robot.close?.code.rawValue == 1000 && robot.problems.isEmpty)
        bench.pull(robot)
        #expect(robot.problems.isEmpty)
    }

    @Test("Random text from a participant ends its session or gets an answer, and leaves the room whole")
    func randomText() throws {
        var generator = SeededGenerator(seed: 20)
        let bench = RelayBench { $0.messageBurst = 100_000 }
        let viewer = bench.join("viewer")
        let pieces = [
            "{", "}", "\"type\":", "\"publish\"", "\"subscribe\"", ",", "\"trackId\":", "\"TR_\"", "\"requestId\":1",
            "[",
            "9e99", "null", "\"leave\"", "\"reason\":\"\"", "\u{0}", "\\ud800",
        ]
        for index in 0..<600 {
            let peer = bench.join("peer \(index)")
            let text = (0..<Int.random(in: 0..<12, using: &generator))
                .map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            bench.send(text: text, from: peer)
            bench.pull([peer, viewer])
            #expect(peer.problems.isEmpty)
            bench.close(peer)
        }
        bench.pull(viewer)
        #expect(viewer.problems.isEmpty && viewer.close == nil)
        #expect(bench.relay.statistics == RelayStatistics(connections: 1, rooms: 1))
    }
}
