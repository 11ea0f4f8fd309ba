import MediaCore
import Testing

@testable import Adaptation

/// Limits other than the bitrate: CPU, receivers' bounds, and what the application prefers.
@Suite("Degradation ladder, other limits", .timeLimit(.minutes(1)))
struct DegradationLadderLimitTests {
    @Test("The CPU takes one rung for each verdict, gives it back, and is named as the limitation")
    func cpu() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        run.run(5, cpu: .overused(steps: 1)) { _ in 2500 }
        #expect(run.size == "960x540" && run.step?.limitation == .cpu && run.step?.reason == .cpuOverused)
        run.run(5, cpu: .overused(steps: 1)) { _ in 2500 }
        #expect(run.size == "640x360")
        run.run(5, cpu: .underused(steps: 1)) { _ in 2500 }
        #expect(run.size == "960x540" && run.step?.reason == .cpuUnderused)
        run.run(5, cpu: .underused(steps: 1)) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
        run.run(5, cpu: .underused(steps: 1)) { _ in 2500 }
        #expect(run.size == "1280x720")
    }

    // After a busy time, each size took a change of its own, and the budget of a minute was used up half way.
    @Test("Several steps are taken back with one change of the size, to no more than the full one")
    func cpuFreed() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        for _ in 0..<3 { run.run(3, cpu: .overused(steps: 1)) { _ in 2500 } }
        #expect(run.size == "480x270" && run.changes.count == 4)
        run.run(3, cpu: .underused(steps: 2)) { _ in 2500 }
        #expect(run.size == "960x540" && run.changes.count == 5)
        run.run(3, cpu: .underused(steps: 9)) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
    }

    @Test("A step that is taken back while the network limits more is seen when the network allows more again")
    func cpuBehindNetwork() {
        var run = LadderRun(complexity: 60)
        run.run(5) { _ in 2500 }
        run.run(5, cpu: .overused(steps: 1)) { _ in 2500 }
        run.run(20) { _ in 250 }
        #expect(run.size == "480x270" && run.step?.limitation == .bandwidth)
        run.run(5, cpu: .underused(steps: 1)) { _ in 250 }
        #expect(run.size == "480x270" && run.step?.limitation == .bandwidth)
        run.run(30) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
    }

    @Test("A verdict that comes too soon after a change is carried out later")
    func cpuSoon() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        run.run(0.5, cpu: .overused(steps: 1)) { _ in 2500 }
        run.run(0.5, cpu: .overused(steps: 1)) { _ in 2500 }
        #expect(run.size == "960x540")
        run.run(2) { _ in 2500 }
        #expect(run.size == "640x360")
    }

    @Test("Receivers' bounds are kept: size and frame rate, down and up again")
    func bounds() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        let small = Dimensions(width: 640, height: 400)
        run.run(3, bounds: (small, FrameRate(15))) { _ in 2500 }
        #expect(run.size == "640x360" && run.step?.frameRate == FrameRate(15))
        #expect(run.step?.reason == .bounds && run.step?.limitation == .other)
        run.run(3, bounds: (small, nil)) { _ in 2500 }
        #expect(run.size == "640x360" && run.step?.frameRate == FrameRate(30))
        run.run(3) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
    }

    // A still picture lost half of its frames, because its bitrate was below the table's, as often as a wish changed.
    @Test("Another bound that comes to the same size and rate changes nothing")
    func sameBounds() {
        var run = LadderRun(complexity: 0.2)
        run.run(5) { _ in 2500 }
        run.run(5) { _ in 250 }
        #expect(run.size == "1280x720" && run.step?.frameRate == FrameRate(30), "the picture is fine all the same")
        let changes = run.changes.count
        for bound in [Dimensions(width: 1280, height: 720), Dimensions(width: 1200, height: 2000), nil] {
            for rate in [FrameRate(30), FrameRate(60), nil] { run.run(1, bounds: (bound, rate)) { _ in 250 } }
        }
        #expect(run.changes.count == changes)
        // The bound counts from now on.
        run.run(3, bounds: (Dimensions(width: 640, height: 360), nil)) { _ in 250 }
        #expect(run.size == "640x360")
    }

    @Test("Keeping the size, only the frame rate changes; keeping the frame rate, only the size; balanced changes both")
    func preferences() {
        var sharp = LadderRun(preference: .maintainResolution, complexity: 60)
        sharp.run(10) { _ in 2500 }
        sharp.run(30) { _ in 450 }
        #expect(sharp.changes.allSatisfy { $0.step.dimensions == Dimensions(width: 1280, height: 720) })
        #expect(sharp.step.map { $0.frameRate < FrameRate(15) } == true)
        sharp.run(30) { _ in 2500 }
        #expect(sharp.step?.frameRate == FrameRate(30))
        var smooth = LadderRun(preference: .maintainFramerate, complexity: 60)
        smooth.run(10) { _ in 2500 }
        smooth.run(30) { _ in 220 }
        #expect(smooth.changes.allSatisfy { $0.step.frameRate == FrameRate(30) })
        #expect(smooth.step.map { $0.dimensions.width <= 640 } == true)
        var balanced = LadderRun(preference: .balanced, complexity: 60)
        balanced.run(10) { _ in 2500 }
        balanced.run(30) { _ in 220 }
        #expect(balanced.step.map { $0.frameRate <= FrameRate(15) } == true && balanced.size == "640x360")
    }

    // Each change began the history anew: the size stayed at 1280x720 on a path that had fallen to 200 kbit/s.
    @Test(
        "Limits that the application changes all the time keep the size neither up nor down",
        arguments: [0.1, 0.2, 0.5, 0.9, 3],
        [2501.0, 2400, 1700]
    )
    func changingLimits(interval: Double, other: Double) {
        var run = LadderRun(highestBitrate: .kilobitsPerSecond(2500))
        var highest = 2500.0
        func play(_ seconds: Double, _ path: (Double) -> Double) {
            for turn in 0..<Int(seconds / interval) {
                highest = turn % 2 == 0 ? other : 2500
                run.ladder.setLimits(.kilobitsPerSecond(Int(highest)), .maintainFramerate)
                run.run(interval) { min(highest, path(Double(turn) * interval + $0)) }
            }
        }
        play(20) { _ in 2500 }
        #expect(run.size == "1280x720" && run.changes.count == 1, "\(run.changes)")
        play(40) { max(200, 2500 * (1 - $0 / 12)) }
        #expect((run.step?.dimensions.area ?? 0) <= 480 * 270, "\(run.size)")
        play(60) { _ in 2500 }
        #expect(run.size == "1280x720", "\(run.size)")
    }
}
