import Glibc
import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

@Suite("Tracks that cannot be received, and tracks that are received no longer", .timeLimit(.minutes(2)))
struct ReceptionTests {
    /// The beginning of a keyframe of the given size (RFC 6386, section 9.1), and some bytes.
    private func keyframe(_ width: Int, _ height: Int) -> [UInt8] {
        let size = [width, height].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        return [0x10, 2, 0, 0x9D, 1, 0x2A] + size + [UInt8](repeating: 7, count: 100)
    }

    private func requests(_ peer: SocketPeer) -> Int {
        peer.texts.count { if case .keyframeRequest? = try? ClientMessage(reading: $0) { true } else { false } }
    }

    private func isUnsubscribed(_ peer: SocketPeer) -> Bool {
        peer.texts.contains { if case .unsubscribe? = try? ClientMessage(reading: $0) { true } else { false } }
    }

    // Each picture was refused without a word, and keyframes were asked for without end.
    @Test("Pictures that are too large to decode end the subscription with an event, and no keyframe is asked for")
    func tooLarge() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let track = try await member.subscribedTrack()
        for number in 0..<5 {
            for packet in makeVideoPackets(alias: 7, number: UInt32(number), payload: keyframe(7680, 4320)) {
                peer.send(packet)
            }
        }
        let error = try await member.event("it cannot be received") { event -> RoomError? in
            guard case .trackSubscriptionFailed(let failed, _, let error) = event else { return nil }
            return failed === track ? error : nil
        }
        #expect("\(error)".contains("7680x4320"), "\(error)")
        try await eventually("it is unsubscribed") { isUnsubscribed(peer) }
        #expect(requests(peer) == 0)
        #expect(await member.room.state == .connected)
        // Asked for again, it is tried again.
        await member.room.subscribe(to: track)
        peer.tell(.unsubscribed(Unsubscribed(trackId: track.sid)))
        peer.tell(.subscribed(Subscribed(trackId: track.sid, alias: 7, catchUpThrough: nil)))
        _ = try await member.subscribedTrack(occurrence: 2)
        await member.room.disconnect()
    }

    // The server skipped to the keyframe, so that the live picture stopped because a recording began.
    @Test("A recorder that begins long after the keyframe asks for one, and what comes until then is still shown")
    func lateRecorder() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let track = try await member.subscribedTrack()
        var pattern = try EncodedPattern(alias: 7)
        // More than are kept for those who come late.
        for number in 1...300 {
            for packet in try pattern.next() { peer.send(packet) }
            // A busy machine may leave some of them out.
            try await eventually("it is decoded") { track.isDone(with: number) }
        }
        #expect(requests(peer) == 0)
        let directory = try TemporaryDirectory()
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "x", format: .webm)
        for packet in try pattern.next() { peer.send(packet) }
        try await eventually("a keyframe is asked for") { requests(peer) == 1 }
        let asked = peer.texts.compactMap { text -> KeyframeRequest? in
            if case .keyframeRequest(let request)? = try? ClientMessage(reading: text) { request } else { nil }
        }
        #expect(asked.map(\.skip) == [false])
        for packet in try pattern.next(isKeyframe: true) { peer.send(packet) }
        try await eventually("the recording begins") { recorder.statistics.framesWritten == 1 }
        #expect(track.isDone(with: 302) && track.statistics.framesDropped <= 30)
        await member.room.disconnect()
        recorder.stop()
    }

    @Test("A place that is offered to a track which is gone by now is offered to the next")
    func placeForOneThatIsGone() async throws {
        let server = try ScriptedServer { peer, text in
            guard case .join(let join)? = try? ClientMessage(reading: text) else { return }
            var answer = ScriptedServer.joined(join)
            for (id, alias) in [("TR_second", 8), ("TR_third", 9)] as [(String, UInt32)] {
                var track = ScriptedServer.theirTrack
                (track.id, track.alias) = (id, alias)
                answer.participants[0].tracks.append(track)
            }
            peer.tell(.joined(answer))
            for track in answer.participants[0].tracks {
                peer.tell(.subscribed(Subscribed(trackId: track.id, alias: track.alias, catchUpThrough: nil)))
            }
        }
        defer { server.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        options.maximumReceivedTracks = 1
        let member = try await Member(options)
        let peer = try await server.peer()
        func asked(_ type: String, _ id: String) -> Int {
            peer.texts.count { $0.contains("\"\(type)\"") && $0.contains(id) }
        }
        try await eventually("two are refused") {
            asked("unsubscribe", "TR_second") == 1 && asked("unsubscribe", "TR_third") == 1
        }
        peer.tell(.unsubscribed(Unsubscribed(trackId: "TR_theirs")))
        try await eventually("the second is asked for") { asked("subscribe", "TR_second") == 1 }
        #expect(asked("subscribe", "TR_third") == 0)
        peer.tell(.error(ErrorMessage(.notFound, "It is gone.", fatal: false, trackId: "TR_second")))
        try await eventually("the third is asked for") { asked("subscribe", "TR_third") == 1 }
        await member.room.disconnect()
    }

    @Test("A track of which no keyframe can be decoded is given up, with an event")
    func neverDecodable() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let track = try await member.subscribedTrack()
        var number: UInt32 = 0
        let error = try await member.event("it cannot be received") { event -> RoomError? in
            for packet in makeVideoPackets(alias: 7, number: number, payload: Array(keyframe(64, 48).prefix(12))) {
                peer.send(packet)
            }
            number += 1
            guard case .trackSubscriptionFailed(let failed, _, let error) = event else { return nil }
            return failed === track ? error : nil
        }
        #expect("\(error)".contains("decode"), "\(error)")
        let asked = requests(peer)
        #expect(asked <= 20, "\(asked)")
        await member.room.disconnect()
    }

    // It was counted from joining, however long before the track was published.
    @Test("The time to the first frame of a track that is published later counts from its publication")
    func timeToFirstFrame() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let joined = MonotonicClock.now
        try await Task.sleep(for: .milliseconds(300))
        let author = try await stage.join("author")
        let before = MonotonicClock.now
        try await author.room.localParticipant.publish(makePattern())
        let remote = try await viewer.subscribedTrack()
        let time = try await eventual("a picture is shown") { remote.statistics.timeToFirstFrame }
        let now = MonotonicClock.now
        #expect(time < now.duration(since: joined) - .milliseconds(300))
        #expect(time <= now.duration(since: before))
        await author.room.disconnect()
        await viewer.room.disconnect()
    }

    /// How many entries the directory `name` of a process in `/proc` has.
    private func count(_ name: String, of program: Program) -> Int {
        fileNames(in: "/proc/\(program.identifier)/\(name)").count
    }

    // Each track that had ever been dumped kept its thread, its files and its last frames until the program's end.
    @Test(
        "A dump ends with its track: thread, files and memory are given back, and the file is complete",
        .enabled(if: Program.isAllowed)
    )
    func endedDumps() async throws {
        let stage = try Stage()
        let directory = try TemporaryDirectory()
        let author = try await stage.join("author")
        let subscriber = try Program(
            "room-client",
            ["subscribe", "--url", stage.url, "--room", "stage", "--dump", directory.path, "--json"]
        )
        try await subscriber.says("connected")
        let (threads, descriptors) = (count("task", of: subscriber), count("fd", of: subscriber))
        for number in 0..<20 {
            let track = makePattern(name: "track-\(number)")
            try await author.room.localParticipant.publish(track)
            try await eventually("frames of track \(number) are sent") { track.statistics.framesSent >= 3 }
            await author.room.localParticipant.unpublish(track)
            try await eventually("track \(number) is over") {
                try subscriber.events().count { $0.string("event") == "trackUnsubscribed" } == number + 1
            }
        }
        try await eventually("threads are given back: \(count("task", of: subscriber)) of \(threads)") {
            // The pool of the language may have grown by a thread for each processor.
            count("task", of: subscriber) <= threads + 3
        }
        try await eventually("files are closed: \(count("fd", of: subscriber)) of \(descriptors)") {
            count("fd", of: subscriber) <= descriptors + 2
        }
        let dumps = fileNames(in: directory.path).filter { $0.hasSuffix(".webm") }
        #expect(dumps.count == 20)
        for name in dumps { #expect(try DumpReading(directory(name)).faults == []) }
        subscriber.send(SIGINT)
        #expect(try await subscriber.end() == .exit(0))
        let summary = try #require(try subscriber.events().last)
        #expect(summary.objects("tracks").count == 20)
        #expect(summary.objects("tracks").allSatisfy { $0.number("framesRecorded") ?? 0 > 0 })
        await author.room.disconnect()
    }
}

extension RemoteVideoTrack {
    /// Whether so many frames have come and are decoded or left out.
    fileprivate func isDone(with frames: Int) -> Bool {
        statistics.framesReceived == frames && statistics.framesDecoded + statistics.framesDropped == frames
    }
}
