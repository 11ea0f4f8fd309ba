import MediaCore
import TestTools
import Testing

@testable import Adaptation

@Suite("Degradation ladder, properties", .timeLimit(.minutes(2)))
struct DegradationLadderPropertyTests {
    private static let minute: Int64 = 60_000_000

    @Test(
        "Any inputs: even sizes within the limits, 6 changes a minute, 2 s apart except after a cut",
        arguments: 0..<25 as Range<UInt64>
    )
    func anyInputs(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let largest = Dimensions(
            width: Int.random(in: 2...2600, using: &random),
            height: Int.random(in: 2...1500, using: &random)
        )
        let preference = DegradationPreference.allCases.randomElement(using: &random) ?? .balanced
        var ladder = DegradationLadder(largest: largest, frameRate: FrameRate(30), preference: preference)
        var now: Int64 = 0
        var latest: Int64 = 0
        var rate = 1e6
        var bounds: (dimensions: Dimensions?, frameRate: FrameRate?) = (nil, nil)
        var last: Dimensions?
        var changes: [Int64] = []
        var cpuSteps = 0
        for _ in 0..<3000 {
            switch Int.random(in: 0..<60, using: &random) {
            case 0: rate = Double.random(in: 0...6e6, using: &random)
            case 1: rate *= Double.random(in: 0.2...3, using: &random)
            case 2:
                let side = Int.random(in: -1...2000, using: &random)
                bounds.dimensions = Bool.random(using: &random) ? nil : Dimensions(width: side, height: side)
            case 3:
                bounds.frameRate = Bool.random(using: &random) ? nil : FrameRate(.random(in: 1...60, using: &random))
            case 4: now += Int64.random(in: -3_000_000...5_000_000, using: &random)
            default: rate *= Double.random(in: 0.97...1.03, using: &random)
            }
            rate = min(rate, 1e12)
            now += Int64.random(in: 0...60_000, using: &random)
            latest = max(latest, now)
            switch Int.random(in: 0..<40, using: &random) {
            case 0: cpuSteps += 1
            case 1: cpuSteps -= 1
            default: break
            }
            let quantizer: UInt8? =
                Int.random(in: 0..<8, using: &random) == 0 ? nil : .random(in: 0...255, using: &random)
            let step = ladder.update(
                bitrate: Bitrate(bitsPerSecond: Int(rate)),
                quantizer: quantizer,
                cpuSteps: cpuSteps,
                bounds: bounds,
                at: MonotonicInstant(microseconds: now)
            )
            #expect(step.dimensions.width % 2 == 0 && step.dimensions.height % 2 == 0)
            #expect(step.dimensions.width <= largest.width && step.dimensions.height <= largest.height)
            #expect(step.frameRate <= FrameRate(30))
            if let last, last != step.dimensions {
                if let previous = changes.last, step.reason != .bitrateCut { #expect(latest - previous >= 2_000_000) }
                changes.append(latest)
                #expect(changes.count { latest - $0 < Self.minute } <= 6)
            }
            last = step.dimensions
        }
        #expect(last != nil)
    }

    // The size stayed small for good where a step back came while the minute's changes were used up, while the path
    // allowed less, or while a viewer wanted less.
    @Test("When all steps because of the CPU are taken back, the full size returns", arguments: 0..<40 as Range<UInt64>)
    func cpuStepsReturn(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        let rates = [2500.0, 2500, 1000, 400]
        let bounds: [Dimensions?] = [
            nil, nil, Dimensions(width: 640, height: 360), Dimensions(width: 960, height: 540),
        ]
        var steps = 0
        for index in 0..<12 {
            let change = index == 11 ? -steps : max(-steps, Int.random(in: -3...2, using: &random))
            steps += change
            let verdict: CPUController.Verdict =
                change > 0 ? .overused(steps: change) : change < 0 ? .underused(steps: -change) : .normal
            let (rate, bound) = (rates.randomElement(using: &random) ?? 0, bounds.randomElement(using: &random) ?? nil)
            run.run(.random(in: 0.02...8, using: &random), cpu: verdict, bounds: (bound, nil)) { _ in rate }
        }
        run.run(150) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
    }

    @Test("Constant inputs settle", arguments: 0..<40 as Range<UInt64>)
    func settles(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let preference = DegradationPreference.allCases.randomElement(using: &random) ?? .balanced
        let complexity = Double.random(in: 0...1, using: &random)
        var run = LadderRun(preference: preference, complexity: 2 + 1000 * complexity * complexity * complexity)
        let rate = Double.random(in: 50...3000, using: &random)
        run.run(60, framesPerSecond: 5) { _ in rate }
        let settled = run.changes.count
        run.run(300, framesPerSecond: 5) { _ in rate }
        #expect(run.changes.count == settled, "\(preference), \(rate) kbit/s, \(run.complexity ?? 0): \(run.changes)")
    }

    @Test(
        "Noise of ±15 % around any threshold does not change the size, fast or slow",
        arguments: 0..<25 as Range<UInt64>
    )
    func noise(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rungs = LadderRungs(
            largest: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(30),
            preference: .maintainFramerate
        )
        let threshold = rungs[Int.random(in: 0..<4, using: &random)].needed / 1000
        let centre = threshold * Double.random(in: 0.8...1.3, using: &random)
        // Seconds for which the noise keeps its value: from a frame to half a minute.
        let holds = [0.1, 0.3, 1, 3, 7, 15, 30]
        let hold = holds.randomElement(using: &random) ?? 1
        var run = LadderRun(complexity: 60)
        var value = centre
        var until = 0.0
        func noisy(_ time: Double) -> Double {
            if time >= until {
                value = centre * Double.random(in: 0.85...1.15, using: &random)
                until = time + hold
            }
            return value
        }
        run.run(12, framesPerSecond: 10) { _ in centre }
        let settled = run.changes.count
        run.run(300, framesPerSecond: 10) { noisy($0) }
        #expect(run.changes.count <= settled + 1, "\(centre) kbit/s, \(hold) s: \(run.changes)")
    }

    // At 640x480 and 200 frames a second, 15 were encoded: the table's next step. So few take so little of the bitrate that
    // nothing led up again.
    @Test(
        "A faster source is encoded as large and with as many frames as a slower one at the same bitrate",
        arguments: [60, 100, 150, 240],
        [DegradationPreference.balanced, .maintainResolution]
    )
    func fasterSources(frameRate: Int, preference: DegradationPreference) throws {
        for (width, height) in [(320, 240), (640, 480), (1280, 720)] {
            for kilobits in [200.0, 1000, 1700, 4000] {
                func last(_ frameRate: Int, _ complexity: Double?) throws -> DegradationLadder.Step {
                    var run = LadderRun(
                        width,
                        height,
                        frameRate: frameRate,
                        preference: preference,
                        complexity: complexity,
                        highestBitrate: .kilobitsPerSecond(4000)
                    )
                    run.run(30, framesPerSecond: frameRate) { min(kilobits, 600 + 100 * $0) }
                    return try #require(run.step)
                }
                for complexity in [nil, 1, 20] as [Double?] {
                    let (fast, slow) = (try last(frameRate, complexity), try last(30, complexity))
                    let isAsGood =
                        fast.frameRate >= slow.frameRate && fast.dimensions.area >= slow.dimensions.area
                    #expect(isAsGood, "\(width)x\(height), \(kilobits) kbit/s, \(complexity as Any): \(fast), \(slow)")
                }
            }
        }
    }

    @Test("A bitrate that swings widely for minutes costs fewer and fewer size changes")
    func swings() {
        var run = LadderRun(complexity: 60)
        run.run(600, framesPerSecond: 10) { Int($0 / 15) % 2 == 0 ? 2500 : 450 }
        let firstMinutes = run.changes.count { $0.time < 7_000_000 + 2 * Self.minute }
        let lastMinutes = run.changes.count { $0.time > 7_000_000 + 8 * Self.minute }
        #expect(firstMinutes >= 2 && lastMinutes <= 2, "\(run.changes.map(\.time))")
    }

    // Each failure doubled the wait up to a minute, however short the times with a high bitrate had been.
    @Test("After many short rises that failed, a bitrate that stays high is used within 12 s")
    func staysHigh() throws {
        var run = LadderRun(complexity: 60)
        run.run(240, framesPerSecond: 10) { Int($0 / 5) % 2 == 0 ? 2500 : 450 }
        let high = run.now.microseconds
        run.run(40, framesPerSecond: 10) { _ in 2500 }
        let full = try #require(run.changes.first { $0.time >= high && $0.step.dimensions.area == 1280 * 720 })
        #expect(full.time - high < 12_000_000)
    }

    @Test(
        "However the application changes its limits, sizes are even, and change six times a minute at most",
        arguments: 1...20
    )
    func limits(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var run = LadderRun(preference: .balanced, highestBitrate: .kilobitsPerSecond(2500))
        var kilobits = 1000.0
        for _ in 0..<4000 {
            if Int.random(in: 0..<20, using: &random) == 0 {
                let preference = try #require(DegradationPreference.allCases.randomElement(using: &random))
                run.ladder.setLimits(.kilobitsPerSecond(.random(in: 10...40_000, using: &random)), preference)
            }
            if Int.random(in: 0..<10, using: &random) == 0 { kilobits = .random(in: 10...4000, using: &random) }
            run.quantizer = .random(in: 0...127, using: &random)
            run.cpuSteps = .random(in: 0...3, using: &random)
            run.update(kilobits)
            run.now += .milliseconds(.random(in: 1...200, using: &random))
        }
        let resized = zip(run.changes, run.changes.dropFirst()).filter { $0.step.dimensions != $1.step.dimensions }
        let times = resized.map { $1.time }
        #expect(run.changes.allSatisfy { $0.step.dimensions.width % 2 == 0 && $0.step.dimensions.height % 2 == 0 })
        #expect(times.allSatisfy { time in times.count { (0..<Self.minute).contains(time - $0) } <= 6 })
    }
}
