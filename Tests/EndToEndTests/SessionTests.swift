import MediaCore
import RelayCore
import RelayServer
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

@Suite("Sessions, from joining to their end", .timeLimit(.minutes(2)))
struct SessionTests {
    let stage: Stage

    init() throws {
        stage = try Stage()
    }

    /// The error with which joining fails.
    private func failure(_ url: String, room: String = "stage", identity: String = "member") async throws -> RoomError {
        var options = ConnectOptions(roomName: room)
        options.url = url
        options.identity = identity
        do {
            let room = try await RoomClient.connect(options: options)
            await room.disconnect()
        } catch let error as RoomError {
            return error
        }
        throw TestFailure("\(url) was joined")
    }

    @Test("A second participant of the same identity replaces the first, which is told why")
    func duplicateIdentity() async throws {
        let first = try await stage.join("twin")
        let witness = try await stage.join("witness")
        let second = try await stage.join("twin")
        let error = try #require(try await first.ending())
        #expect(error.code == .refused)
        #expect(error.serverCode == 4409)
        #expect("\(error)".contains("twin"), "\(error)")
        #expect(await first.room.state == .disconnected)
        let (gone, came) = (first.room.localParticipant.sid, second.room.localParticipant.sid)
        _ = try await witness.event("the first goes") { event -> Bool? in
            if case .participantDisconnected(let participant) = event, participant.sid == gone { true } else { nil }
        }
        _ = try await witness.event("the second comes") { event -> Bool? in
            if case .participantConnected(let participant) = event, participant.sid == came { true } else { nil }
        }
        #expect(await second.room.state == .connected)
        for member in [first, second, witness] { await member.room.disconnect() }
    }

