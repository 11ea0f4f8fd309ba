import MediaCore
import Testing

@testable import Adaptation

@Suite("Degradation ladder", .timeLimit(.minutes(1)))
struct DegradationLadderTests {
    @Test("A good path: the full size from the first second on, and no change after it")
    func goodPath() {
        var run = LadderRun(complexity: 40)
        run.run(60) { $0 < 0.3 ? 600 : 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
        #expect(run.changes.count == 1)
        var larger = LadderRun(1920, 1080, complexity: 40)
        larger.run(1.5) { $0 < 0.5 ? 600 : 4000 }
        #expect(larger.size == "1920x1080" && larger.changes.count == 2)
    }

    @Test("A cut by more than 40 % skips rungs at once, and the full size is back in 8 s with two changes at most")
    func cut() {
        var run = LadderRun(complexity: 40)
        run.run(30) { _ in 2500 }
        run.update(450)
        #expect(run.size == "640x360" && run.step?.reason == .bitrateCut && run.step?.limitation == .bandwidth)
        run.run(30) { _ in 450 }
        #expect(run.changes.count == 2)
        let back = run.now.microseconds
        run.run(30) { min(2500, 450 + 500 * $0) }
        #expect(run.size == "1280x720" && run.step?.reason == .bitrateHigh)
        #expect(run.changes.count <= 4)
        #expect(run.changes.last.map { $0.time - back <= 8_000_000 } == true)
    }

    @Test("A fall that takes half a second costs one size change, and the start's step up does not delay the return")
    func fall() {
        var run = LadderRun(complexity: 40)
        run.run(1) { _ in 500 }
        run.run(9) { _ in 2000 }
        run.run(10) { max(400, 2000 - 3000 * $0) }
        let sizes = run.changes.map { "\($0.step.dimensions)" }
        #expect(sizes == ["960x540", "1280x720", "640x360"])
        let back = run.now.microseconds
        run.run(10) { min(2000, 400 + 600 * $0) }
        #expect(run.size == "1280x720")
        #expect(run.changes.last.map { $0.time - back <= 8_000_000 } == true)
    }

    @Test("A gradual fall of the bitrate takes one rung after the other, each at once when it is needed")
    func gradual() {
        var run = LadderRun(complexity: 60)
        run.run(10) { _ in 2000 }
        run.run(60) { max(100, 2000 - 40 * $0) }
        #expect(
            run.changes.map { "\($0.step.dimensions)" } == [
                "1280x720", "960x540", "640x360", "480x270", "320x180",
            ]
        )
        #expect(run.changes.dropFirst().allSatisfy { $0.step.reason == .bitrateLow })
    }

    @Test("A bitrate that rises slowly costs one change, to the size that it reaches meanwhile")
    func slowRise() {
        var run = LadderRun(complexity: 60)
        run.run(30) { _ in 2500 }
        run.run(30) { _ in 450 }
        #expect(run.size == "640x360")
        let before = run.changes.count
        run.run(30) { min(2500, 650 + 120 * $0) }
        #expect(run.size == "1280x720" && run.changes.count == before + 1, "\(run.changes)")
    }

    // The step up had to wait until the minute was over: 180 lines at 10 frames a second for 45 s on a wide path.
    @Test("A fall that uses up the size changes of a minute delays the way back by 20 s, not by a minute")
    func usedUp() {
        var run = LadderRun(complexity: 60)
        run.run(12) { _ in 2500 }
        run.run(9) { _ in 700 }
        run.run(9) { _ in 2500 }
        run.run(4) { _ in 700 }
        run.run(4) { _ in 350 }
        run.run(4) { _ in 100 }
        #expect(run.changes.count >= 5 && run.size == "320x180", "\(run.changes.map(\.step.dimensions))")
        let back = run.now.microseconds
        run.run(30) { _ in 2000 }
        #expect(run.size == "1280x720" && run.changes.last.map { $0.time - back < 21_000_000 } == true)
    }

    // At 10 frames a second, 480x270 used so few bits that the rate could not show that the path carries more.
    @Test("Where the size may not change yet, the frame rate of the justified size is encoded at once")
    func earlyFrameRate() throws {
        var run = LadderRun(preference: .balanced)
        // Three breakdowns and two ways back are five changes of the size.
        run.run(30) { [2500, 220, 2500, 220, 2500][Int($0 / 6)] }
        run.run(8) { _ in 160 }
        let before = try #require(run.step)
        #expect(before.frameRate <= FrameRate(10))
        let changes = run.changes.count
        run.run(16) { _ in 900 }
        let first = try #require(run.changes.dropFirst(changes).first)
        #expect(first.step.dimensions == before.dimensions && first.step.frameRate > before.frameRate)
        run.run(60) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.frameRate == FrameRate(30))
    }

    @Test("A frame rate that came early goes again when the bitrate falls")
    func earlyFrameRateEnds() throws {
        var run = LadderRun(preference: .balanced)
        run.run(30) { [2500, 220, 2500, 220, 2500][Int($0 / 6)] }
        run.run(8) { _ in 160 }
        let before = try #require(run.step)
        run.run(16) { _ in 900 }
        try #require(run.step.map { $0.frameRate > before.frameRate } == true)
        run.run(5) { _ in 80 }
        #expect(run.step.map { $0.frameRate <= before.frameRate } == true)
    }
}
