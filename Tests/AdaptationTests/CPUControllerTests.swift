import MediaCore
import TestTools
import Testing

@testable import Adaptation

/// An encoder whose time grows with the pixels, on a core that others use too, with its controller and its ladder.
private struct EncoderModel {
    var controller = CPUController()
    var ladder = DegradationLadder(
        largest: Dimensions(width: 1280, height: 720),
        frameRate: FrameRate(30),
        preference: .maintainFramerate
    )
    /// Milliseconds for a frame of full size on an idle core.
    var fullFrame: Double
    var now = MonotonicInstant(microseconds: 3_000_000)
    var size = Dimensions(width: 1280, height: 720)
    var limitation = QualityLimitation()
    var cpuSteps = 0
    var changes: [MonotonicInstant] = []

    mutating func run(_ seconds: Double, slowedBy factor: Double, _ random: inout SeededGenerator) {
        let end = now + .milliseconds(Int(seconds * 1000))
        while now < end {
            let step = ladder.update(
                bitrate: .kilobitsPerSecond(2500),
                quantizer: 20,
                cpuSteps: cpuSteps,
                bounds: (nil, nil),
                at: now
            )
            if step.dimensions != size { changes.append(now) }
            size = step.dimensions
            limitation.update(step.limitation, at: now)
            let time = fullFrame * Double(size.area) / 921_600 * factor * Double.random(in: 0.7...1.3, using: &random)
            let duration = Duration.microseconds(Int64(time * 1000))
            let interval = FrameRate(30).interval
            controller.encoded(duration, interval: interval, at: now + duration).add(to: &cpuSteps)
            // What does not fit into an interval takes the next one.
            now += interval * Int((duration / interval).rounded(.up))
        }
    }
}

@Suite("CPU controller", .timeLimit(.minutes(1)))
struct CPUControllerTests {
    @Test("A busy core: a step down within 10 s; when it is idle again, up", arguments: 0..<10 as Range<UInt64>)
    func sharedCore(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = EncoderModel(fullFrame: Double.random(in: 16...20, using: &random))
        model.run(30, slowedBy: 1, &random)
        #expect(model.changes.isEmpty && model.limitation.reason == .none)
        let busy = model.now
        model.run(30, slowedBy: 2.2, &random)
        #expect(model.changes.first.map { $0.duration(since: busy) <= .seconds(10) } == true)
        #expect(model.limitation.reason == .cpu && model.size.area < 921_600)
        let spent = model.limitation.duration(of: .cpu, at: model.now)
        #expect(spent > .seconds(20) && spent <= .seconds(30))
        model.run(60, slowedBy: 1, &random)
        #expect(model.size.area == 921_600 && model.limitation.reason == .none)
    }

    @Test(
        "A time that is far too busy costs one change; within 15 s after it, another one leads to the full size",
        arguments: 0..<10 as Range<UInt64>
    )
    func freedCore(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = EncoderModel(fullFrame: Double.random(in: 10...14, using: &random))
        model.run(30, slowedBy: 1, &random)
        model.run(30, slowedBy: 7, &random)
        #expect(model.changes.count == 1 && model.limitation.reason == .cpu)
        model.run(15, slowedBy: 1, &random)
        #expect(model.size.area == 921_600 && model.limitation.reason == .none)
        #expect(model.changes.count == 2)
    }

    @Test("Any constant load settles, or is tried again ever more rarely", arguments: 0..<10 as Range<UInt64>)
    func noFlapping(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = EncoderModel(fullFrame: 30)
        let factor = Double.random(in: 0.5...6, using: &random)
        model.run(200, slowedBy: factor, &random)
        let before = model.changes.count
        model.run(600, slowedBy: factor, &random)
        #expect(model.changes.count - before <= 6, "\(factor): \(model.changes)")
    }

    @Test("Load between the thresholds changes nothing; a short burst does not either")
    func steady() {
        var controller = CPUController()
        var now = MonotonicInstant(microseconds: 0)
        for frame in 0..<3000 {
            now += .microseconds(33_333)
            // 60 %, and every 10 s two frames of 100 ms.
            let time = frame % 300 < 2 ? 100 : 20
            let verdict = controller.encoded(.milliseconds(time), interval: FrameRate(30).interval, at: now)
            #expect(verdict == .normal)
        }
        #expect(controller.load > 0.5 && controller.load < 0.75)
    }

