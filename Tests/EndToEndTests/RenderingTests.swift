import MediaCore
import RoomKit
import TestSupport
import Testing
import Threading

@Suite("Renderers", .timeLimit(.minutes(2)))
struct RenderingTests {
    let stage: Stage

    init() throws {
        stage = try Stage()
    }

    @Test("A renderer gets pictures of the published size from when it is added to when it is removed")
    func addAndRemove() async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        try await author.room.localParticipant.publish(makePattern())
        let remote = try await viewer.subscribedTrack()
        let (first, second) = (CountingRenderer(), CountingRenderer())
        remote.addRenderer(first)
        remote.addRenderer(first)
        try await eventually("the first is shown pictures") { first.frames >= 5 }
        remote.addRenderer(second)
        try await eventually("the second is shown pictures") { second.frames >= 5 }
        remote.removeRenderer(first)
        let (shown, after) = (first.frames, second.frames)
        try await eventually("the second goes on") { second.frames >= after + 7 }
        // One picture may have been on its way to the first, however long its thread took for it.
        #expect(first.frames <= shown + 1)
        #expect(first.frames <= remote.statistics.framesDecoded)
        #expect(first.sizes == [testSize])
        for member in [viewer, author] { await member.room.disconnect() }
    }

    @Test("A renderer that blocks for ever misses pictures; its track, others and the end of the session do not wait")
    func blockedRenderer() async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern()
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        let gate = Monitor(false)
        let blocked = CountingRenderer { _ = gate.wait { $0 ? true : nil } }
        let free = CountingRenderer()
        for renderer in [blocked, free] {
            remote.addRenderer(renderer)
            track.addRenderer(renderer)
        }
        try await eventually("both tracks go on") {
            remote.statistics.framesDecoded >= 40 && free.frames >= 60 && track.statistics.framesEncoded >= 40
        }
        // One call of each track.
        #expect(blocked.frames == 2)
        try await eventually("what it misses is counted") {
            remote.rendererStatistics(of: blocked).map { $0.framesDropped >= 30 && $0.framesRendered == 0 } ?? false
        }
        let encoded = track.statistics
        #expect(encoded.framesDropped[.encoderBusy] + encoded.framesDropped[.late] < encoded.framesCaptured / 4)
        for member in [viewer, author] { await member.room.disconnect() }
        await remote.ended()
        let statistics = remote.statistics
        #expect(statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped)
        #expect(remote.removeRenderer(blocked) != nil && blocked.frames == 2)
        gate.change { $0 = true }
    }
}
