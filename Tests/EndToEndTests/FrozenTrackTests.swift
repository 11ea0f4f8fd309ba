import MediaCore
import RoomKit
import RoomProtocol
import Synchronization
import TestSupport
import Testing
import Threading

/// A server that sends pictures of a track now and then.
@Suite("Events of a track that freezes", .timeLimit(.minutes(2)))
struct FrozenTrackTests {
    /// What a member was told of the freezes of a track: `nil` for one that begins, and how long it was for one that ends.
    private func told(_ member: Member) -> [Duration?] {
        member.events.compactMap { event -> Duration?? in
            switch event {
            case .trackFrozen: .some(nil)
            case .trackUnfrozen(_, _, let duration): .some(duration)
            default: nil
            }
        }
    }

    private func viewer(of server: ScriptedServer) async throws -> (Member, SocketPeer, RemoteVideoTrack) {
        let member = try await Member(at: server.url)
        return (member, try await server.peer(), try await member.subscribedTrack())
    }

    /// Sends pictures until some more are shown; one from before a stop of this machine is rightly not.
    private func show(
        _ count: Int,
        more pattern: inout EncodedPattern,
        of track: RemoteVideoTrack,
        _ peer: SocketPeer
    ) async throws {
        let before = track.statistics.framesRendered
        try await eventually("pictures are shown") {
            if track.statistics.framesRendered >= before + count { return true }
            for packet in try pattern.next() { peer.send(packet) }
            try await Task.sleep(for: .milliseconds(33))
            return false
        }
    }

    @Test("A track of which nothing comes is frozen until a picture is shown, and each of them is told once")
    func freezes() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer, track) = try await viewer(of: server)
        // Before the first picture, nothing stands still.
        #expect(!track.isFrozen && told(member).isEmpty)
        var pattern = try EncodedPattern(alias: 7)
        try await show(12, more: &pattern, of: track, peer)
        for _ in 0..<2 {
            let before = told(member).count
            try await eventually("it is frozen") { track.isFrozen && told(member).count > before }
            try await show(1, more: &pattern, of: track, peer)
            try await eventually("it is not") { told(member).last.flatMap(\.self) != nil }
        }
        let all = told(member)
        #expect(all.count >= 4 && all.count.isMultiple(of: 2))
        for (index, duration) in all.enumerated() {
            #expect(duration.map { $0 >= .milliseconds(1500) } == (index.isMultiple(of: 2) ? nil : true))
        }
        await member.room.disconnect()
    }

    @Test("A frozen track whose publisher pauses it is frozen no longer, and one that is paused never")
    func paused() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer, track) = try await viewer(of: server)
        var pattern = try EncodedPattern(alias: 7)
        try await show(12, more: &pattern, of: track, peer)
        try await eventually("it is frozen") { track.isFrozen }
        let pause = TrackDisabled(participantId: "PA_theirs", trackId: "TR_theirs")
        peer.tell(.trackDisabled(pause))
        try await eventually("the pause is told, and that the freeze is over") {
            !track.isEnabled && told(member).last.flatMap(\.self) != nil
        }
        // Pictures that were on their way do not begin another one.
        try await show(2, more: &pattern, of: track, peer)
        let before = told(member).count
        try await Task.sleep(for: .seconds(2))
        #expect(!track.isFrozen && told(member).count == before)
        await member.room.disconnect()
    }

    private func picture(_ luma: Int) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: testSize)
        buffer.withMutablePlanes { plane, chromaU, chromaV in
            plane.update(repeating: UInt8(truncatingIfNeeded: luma))
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        return VideoFrame(buffer: buffer, timestamp: MonotonicClock.now)
    }

    @Test("A picture that stands still at its source does not freeze")
    func still() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let track = LocalVideoTrack(writtenAs: "still")
        let publishing = Task { try await robot.room.localParticipant.publish(track) }
        try await eventually("its only picture is taken") { track.write(picture(80)) }
        try await publishing.value
        let remote = try await viewer.subscribedTrack()
        // Shown again each second: without that it would have frozen.
        try await eventually("it is shown for some seconds") { remote.statistics.framesRepeated >= 6 }
        let isDelayed = remote.statistics.freezeCount > 0
        #expect(told(viewer).isEmpty || isDelayed)
        for member in [robot, viewer] { await member.room.disconnect() }
    }

    // Its last picture was shown again with the present as its time, and nobody could see that the feed had stalled.
    @Test("A steady feed of an application that stalls is frozen, and shown again when it goes on")
    func stalledFeed() async throws {
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let track = LocalVideoTrack(writtenAs: "feed")
        let isFeeding = Atomic(true)
        let feeding = Task {
            for luma in 0... {
                if isFeeding.load(ordering: .relaxed) { _ = track.write(picture(luma)) }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        defer { feeding.cancel() }
        try await robot.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        // A feed that a stop of this machine has interrupted is not steady, and fed anew.
        try await eventually("it is frozen") {
            isFeeding.store(true, ordering: .relaxed)
            try await Task.sleep(for: .milliseconds(1500))
            isFeeding.store(false, ordering: .relaxed)
            for _ in 0..<80 where !remote.isFrozen { try await Task.sleep(for: .milliseconds(100)) }
            return remote.isFrozen
        }
        // One that comes now sees how old the picture is.
        try await Task.sleep(for: .milliseconds(1500))
        let latecomer = try await stage.join("latecomer")
        let late = try await latecomer.subscribedTrack()
        let renderer = CountingRenderer()
        late.addRenderer(renderer)
        try await eventually("the latecomer sees it") { renderer.frames >= 1 }
        #expect(remote.isFrozen)
        #expect(try #require(late.statistics.frameAge).maximum > .seconds(3))
        isFeeding.store(true, ordering: .relaxed)
        try await eventually("it goes on") { !remote.isFrozen && told(viewer).last.flatMap(\.self) != nil }
        for member in [robot, viewer, latecomer] { await member.room.disconnect() }
    }
}