    // Each track that others publish took a thread: four peers with sixteen each could take a program's last one.
    // The one that was refused then stayed so, however many of the others ended.
    @Test("No more tracks are received at once than the program allows, which is told; once one ends, the next is")
    func tooManyTracks() async throws {
        let robot = try await stage.join("robot")
        let viewer = try await stage.join("viewer") { $0.maximumReceivedTracks = 2 }
        let tracks = ["one", "two", "three"].map { makePattern(name: $0) }
        for track in tracks { try await robot.room.localParticipant.publish(track) }
        let (refused, error) = try await viewer.event("one is refused") { event -> (RemoteVideoTrack, RoomError)? in
            if case .trackSubscriptionFailed(let track, _, let error) = event { (track, error) } else { nil }
        }
        #expect(refused.name == "three" && error.code == .tooManyTracks)
        let first = try await viewer.subscribedTrack("one")
        try await eventually("the others are received") { first.statistics.framesDecoded > 3 }
        #expect(refused.statistics.framesReceived == 0)
        // A pause frees no place.
        for isPaused in [true, false] {
            await viewer.room.setPreferences(VideoSubscriptionPreferences(isPaused: isPaused), of: first)
            try await Task.sleep(for: .milliseconds(300))
        }
        #expect(viewer.events.count { if case .trackSubscriptionFailed = $0 { true } else { false } } == 1)
        await robot.room.localParticipant.unpublish(tracks[0])
        _ = try await viewer.event("the end is told") { if case .trackUnpublished = $0 { true } else { nil } }
        _ = try await viewer.subscribedTrack("three")
        try await eventually("it is received") { refused.statistics.framesDecoded > 0 }
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A server that stops ends every session with an error, and every thread of its tracks")
    func serverStops() async throws {
        let (viewer, author, track, _) = try await stage.show(frames: 3)
        let server = stage.server
        await Task.detached { server.stop() }.value
        for member in [viewer, author] {
            let error = try #require(try await member.ending())
            #expect(error.code == .connectionLost)
            #expect("\(error)".contains("shutting down"), "\(error)")
            await member.room.disconnect()
        }
        #expect(track.statistics.unaccounted == 0)
        await #expect(throws: RoomError.self) { try await author.room.localParticipant.publish(track) }
        server.stop()
    }

    @Test("When a publisher leaves, the others learn of it and of the end of its tracks")
    func publisherLeaves() async throws {
        let (viewer, author, _, remote) = try await stage.show(frames: 3)
        await author.room.disconnect()
        let gone = try await viewer.event("the author goes") { event -> RemoteParticipant? in
            if case .participantDisconnected(let participant) = event { participant } else { nil }
        }
        #expect(gone.identity == "author")
        try await eventually("nobody is left") { await viewer.room.remoteParticipants.isEmpty }
        #expect(
            viewer.events.contains { if case .trackUnsubscribed(let track, _) = $0 { track === remote } else { false } }
        )
        #expect(
            viewer.events.contains { if case .trackUnpublished(let track, _) = $0 { track === remote } else { false } }
        )
        await viewer.room.disconnect()
        #expect(try await viewer.ending() == nil)
        #expect(try await author.ending() == nil)
    }

    @Test("A participant that vanishes without a word takes its tracks along, for the others")
    func publisherVanishes() async throws {
        let clients = try SocketClients()
        let viewer = try await stage.join("viewer")
        let peer = try clients.join(stage.url, identity: "author")
        try await eventually("the author is there") { await !viewer.room.remoteParticipants.isEmpty }
        peer.send(
            .publish(
                Publish(
                    requestId: 1,
                    name: "x",
                    source: "other",
                    codec: VideoCodec.vp8,
                    width: 16,
                    height: 16,
                    frameRate: 1
                )
            )
        )
        let remote = try await viewer.subscribedTrack()
        peer.close()
        _ = try await viewer.event("the author goes") { if case .participantDisconnected = $0 { true } else { nil } }
        #expect(
            viewer.events.contains { if case .trackUnsubscribed(let track, _) = $0 { track === remote } else { false } }
        )
        await viewer.room.disconnect()
    }

    @Test("The tracks of the options are published when connecting returns")
    func tracksOfOptions() async throws {
        let tracks = ["left", "right"].map { makePattern(name: $0) }
        let author = try await stage.join("author") { $0.videoTracks = tracks }
        #expect(Set(await author.room.localParticipant.videoTracks.map(\.name)) == ["left", "right"])
        let viewer = try await stage.join("viewer")
        for name in ["left", "right"] {
            let remote = try await viewer.subscribedTrack(name)
            try await eventually("pictures come") { remote.statistics.framesDecoded > 0 }
        }
        for member in [author, viewer] { await member.room.disconnect() }
    }

    @Test("Leaving twice, also at once, does nothing more than leaving once")
    func disconnectTwice() async throws {
        let author = try await stage.join("author") { $0.videoTracks = [makePattern()] }
        async let first: Void = author.room.disconnect()
        async let second: Void = author.room.disconnect()
        _ = await (first, second)
        await author.room.disconnect()
        #expect(try await author.ending() == nil)
        #expect(author.events.count { if case .disconnected = $0 { true } else { false } } == 1)
        await author.room.subscribe(to: try await track())
        try await eventually("the relay is empty") { await stage.server.statistics().connections == 0 }
    }

    /// A remote track, of whichever room.
    private func track() async throws -> RemoteVideoTrack {
        let viewer = try await stage.join("viewer", room: "other")
        let author = try await stage.join("author", room: "other") { $0.videoTracks = [makePattern()] }
        let track = try await viewer.subscribedTrack()
        for member in [viewer, author] { await member.room.disconnect() }
        return track
    }

    @Test("A track that is published cannot be published again, here or elsewhere, and goes on")
    func publishTwice() async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern()
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        let elsewhere = try await stage.join("author", room: "elsewhere")
        for participant in [author.room.localParticipant, elsewhere.room.localParticipant] {
            let error = await #expect(throws: RoomError.self) { try await participant.publish(track) }
            #expect(error?.code == .alreadyPublished)
        }
        let namesake = makePattern()
        let error = await #expect(throws: RoomError.self) { try await author.room.localParticipant.publish(namesake) }
        #expect(error?.code == .refused)
        #expect(error?.serverCode == 4401)
        #expect(namesake.statistics.unaccounted == 0)
        let decoded = remote.statistics.framesDecoded
        try await eventually("the track goes on") { remote.statistics.framesDecoded >= decoded + 5 }
        for member in [viewer, author, elsewhere] { await member.room.disconnect() }
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("Publishing that is overtaken by leaving fails, and leaves nothing running")
    func publishWhileLeaving() async throws {
        for round in 0..<8 {
            let author = try await stage.join("author-\(round)")
            let track = makePattern()
            let publishing = Task { try await author.room.localParticipant.publish(track) }
            if round % 2 == 1 { try await Task.sleep(for: .milliseconds(round * 4)) }
            await author.room.disconnect()
            _ = await publishing.result
            await author.room.disconnect()
            #expect(track.statistics.unaccounted == 0)
            let captured = track.statistics.framesCaptured
            try await Task.sleep(for: .milliseconds(70))
            #expect(track.statistics.framesCaptured == captured, "the source of round \(round) runs on")
        }
    }

    @Test("Where nothing listens, joining fails with a sentence that names the server")
    func nothingThere() async throws {
        let port = try SilentServer().port
        let error = try await failure("ws://127.0.0.1:\(port)")
        #expect(error.code == .serverUnavailable)
        #expect("\(error)".contains("127.0.0.1:\(port)"), "\(error)")
    }

    @Test("Something else than a WebSocket server is no room server")
    func somethingElse() async throws {
        for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "SSH-2.0-x\r\n", ""] {
            let server = try SilentServer()
            let serving = Task.detached { server.answer(Array(answer.utf8)) }
            let error = try await failure("ws://127.0.0.1:\(server.port)")
            await serving.value
            #expect(error.code == .serverUnavailable, "\(answer): \(error)")
        }
    }

    @Test(
        "URLs that cannot be used are said to be so",
        arguments: ["", "room", "http://x", "wss://x", "ws://", "ws://x:99999"]
    )
    func badURL(url: String) async throws {
        #expect(try await failure(url).code == .invalidURL)
    }

    @Test(
        "Names that the server does not allow are refused, with its code",
        arguments: ["", String(repeating: "x", count: 129), "a\u{7}b"]
    )
    func badNames(name: String) async throws {
        let forRoom = try await failure(stage.url, room: name)
        #expect(forRoom.code == .refused)
        #expect(forRoom.serverCode == 4401)
        let forIdentity = try await failure(stage.url, identity: name)
        #expect(forIdentity.serverCode == 4401)
    }

    @Test("When leaving is over, the server has heard of it")
    func leavingIsHeard() async throws {
        for round in 0..<50 {
            let member = try await stage.join("member-\(round)")
            let began = MonotonicClock.now
            await member.room.disconnect()
            let rooms = await stage.server.statistics().rooms
            // It waits for the server for a second, which is over when this process was stopped meanwhile.
            #expect(rooms == 0 || MonotonicClock.now.duration(since: began) >= .seconds(1))
            try await eventually("the server hears of it") { await stage.server.statistics().rooms == 0 }
        }
    }

    /// As `RoomClient.connect` says.
    @Test("A room that is dropped without being left stays joined")
    func droppedRoom() async throws {
        let witness = try await stage.join("witness")
        do {
            _ = try await RoomClient.connect(options: stage.options("forgetful"))
        }
        let participant = try await eventual("the forgetful one is there") {
            await witness.room.remoteParticipants.first
        }
        // Its connection lives on, and answers.
        let successor = try await stage.join("forgetful")
        _ = try await witness.event("it is replaced") { event -> Bool? in
            if case .participantDisconnected(let gone) = event, gone.sid == participant.sid { true } else { nil }
        }
        for member in [witness, successor] { await member.room.disconnect() }
    }

    @Test("A room is given up, with its threads, once it was left")
    func roomIsFreed() async throws {
        weak var leftRoom: Room?
        weak var leftTrack: LocalVideoTrack?
        weak var leftRemote: RemoteVideoTrack?
        let viewer = try await stage.join("viewer")
        do {
            let track = makePattern()
            let author = try await RoomClient.connect(options: stage.options("author"))
            try await author.localParticipant.publish(track)
            let remote = try await viewer.subscribedTrack()
            try await eventually("frames are decoded") { remote.statistics.framesDecoded >= 3 }
            leftRoom = author
            leftTrack = track
            leftRemote = remote
            await author.disconnect()
        }
        try await eventually("the publisher's room is freed") { leftRoom == nil }
        try await eventually("its track is freed") { leftTrack == nil }
        await viewer.room.disconnect()
        #expect(leftRemote != nil)
    }
}
