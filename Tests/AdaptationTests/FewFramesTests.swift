import AdaptationSimulation
import MediaCore
import Testing

@testable import Adaptation

/// Sources with few frames a second, or with fewer than they say.
@Suite("Few frames a second", .timeLimit(.minutes(3)))
struct FewFramesTests {
    // Each message of a frame took longer than a silence may and counted as a stall, of which most was left out. The
    // rate stayed ten times too high: pictures were up to 25 s old, for as long as the link stayed thin. Later the last,
    // shorter message of each frame hid the gaps before the others: at 8 frames a second, pictures were up to 1.6 s old.
    @Test(
        "A link that becomes thin is noticed also with few frames a second",
        arguments: [(1, 1200, 1500), (2, 1100, 1450), (3, 800, 1250), (5, 600, 900), (8, 500, 750)],
        [0.1, 0.2, 0.5]
    )
    func thinLink(_ pictures: (aSecond: Int, p50: Int, p95: Int), megabits: Double) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.lane.frameRate = FrameRate(pictures.aSecond)
        let trace = LinkTrace([.init(2.5, seconds: 30), .init(megabits, seconds: 60)])
        let result = LinkSimulation.run(trace, seconds: 90, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 60, to: 90)
        // One picture a second may take most of that second, and the next one waits for it.
        #expect(figures.p50 < pictures.p50 && figures.p95 < pictures.p95, "\(figures)")
        #expect(figures.frameRate > 0.6 * Double(pictures.aSecond), "\(figures)")
        #expect(figures.rate > 0.45 * megabits * 1e6, "\(figures)")
    }

    // The time that its frames take counted as a queue: at 7 pictures a second, 62 percent of 1.5 Mbit/s were used.
    @Test(
        "A camera that is slower than it says, as in the dark, uses a link, and its pictures stay young",
        arguments: [(5, 0.65), (7, 0.68), (10, 0.8), (15, 0.88)],
        [0.3, 0.7, 1.5]
    )
    func slowCamera(_ camera: (framesPerSecond: Int, part: Double), megabits: Double) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.cameraFrameRate = FrameRate(camera.framesPerSecond)
        let result = LinkSimulation.run(.constant(megabits, seconds: 60), seconds: 60, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 20, to: 60)
        #expect(figures.rate > camera.part * megabits * 1e6, "\(figures)")
        #expect(figures.p50 < 400, "\(figures)")
    }

    // Each message came after a gap, which was not its own: the rate was halved again and again.
    @Test(
        "A queue of others, or late acknowledgements, take no more than a part of a few frames' rate",
        arguments: [1, 2, 3],
        [Foreign.acknowledgements(400), .way(300), .way(500)]
    )
    func foreignDelay(framesPerSecond: Int, foreign: Foreign) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 20
        flow.lane.frameRate = FrameRate(framesPerSecond)
        switch foreign {
        case .acknowledgements(let milliseconds): flow.lateness = .step(milliseconds, from: 30)
        case .way(let milliseconds): flow.laterDelay = (20 + milliseconds, 30)
        }
        let result = LinkSimulation.run(.constant(20, seconds: 90), seconds: 90, flows: [flow], log: true)[0]
        // A rate that nothing is asked about stays as it is in any case.
        #expect(samples(of: result) > 30 * framesPerSecond)
        let (before, after, late) = (
            SimulationFigures(result, from: 15, to: 30), SimulationFigures(result, from: 30, to: 60),
            SimulationFigures(result, from: 75, to: 90)
        )
        #expect(after.rate > 0.25 * before.rate, "\(before) and \(after)")
        #expect(late.rate > 0.7 * before.rate, "\(before) and \(late)")
    }

    /// How often something was learnt of the path in the last minute.
    private func samples(of flow: SimulatedFlow) -> Int {
        var controller = UplinkController()
        var count = 0
        for entry in flow.takeLog() {
            let before = controller.lastSample
            _ = controller.apply(entry.input, at: entry.time)
            if entry.time > 30_000_000, controller.lastSample != before { count += 1 }
        }
        return count
    }

    /// A delay that is not the flow's own, in milliseconds.
    enum Foreign: Hashable, Sendable {
        case acknowledgements(Int)
        case way(Int)
    }

    // The gate measured acknowledgements against the shortest round trip of 30 s: 0.1 to 0.4 Mbit/s until then.
    @Test(
        "A way that becomes longer in both directions is used again ten seconds later",
        arguments: [20, 60],
        [100, 140, 260]
    )
    func longerWay(delay: Int, later: Int) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        flow.laterDelay = (later, 30)
        let result = LinkSimulation.run(.constant(20, seconds: 60), seconds: 60, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 50, to: 60)
        #expect(figures.rate > 2.2e6 && figures.frameRate > 28, "\(figures)")
        #expect(figures.p95 < later + 50, "\(figures)")
    }
}
