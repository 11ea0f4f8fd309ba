import AdaptationSimulation
import MediaCore
import Testing

@testable import Adaptation

/// Sources with few frames a second, or with fewer than they say.
@Suite("Few frames a second", .timeLimit(.minutes(3)))
struct FewFramesTests {
    // Each message of a frame took longer than a silence may and counted as a stall, of which most was left out. The
    // rate stayed ten times too high: pictures were up to 25 s old, for as long as the link stayed thin.
    @Test(
        "A link that becomes thin is noticed also with few frames a second",
        arguments: [1, 2, 3, 5, 8],
        [0.1, 0.2, 0.5]
    )
    func thinLink(framesPerSecond: Int, megabits: Double) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.lane.frameRate = FrameRate(framesPerSecond)
        let trace = LinkTrace([.init(2.5, seconds: 30), .init(megabits, seconds: 60)])
        let result = LinkSimulation.run(trace, seconds: 90, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 60, to: 90)
        // One picture a second may take most of that second, and the next one waits for it.
        let (p50, p95) = framesPerSecond == 1 ? (1500, 2700) : (1000, 2000)
        #expect(figures.p50 < p50 && figures.p95 < p95, "\(figures)")
        #expect(figures.frameRate > 0.6 * Double(framesPerSecond), "\(figures)")
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
        let result = LinkSimulation.run(.constant(20, seconds: 90), seconds: 90, flows: [flow])[0]
        let (before, after, late) = (
            SimulationFigures(result, from: 15, to: 30), SimulationFigures(result, from: 30, to: 60),
            SimulationFigures(result, from: 75, to: 90)
        )
        #expect(after.rate > 0.25 * before.rate, "\(before) and \(after)")
        #expect(late.rate > 0.7 * before.rate, "\(before) and \(late)")
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
