import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: rooms", .timeLimit(.minutes(1)))
struct RelayRoomTests {
    @Test("A client that joins learns the participants and their tracks, and the others learn that it joined")
    func joining() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        let viewer = bench.join("viewer")
        bench.pull(robot)
        let joined = try #require(viewer.joined)
        let own = try #require(robot.joined)
        #expect(joined.version == 1 && joined.bootId == "boot" && joined.server == "bench")
        #expect(joined.serverTime == bench.now.microseconds)
        #expect(joined.room == own.room && joined.room.name == "room" && joined.room.id.hasPrefix("RM_"))
        #expect(joined.participant.identity == "viewer" && joined.participant.id.hasPrefix("PA_"))
        let robotInfo = ParticipantInfo(id: own.participant.id, identity: "robot", tracks: [camera.track])
        #expect(joined.participants == [robotInfo])
        #expect(robot.messages.contains(.participantConnected(ParticipantConnected(participant: joined.participant))))
        #expect(bench.relay.statistics == RelayStatistics(connections: 2, rooms: 1, tracks: 1, subscriptions: 1))
    }

    @Test("Rooms know nothing of each other")
    func separateRooms() throws {
        let bench = RelayBench()
        let robot = bench.join("robot", room: "one")
        let viewer = bench.join("viewer", room: "two")
        robot.forgetMessages()
        viewer.forgetMessages()
        let camera = try #require(bench.publish(robot))
        bench.frame(camera)
        bench.pull([robot, viewer])
        #expect(viewer.messages.isEmpty && viewer.packets.isEmpty)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewer)
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: viewer)
        bench.send(.disable(Disable(trackId: camera.track.id)), from: viewer)
        bench.pull(viewer)
        #expect(viewer.errors == [.notFound, .notFound, .notFound, .notFound])
        #expect(bench.relay.statistics.tracks == 1 && bench.relay.statistics.rooms == 2)
    }

    @Test("Leaving and disconnecting take the participant and its tracks out of the room", arguments: [true, false])
    func leaving(_ isPolite: Bool) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 4, takers: [viewer])
        viewer.forgetMessages()
        if isPolite {
            bench.send(.leave(Leave(reason: "left")), from: robot)
            bench.pull(robot)
            #expect(robot.close?.code.rawValue == 1000)
        }
        bench.close(robot)
        bench.pull(viewer)
        let robotID = try #require(robot.joined?.participant.id)
        #expect(
            viewer.messages == [.participantDisconnected(ParticipantDisconnected(participantId: robotID))]
        )
        #expect(bench.relay.statistics == RelayStatistics(connections: 1, rooms: 1, tracks: 0, storedBytes: 0))
        bench.close(viewer)
        #expect(bench.relay.statistics == RelayStatistics())
    }

    @Test("Events for a connection that is gone do nothing")
    func afterClose() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        let packets = camera.nextFrame()
        bench.close(robot)
        bench.close(robot)
        bench.send(.leave(Leave(reason: "again")), from: robot)
        bench.receive(packets, from: robot)
        bench.pull(robot)
        let newcomer = bench.open()
        #expect(newcomer.id.index == robot.id.index && newcomer.id != robot.id)
        bench.close(robot)
        #expect(bench.relay.statistics.connections == 1)
    }

    @Test("A second participant of the same identity replaces the first, which is told why")
    func duplicateIdentity() throws {
        let bench = RelayBench()
        let first = bench.join("robot")
        let other = bench.join("robot", room: "elsewhere")
        let viewer = bench.join("viewer")
        _ = try #require(bench.publish(first))
        bench.pull(viewer)
        viewer.forgetMessages()
        let second = bench.join("robot")
        bench.pull([first, other, viewer])
        #expect(first.errors == [.duplicateIdentity] && first.close?.code == .duplicateIdentity)
        #expect(other.errors.isEmpty && other.close == nil)
        let firstID = try #require(first.joined?.participant.id)
        let info = try #require(second.joined).participant
        #expect(
            viewer.messages == [
                .participantDisconnected(ParticipantDisconnected(participantId: firstID)),
                .participantConnected(ParticipantConnected(participant: info)),
            ]
        )
        #expect(bench.relay.statistics.tracks == 0)
    }

    @Test(
        "A client that cannot join is told why, and its connection is closed",
        arguments: [
            (Join(version: 2, room: "r", identity: "i"), RoomErrorCode.notSupported),
            (Join(room: "", identity: "i"), .invalidArgument),
            (Join(room: "r", identity: ""), .invalidArgument),
            (Join(room: String(repeating: "é", count: 65), identity: "i"), .invalidArgument),
            (Join(room: "r", identity: String(repeating: "x", count: 129)), .invalidArgument),
            (Join(room: "r", identity: "a\nb"), .invalidArgument),
            (Join(room: "r\u{9f}", identity: "i"), .invalidArgument),
            (Join(room: "r\u{0}", identity: "i"), .invalidArgument),
        ]
    )
    func refusedJoin(_ join: Join, code: RoomErrorCode) {
        let bench = RelayBench()
        let peer = bench.open()
        bench.send(.join(join), from: peer)
        bench.pull(peer)
        #expect(peer.errors == [code] && peer.close?.code == code)
        #expect((peer.close?.reason.utf8.count ?? 999) <= 123)
        #expect(bench.relay.statistics.rooms == 0)
    }

    @Test("A version that is not spoken is refused with a sentence that names both")
    func versionSentence() {
        let bench = RelayBench()
        let peer = bench.open()
        bench.send(.join(Join(version: 7, room: "r", identity: "i")), from: peer)
        bench.pull(peer)
        #expect(peer.close?.reason == "this server speaks protocol version 1, the client 7")
    }

    @Test("A client of another subprotocol, or none, is refused at once", arguments: ["room.v2", nil, ""] as [String?])
    func subprotocol(_ offer: String?) {
        let bench = RelayBench()
        let peer = bench.open(subprotocol: offer)
        bench.send(.join(Join(room: "r", identity: "i")), from: peer)
        bench.pull(peer)
        #expect(peer.errors == [.notSupported] && peer.close?.code == .notSupported && peer.joined == nil)
    }

    @Test("Nothing but `join` comes first, except the time and a resume that is refused without harm")
    func firstMessage() {
        let bench = RelayBench()
        let peer = bench.open()
        bench.send(.timeSync(TimeSync(clientTime: 4, requestId: 5)), from: peer)
        bench.send(.resume(Resume(resumeToken: "x", requestId: 6)), from: peer)
        bench.send(text: #"{"type":"fanfare"}"#, from: peer)
        bench.pull(peer)
        #expect(
            peer.messages.first
                == .timeSync(TimeSync(clientTime: 4, serverTime: bench.now.microseconds, requestId: 5))
        )
        #expect(peer.messages.compactMap { if case .error(let error) = $0 { error.requestId } else { nil } } == [6])
        #expect(peer.errors == [.cannotResume, .unknownType] && peer.close == nil)
        bench.send(.join(Join(room: "r", identity: "i")), from: peer)
        bench.pull(peer)
        #expect(peer.joined != nil)
        for (message, _) in [(ClientMessage.leave(Leave(reason: "")), 0), (.unpublish(Unpublish(trackId: "x")), 0)] {
            let early = bench.open()
            bench.send(message, from: early)
            bench.pull(early)
            #expect(early.errors == [.malformedMessage] && early.close?.code == .malformedMessage)
        }
    }

    @Test("A second `join`, and what cannot be read, end the session")
    func malformed() {
        for text in [Join(room: "r", identity: "i")].map({ ClientMessage.join($0).text }) + ["{}", "", "[[[["] {
            let bench = RelayBench()
            let peer = bench.join("robot")
            bench.send(text: text, from: peer)
            bench.send(.timeSync(TimeSync(clientTime: 1)), from: peer)
            bench.pull(peer)
            #expect(peer.errors == [.malformedMessage] && peer.close?.code == .malformedMessage)
            #expect(peer.messages.count == 2, "nothing is answered after the error")
            #expect(bench.relay.statistics.rooms == 0)
        }
    }

    @Test("A room and a server have limits, and who comes back takes its own place in a full room")
    func limits() throws {
        let bench = RelayBench {
            $0.maximumRooms = 2
            $0.maximumParticipantsPerRoom = 2
        }
        let first = bench.join("first")
        _ = bench.join("second")
        #expect(bench.join("third").errors == [.limitReached])
        // The old connection of the first has not been found dead yet.
        let again = bench.join("first")
        #expect(again.joined != nil)
        bench.pull(first)
        #expect(first.errors == [.duplicateIdentity])
        #expect(bench.join("a", room: "two").joined != nil)
        #expect(bench.join("a", room: "three").close?.code == .limitReached)
        #expect(bench.join("b", room: "two").joined != nil)
        #expect(bench.relay.statistics.rooms == 2)
    }

    /// `joined` of a large room was one message far beyond the 64 KiB that a text message may have.
    @Test("A room too large for one `joined` is sent in several messages, each within the limit")
    func largeRoom() throws {
        let bench = RelayBench()
        for index in 0..<250 {
            let quotes = String(repeating: "\"", count: 120)
            let peer = bench.join("\(quotes)\(index)", automatic: false)
            if index < 40 { _ = try #require(bench.publish(peer, name: quotes)) }
        }
        let last = bench.join("last")
        #expect(last.problems.isEmpty)
        let joined = try #require(last.joined)
        let later = last.messages.compactMap { message -> ParticipantInfo? in
            if case .participantConnected(let body) = message { body.participant } else { nil }
        }
        #expect(later.count > 10)
        let all = joined.participants + later
        #expect(Set(all.map(\.id)).count == 250 && all.flatMap(\.tracks).count == 40)
        let firstOther = try #require(last.messages.firstIndex { if case .subscribed = $0 { true } else { false } })
        let lastConnected = try #require(
            last.messages.lastIndex { if case .participantConnected = $0 { true } else { false } }
        )
        #expect(lastConnected < firstOther && joined.moreParticipants == true)
        let complete = ServerMessage.participantsComplete(ParticipantsComplete())
        #expect(last.messages.firstIndex(of: complete) == lastConnected + 1)
        #expect(last.receivers.count == 40)
    }
}