    // With 1 % of a core, 9 s passed between the first step and the second.
    @Test(
        "A core that is all but gone: two steps down within 5 s or 8 frames, and again",
        arguments: [300, 500, 650, 2000]
    )
    func starved(milliseconds: Int64) {
        var controller = CPUController()
        var now = MonotonicInstant(microseconds: 0)
        for _ in 0..<300 {
            now += .microseconds(33_333)
            _ = controller.encoded(.milliseconds(6), interval: FrameRate(30).interval, at: now)
        }
        for _ in 0..<2 {
            let began = now
            var verdict = CPUController.Verdict.normal
            while verdict == .normal {
                now += .milliseconds(milliseconds)
                verdict = controller.encoded(.milliseconds(milliseconds), interval: FrameRate(30).interval, at: now)
            }
            let longest = max(Duration.seconds(5), .milliseconds(8 * milliseconds))
            #expect(verdict == .overused(steps: 2) && now.duration(since: began) <= longest)
        }
    }

    @Test("A frame that was held up while the machine stood still is no overuse", arguments: [0.5, 1, 3, 30])
    func heldUp(seconds: Double) {
        var controller = CPUController()
        var now = MonotonicInstant(microseconds: 0)
        for frame in 0..<900 {
            let time = frame == 400 ? Duration.milliseconds(Int64(seconds * 1000)) : .milliseconds(10)
            now += max(time, .microseconds(33_333))
            let verdict = controller.encoded(time, interval: FrameRate(30).interval, at: now)
            #expect(verdict == .normal)
        }
    }

    @Test("A gap between frames starts the measurement anew")
    func gap() {
        var controller = CPUController()
        var now = MonotonicInstant(microseconds: 0)
        var verdicts: [CPUController.Verdict] = []
        for _ in 0..<40 {
            for _ in 0..<45 {
                now += .microseconds(33_333)
                let interval = FrameRate(30).interval
                verdicts.append(controller.encoded(.milliseconds(60), interval: interval, at: now))
            }
            now += .seconds(2)
        }
        #expect(verdicts.allSatisfy { $0 == .normal })
    }

    @Test("Absurd times do no harm")
    func absurd() {
        var controller = CPUController()
        let durations: [Duration] = [.seconds(-5), .zero, .seconds(Int64.max / 4), .milliseconds(10)]
        let instants: [Int64] = [.max, .min, 0, -1, 5_000_000_000, 0]
        for duration in durations {
            for interval in durations {
                for instant in instants {
                    _ = controller.encoded(duration, interval: interval, at: MonotonicInstant(nanoseconds: instant))
                    #expect(controller.load >= 0 && controller.load <= 4)
                }
            }
        }
    }
}

@Suite("Quality limitation")
struct QualityLimitationTests {
    private let start = MonotonicInstant(nanoseconds: 9_000_000_000)

    @Test("The times add up to the time since the first update", arguments: 0..<10 as Range<UInt64>)
    func durations(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var limitation = QualityLimitation()
        var now = start
        var expected: [QualityLimitation.Reason: Duration] = [:]
        limitation.update(.none, at: now)
        for _ in 0..<100 {
            let passed = Duration.microseconds(Int64.random(in: 0...3_000_000, using: &random))
            expected[limitation.reason, default: .zero] += passed
            now += passed
            limitation.update(QualityLimitation.Reason.allCases.randomElement(using: &random) ?? .none, at: now)
        }
        for reason in QualityLimitation.Reason.allCases {
            #expect(limitation.duration(of: reason, at: now) == expected[reason] ?? .zero)
        }
        let total = limitation.durations(at: now + .seconds(1)).values.reduce(Duration.zero, +)
        #expect(total == now.duration(since: start) + .seconds(1))
    }

    @Test("Nothing counts before the first update, and time that goes back does not either")
    func edges() {
        var limitation = QualityLimitation()
        #expect(limitation.duration(of: .none, at: start) == .zero)
        limitation.update(.cpu, at: start)
        limitation.update(.bandwidth, at: start - .seconds(5))
        #expect(limitation.duration(of: .cpu, at: start) == .zero)
        #expect(limitation.duration(of: .bandwidth, at: start + .seconds(2)) == .seconds(2))
    }
}
