import MediaCore
import RelayServer
import RoomKit
import TestSupport
import Testing

@testable import room_client

@Suite("Simulcast from publisher to viewers", .timeLimit(.minutes(3)))
struct SimulcastRoomTests {
    private func viewer(_ identity: String, of stage: Stage, at port: UInt16) async throws -> Member {
        try await stage.join(identity) { $0.url = "ws://127.0.0.1:\(port)" }
    }

    @Test("One viewer: one encoding, of the full size")
    func oneViewer() async throws {
        let stage = try Stage()
        let author = try await stage.join("author")
        let track = makePattern(size: Dimensions(width: 640, height: 480))
        var publishing = VideoPublishOptions()
        publishing.simulcast = true
        try await author.room.localParticipant.publish(track, options: publishing)
        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack()
        try await eventually("the full size is shown") {
            remote.statistics.dimensions == Dimensions(width: 640, height: 480)
        }
        #expect(track.statistics.layers.map { $0.framesEncoded > 0 } == [false, true])
        #expect(remote.statistics.simulcastLayer == 1)
        await viewer.room.disconnect()
        await author.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("A fast and a slow viewer get different encodings; when the slow one leaves, its encoding ends")
    func fastAndSlow() async throws {
        let stage = try Stage(isLenient: false)
        let directory = try TemporaryDirectory()
        let link = try ThinLink(to: stage.server.port, rate: .kilobitsPerSecond(350))
        defer { link.stop() }
        let author = try await stage.join("author")
        // The pattern takes less than the thin link carries.
        let track = LocalVideoTrack(
            source: NoiseSource(dimensions: Dimensions(width: 320, height: 240), frameRate: FrameRate(15))
        )
        var publishing = VideoPublishOptions()
        publishing.simulcast = true
        publishing.maxBitrate = .kilobitsPerSecond(1500)
        try await author.room.localParticipant.publish(track, options: publishing)
        let fast = try await stage.join("fast")
        let quick = try await fast.subscribedTrack()
        let slow = try await viewer("slow", of: stage, at: link.port)
        let lagging = try await slow.subscribedTrack()
        let recorder = try TrackRecorder(track: lagging, directory: directory.path, recorderID: "x", format: .ivf)
        try await eventually("the slow one has the small encoding", within: .seconds(60)) {
            let (few, many) = (lagging.statistics, quick.statistics)
            return few.simulcastLayer == 0 && few.framesDecoded > 30 && many.simulcastLayer == 1
        }
        let frames = lagging.statistics.framesDecoded
        try await eventually("it goes on") { lagging.statistics.framesDecoded > frames + 15 }
        for remote in [lagging, quick] {
            #expect(remote.statistics.framesDroppedByReason[.corrupt] == 0)
        }
        recorder.stop()
        #expect(recorder.statistics.error == nil)
        await slow.room.disconnect()
        var encoded = 0
        try await eventually("the small encoding ends") {
            defer { encoded = track.statistics.layers[0].framesEncoded }
            let before = track.statistics.layers[1].framesEncoded
            try await eventually { track.statistics.layers[1].framesEncoded > before + 10 }
            return track.statistics.layers[0].framesEncoded == encoded
        }
        await fast.room.disconnect()
        await author.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
        // The dump is one file, whose frames all decode, across each change of the encoding.
        let dumps = directory.names.filter { $0.hasSuffix(".ivf") }
        #expect(dumps.count == 1)
        let dump = try DumpReading(directory(try #require(dumps.first)))
        var check = FrameLogCheck()
        for entry in dump.log { _ = check.observe(entry) }
        #expect(dump.log.count == dump.counts.frames && check.layers[0] != nil)
        for layer in check.layers.values { #expect(layer.duplicated == 0 && layer.reordered == 0) }
        for size in dump.pictureSizes { #expect(size.area <= 320 * 240) }
    }
}
