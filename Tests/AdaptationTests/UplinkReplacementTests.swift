import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import Adaptation

@Suite("Other limits and pictures of another size on an uplink") struct UplinkReplacementTests {
    private func smaller(_ bench: SimulcastBench) -> UplinkController.Lane {
        UplinkController.Lane(
            largestDimensions: Dimensions(width: 800, height: 600),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(2000),
            simulcastLayer: 2
        )
    }

    // All that was known of the encoding was forgotten, its last keyframe too: one with each change was possible.
    @Test("The last keyframe is known still, and so is who receives the encoding")
    func keyframes() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 0.1)
        let id = bench.encodings[2].id
        bench.uplink.replace(id, with: smaller(bench), at: bench.instant)
        #expect(!bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        #expect(bench.uplink.status.lanes.count == 3 && bench.uplink.status.lanes[2].id == id)
        bench.play(seconds: 2)
        #expect(bench.encodings[2].size == Dimensions(width: 800, height: 600))
    }

    @Test("The limit of the CPU holds for the new size too")
    func cpu() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.encodings[2].fullFrame = 40_000
        bench.play(seconds: 12)
        #expect(bench.status(2)?.limitation.reason == .cpu)
        var lane = smaller(bench)
        lane.largestDimensions = Dimensions(width: 1920, height: 1080)
        bench.uplink.replace(bench.encodings[2].id, with: lane, at: bench.instant)
        bench.play(seconds: 0.5)
        #expect(bench.encodings[2].size.map { $0.area < 1280 * 720 } == true)
        #expect(bench.status(2)?.limitation.reason == .cpu)
    }

    /// The largest encoding of the track with other limits for the same pictures.
    private func limited(
        _ kilobits: Int,
        _ preference: DegradationPreference = .balanced
    ) -> UplinkController.Lane {
        UplinkController.Lane(
            largestDimensions: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(kilobits),
            preference: preference,
            simulcastLayer: 2
        )
    }

    @Test("A lower bitrate holds for the next frame, and a higher one soon; neither makes a keyframe")
    func bitrate() throws {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let id = bench.encodings[2].id
        let keyframes = bench.encodings[2].keyframes
        #expect(bench.encodings[2].size == Dimensions(width: 1280, height: 720))
        #expect(try #require(bench.status(2)?.target).bitrate > .kilobitsPerSecond(2000))
        bench.uplink.replace(id, with: limited(700), at: bench.instant)
        #expect(bench.uplink.share(of: id) == .kilobitsPerSecond(700), "no frame was encoded since")
        bench.play(seconds: 0.2)
        let lowered = try #require(bench.status(2)?.target).bitrate
        #expect((.kilobitsPerSecond(690) ... .kilobitsPerSecond(700)).contains(lowered))
        bench.play(seconds: 10)
        bench.uplink.replace(id, with: limited(2500), at: bench.instant)
        bench.play(seconds: 3)
        #expect(try #require(bench.status(2)?.target).bitrate > .kilobitsPerSecond(2000))
        bench.play(seconds: 10)
        #expect(bench.encodings[2].keyframes == keyframes)
    }

    @Test("A bitrate that is too low for the size makes the pictures smaller, with one keyframe")
    func lowBitrate() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let keyframes = bench.encodings[2].keyframes
        bench.uplink.replace(bench.encodings[2].id, with: limited(100), at: bench.instant)
        bench.play(seconds: 10)
        #expect(bench.encodings[2].size.map { $0.area < 1280 * 720 } == true)
        #expect(bench.encodings[2].keyframes == keyframes + 1)
    }

    @Test("A track that the path made smaller goes on with the size and fewer frames if that is preferred now")
    func preference() throws {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.uplink.replace(bench.encodings[2].id, with: limited(2500, .maintainFramerate), at: bench.instant)
        bench.play(seconds: 20, kilobits: 400)
        let before = try #require(bench.status(2)?.target)
        #expect(before.dimensions.area < 1280 * 720 && before.frameRate == FrameRate(30))
        bench.uplink.replace(bench.encodings[2].id, with: limited(2500, .maintainResolution), at: bench.instant)
        bench.play(seconds: 4, kilobits: 400)
        let after = try #require(bench.status(2)?.target)
        #expect(after.dimensions == Dimensions(width: 1280, height: 720) && after.frameRate < FrameRate(30))
        #expect(bench.status(2)?.reason == .preference)
    }

    @Test("Another preference changes nothing of pictures that nothing limits")
    func idlePreference() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let keyframes = bench.encodings[2].keyframes
        for preference in DegradationPreference.allCases {
            bench.uplink.replace(bench.encodings[2].id, with: limited(2500, preference), at: bench.instant)
            bench.play(seconds: 3)
            #expect(bench.status(2)?.target?.dimensions == Dimensions(width: 1280, height: 720))
        }
        #expect(bench.encodings[2].keyframes == keyframes)
    }

    @Test("A log with a change of the limits, written and read, replays the same", arguments: [true, false])
    func replay(hasNewSize: Bool) throws {
        var bench = SimulcastBench()
        bench.addTrack(7)
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 5, kilobits: 900)
        var lane = hasNewSize ? smaller(bench) : limited(800, .maintainFramerate)
        lane.track = 7
        lane.lowestBitrate = .kilobitsPerSecond(100)
        bench.uplink.replace(bench.encodings[2].id, with: lane, at: bench.instant)
        bench.play(seconds: 10, kilobits: 3000)
        var entries: [AdaptationLog.Entry] = []
        bench.uplink.takeRecords(into: &entries)
        let log = AdaptationLog(settings: UplinkController.Settings(), entries: entries)
        let read = try AdaptationLog(reading: Array(log.text.utf8))
        #expect(read == log)
        var replay = UplinkReplay(read)
        var replaced = 0
        while let step = replay.next() {
            #expect(step.isSame)
            if case .replaced = step.entry.input { replaced += 1 }
        }
        #expect(replaced == 1)
        #expect(replay.controller.status == bench.uplink.status)
    }

    @Test("A log of an earlier build, whose encodings state neither track nor lowest bitrate, is still read")
    func earlierLog() throws {
        let text = "room adaptation log 1\nsettings\n5 add 640 360 30 1 800000 1 balanced 0\nend 1\n"
        let log = try AdaptationLog(reading: Array(text.utf8))
        guard case .added(let lane)? = log.entries.first?.input else {
            Issue.record("\(log.entries)")
            return
        }
        #expect(lane.track == 0 && lane.lowestBitrate == nil)
    }
}
