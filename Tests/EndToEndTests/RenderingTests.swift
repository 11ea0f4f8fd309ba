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
        // One picture may be on its way to the first.
        let after = second.frames
        try await eventually("the second goes on") { second.frames >= after + 2 }
        let shown = first.frames
        try await eventually("the second goes on") { second.frames >= after + 7 }
        #expect(first.frames == shown)
        #expect(first.frames <= remote.statistics.framesDecoded)
        #expect(first.sizes == [testSize])
        for member in [viewer, author] { await member.room.disconnect() }
    }

    @Test("A renderer that blocks harms neither other tracks nor the connection, and is skipped to live afterwards")
    func blockedRenderer() async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let tracks = [makePattern(name: "blocked"), makePattern(name: "free")]
        for track in tracks { try await author.room.localParticipant.publish(track) }
        let blocked = try await viewer.subscribedTrack("blocked")
        let free = try await viewer.subscribedTrack("free")
        let gate = Monitor(false)
        let renderer = CountingRenderer {
            _ = gate.wait(until: MonotonicClock.now + patience) { $0 ? true : nil }
        }
        blocked.addRenderer(renderer)
        try await eventually("the renderer blocks") { renderer.frames == 1 }
        let before = free.statistics
        // Two seconds of the other track pass.
        try await eventually("the other track goes on") {
            free.statistics.framesDecoded >= before.framesDecoded + 60
        }
        #expect(renderer.frames == 1)
        #expect(free.statistics.framesReceived - free.statistics.framesDecoded - free.statistics.framesDropped <= 1)
        // Signaling goes its way.
        let witness = try await stage.join("witness")
        _ = try await viewer.event("signaling arrives") { event -> Bool? in
            if case .participantConnected(let who) = event, who.identity == "witness" { true } else { nil }
        }
        #expect(blocked.statistics.framesDropped > 0 || blocked.statistics.framesReceived < 90)
        gate.change { $0 = true }
        try await eventually("pictures are shown again") { renderer.frames >= 15 }
        try await eventually("what was left out is counted") { blocked.statistics.framesDropped > 0 }
        for member in [viewer, author, witness] { await member.room.disconnect() }
        #expect(tracks.map(\.statistics.unaccounted) == [0, 0])
        // One keyframe brings the blocked track back.
        #expect(tracks[0].statistics.keyframes <= 3)
        let statistics = blocked.statistics
        #expect(statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped)
    }
}
