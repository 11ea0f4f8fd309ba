import MediaCore
import RelayCore
import RelayServer
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

@Suite("Joining late and in crowds", .timeLimit(.minutes(2)))
struct JoiningTests {
    /// So few frames a second that each reaches a hundred viewers also under ThreadSanitizer on a slow machine.
    private static let crowdFrameRate = 8

    let stage: Stage

    init() throws {
        // The cache is kept for longer than it takes a busy machine to let somebody join.
        stage = try Stage { $0.relay.stream.cacheAge = .seconds(60) }
    }

    /// A publisher whose pictures a first viewer receives.
    private func show(
        frameRate: Int = 30
    ) async throws -> (author: Member, viewer: Member, track: LocalVideoTrack) {
        let (viewer, author, track, _) = try await stage.show(frames: 9, frameRate: frameRate)
        return (author, viewer, track)
    }

    @Test("A late joiner begins with the relay's cache, and asks nobody for a keyframe")
    func lateJoiner() async throws {
        let (author, viewer, track) = try await show()
        let latecomer = try await stage.join("latecomer")
        let remote = try await latecomer.subscribedTrack()
        let renderer = CountingRenderer()
        remote.addRenderer(renderer)
        try await eventually("live frames come") { remote.statistics.frameAge != nil && renderer.frames >= 3 }
        // Who falls behind on a busy machine counts what it drops, and may need another one.
        let dropped = [try await viewer.subscribedTrack(), remote].map(\.statistics.framesDropped).reduce(0, +)
        #expect(track.statistics.keyframes <= 1 + dropped)
        #expect(remote.statistics.keyframes <= 1 + dropped)
        // What came from the cache was decoded, and not shown.
        #expect(renderer.frames < remote.statistics.framesDecoded)
        // A frame that has just come may still wait for the decoder.
        try await eventually("every frame is decoded or dropped") {
            let statistics = remote.statistics
            return statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped
        }
        for member in [author, viewer, latecomer] { await member.room.disconnect() }
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("A late joiner's dump begins with the cached keyframe, and costs no other")
    func lateRecorder() async throws {
        let (author, viewer, track) = try await show()
        let directory = try TemporaryDirectory()
        let latecomer = try await stage.join("latecomer")
        let remote = try await latecomer.subscribedTrack()
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "late", format: .webm)
        try await eventually("live frames are recorded") { recorder.statistics.framesWritten >= 12 }
        for member in [author, viewer, latecomer] { await member.room.disconnect() }
        recorder.stop()
        let dump = try DumpReading(try #require(recorder.statistics.files.first))
        #expect(dump.faults == [])
        #expect(dump.log.first?.number == 0)
        #expect(dump.log.first?.catchUp == true)
        #expect(dump.log.last?.catchUp == false)
        let dropped = [try await viewer.subscribedTrack(), remote].map(\.statistics.framesDropped).reduce(0, +)
        #expect(track.statistics.keyframes <= 1 + dropped + recorder.statistics.framesDropped)
    }

    // What nobody receives is not encoded; the pause upset the encoder's rate control for good.
    @Test("Viewers who come and go get every frame, each time")
    func comingAndGoing() async throws {
        let (author, viewer, track) = try await show()
        await viewer.room.disconnect()
        for round in 0..<3 {
            try await Task.sleep(for: .milliseconds(1_200))
            let member = try await stage.join("viewer\(round)")
            let remote = try await member.subscribedTrack()
            try await eventually("frames come") { remote.statistics.framesReceived >= 45 }
            await member.room.disconnect()
        }
        await author.room.disconnect()
        let statistics = track.statistics
        #expect(statistics.framesDropped[.rateControl] <= 9)
        #expect(statistics.framesDropped[.notWanted] > 0)
    }

    @Test("A hundred joiners at once cost at most one keyframe, and all get pictures")
    func crowd() async throws {
        let (author, viewer, track) = try await show(frameRate: Self.crowdFrameRate)
        let clients = try SocketClients()
        let before = track.statistics.keyframes
        let crowd = try (0..<100).map { try clients.join(stage.url, identity: "joiner-\($0)") }
        try await eventually("all get live frames") {
            crowd.allSatisfy { peer in
                let packets = peer.packets
                return (packets.first?.isKeyframe ?? false) && packets.count >= 4
            }
        }
        #expect(track.statistics.keyframes <= before + 1)
        for peer in crowd { peer.close() }
        for member in [author, viewer] { await member.room.disconnect() }
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("A hundred joiners at once, with nothing in the relay's cache, cost one keyframe")
    func crowdWithoutCache() async throws {
        let strict = try Stage { $0.relay.stream.cacheAge = .zero }
        let began = MonotonicClock.now
        let viewer = try await strict.join("viewer")
        let author = try await strict.join("author")
        let track = makePattern(frameRate: Self.crowdFrameRate)
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        try await eventually("frames are decoded") { remote.statistics.framesDecoded >= 9 }
        let clients = try SocketClients()
        let crowd = try (0..<100).map { try clients.join(strict.url, identity: "joiner-\($0)") }
        try await eventually("all get a keyframe") { crowd.allSatisfy { $0.packets.first?.isKeyframe ?? false } }
        // The first subscriber's, then at most one a second; the joiners are in well before a third is due on an idle
        // machine, and on a busy one the requests are no closer.
        let keyframes = track.statistics.keyframes
        let seconds = Int(MonotonicClock.now.duration(since: began).seconds)
        #expect(keyframes <= 2 + seconds, "\(keyframes) in \(seconds) s")
        for peer in crowd { peer.close() }
        for member in [author, viewer] { await member.room.disconnect() }
    }

    @Test("Subscribing by hand gets what is asked for, and no more")
    func byHand() async throws {
        let author = try await stage.join("author")
        let tracks = [makePattern(name: "left"), makePattern(name: "right")]
        for track in tracks { try await author.room.localParticipant.publish(track) }
        let viewer = try await stage.join("viewer") { $0.isAutomaticSubscriptionEnabled = false }
        let theirs = try await eventual("the author is there") { await viewer.room.remoteParticipants.first }
        let right = try #require(theirs.videoTracks.first { $0.name == "right" })
        try await eventually("pictures are captured") { tracks[1].statistics.framesDropped[.notWanted] >= 3 }
        #expect(tracks.map(\.statistics.framesEncoded) == [0, 0])

        await viewer.room.subscribe(to: right)
        try await eventually("frames are decoded") { right.statistics.framesDecoded >= 5 }
        #expect(try await viewer.subscribedTrack() === right)
        #expect(tracks[0].statistics.framesEncoded == 0)
        #expect(right.statistics.timeToFirstFrame != nil)

        await viewer.room.unsubscribe(from: right)
        _ = try await viewer.event("the end is told") { if case .trackUnsubscribed = $0 { true } else { nil } }
        let received = right.statistics.framesReceived
        let dropped = tracks[1].statistics.framesDropped[.notWanted]
        try await eventually("nothing is wanted") {
            tracks[1].statistics.framesDropped[.notWanted] >= dropped + 5
        }
        #expect(right.statistics.framesReceived == received)

        await viewer.room.subscribe(to: right)
        try await eventually("frames come again") { right.statistics.framesDecoded >= received + 3 }
        let keyframes = tracks[1].statistics.keyframes
        #expect(keyframes >= 2 && keyframes <= 2 + right.statistics.framesDropped, "\(keyframes)")
        for member in [author, viewer] { await member.room.disconnect() }
        #expect(tracks.map(\.statistics.unaccounted) == [0, 0])
    }

    @Test("A track that cannot be subscribed to is refused by an event, and nothing else happens")
    func unknownTrack() async throws {
        let author = try await stage.join("author")
        let track = makePattern()
        try await author.room.localParticipant.publish(track)
        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack()
        await author.room.localParticipant.unpublish(track)
        _ = try await viewer.event("the track goes") { if case .trackUnpublished = $0 { true } else { nil } }
        await viewer.room.subscribe(to: remote)
        let error = try await viewer.event("it is refused") { event -> RoomError? in
            if case .requestRefused(let error) = event { error } else { nil }
        }
        #expect(error.code == .refused)
        #expect(error.serverCode == 4404)
        #expect(await viewer.room.state == .connected)
        for member in [author, viewer] { await member.room.disconnect() }
    }
}
