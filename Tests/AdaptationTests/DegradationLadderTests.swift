import MediaCore
import TestTools
import Testing

@testable import Adaptation

/// A ladder in a loop with a model of an encoder: the bits of a picture are in inverse proportion to the step size.
private struct LadderRun {
    var ladder: DegradationLadder
    /// The step size at 1 Mbit/s for a million pixels at 30 frames a second; `nil` for an encoder that tells none.
    var complexity: Double?
    var quantizer: UInt8?
    var used: Bitrate?
    var now = MonotonicInstant(microseconds: 7_000_000)
    var changes: [(time: Int64, step: DegradationLadder.Step)] = []
    var step: DegradationLadder.Step?

    init(
        _ width: Int = 1280,
        _ height: Int = 720,
        preference: DegradationPreference = .maintainFramerate,
        complexity: Double? = nil,
        highestBitrate: Bitrate? = nil
    ) {
        ladder = DegradationLadder(
            largest: Dimensions(width: width, height: height),
            frameRate: FrameRate(30),
            preference: preference,
            highestBitrate: highestBitrate
        )
        self.complexity = complexity
    }

    /// Encodes frames for `seconds`, each at the bitrate (kbit/s) that `bitrate` gives for the time since the beginning.
    mutating func run(
        _ seconds: Double,
        framesPerSecond: Int = 30,
        cpu: CPUController.Verdict = .normal,
        bounds: (dimensions: Dimensions?, frameRate: FrameRate?) = (nil, nil),
        _ bitrate: (Double) -> Double
    ) {
        var verdict = cpu
        for frame in 0..<Int(seconds * Double(framesPerSecond)) {
            update(bitrate(Double(frame) / Double(framesPerSecond)), cpu: verdict, bounds: bounds)
            verdict = .normal
            now += .microseconds(1_000_000 / Int64(framesPerSecond))
        }
    }

    mutating func update(
        _ kilobits: Double,
        cpu: CPUController.Verdict = .normal,
        bounds: (dimensions: Dimensions?, frameRate: FrameRate?) = (nil, nil)
    ) {
        let bitrate = Bitrate(bitsPerSecond: Int(kilobits * 1000))
        let new = ladder.update(bitrate: bitrate, quantizer: quantizer, used: used, cpu: cpu, bounds: bounds, at: now)
        if new.dimensions != step?.dimensions || new.frameRate != step?.frameRate {
            changes.append((now.microseconds, new))
        }
        step = new
        guard let complexity else { return }
        let pixels = Double(new.dimensions.area) / 1e6 * new.frameRate.framesPerSecond / 30
        let size = complexity * pixels / max(0.001, kilobits / 1000)
        let quantizer = (4...127 as ClosedRange<UInt8>).first { QuantizerAverage.stepSize($0) >= size } ?? 127
        self.quantizer = quantizer
        // At its finest, an encoder uses less than it may.
        used = Bitrate(
            bitsPerSecond: Int(min(kilobits * 1000, complexity * pixels / QuantizerAverage.stepSize(quantizer) * 1e6))
        )
    }

    var size: String { step.map { "\($0.dimensions)" } ?? "" }
}

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

    // A small picture that is as fine as it can be uses so little that the rate of the path never shows.
    @Test(
        "A picture that is fine becomes as large as it can be fine, whatever the table says",
        arguments: [500, 700.0, 950]
    )
    func fineAgain(kilobits: Double) {
        var run = LadderRun(complexity: 120)
        run.run(10) { _ in 2500 }
        run.run(20) { _ in 450 }
        #expect(run.size == "640x360" || run.size == "480x270")
        let before = run.changes.count
        run.complexity = 8
        run.run(60) { _ in kilobits }
        #expect(run.size == "1280x720" && run.changes.count == before + 1, "\(run.changes)")
    }

    @Test("A still scene keeps its size at a low bitrate, and loses it when it moves")
    func stillScene() {
        var run = LadderRun(complexity: 2)
        run.run(10) { _ in 2500 }
        run.run(20) { _ in 450 }
        #expect(run.size == "1280x720" && run.changes.count == 1)
        run.complexity = 120
        run.run(6) { _ in 450 }
        #expect(run.size == "640x360" || run.size == "480x270")
        #expect(run.step?.limitation == .bandwidth)
    }

    @Test("A picture that stays too coarse shrinks, although the bitrate allows its size, and does not grow again")
    func coarse() {
        var run = LadderRun(complexity: 450)
        run.run(30) { _ in 2000 }
        #expect(run.step?.reason == .quantizerHigh && run.size == "960x540")
        run.run(300, framesPerSecond: 10) { _ in 2000 }
        #expect(run.changes.count == 2)
        // Noise, which no size makes fine.
        run.complexity = 100_000
        run.run(30) { _ in 2000 }
        #expect(run.size == "320x180")
    }

    @Test("A cap that is low for the size keeps the size, unless the pictures are too coarse")
    func lowCap() {
        var run = LadderRun(complexity: 60, highestBitrate: .kilobitsPerSecond(500))
        run.run(30) { _ in 500 }
        #expect(run.size == "1280x720" && run.changes.count == 1)
        run.run(30) { _ in 200 }
        #expect(run.size == "640x360")
        var coarse = LadderRun(complexity: 200, highestBitrate: .kilobitsPerSecond(500))
        coarse.run(30) { _ in 500 }
        #expect(coarse.step?.reason == .quantizerHigh)
    }

    @Test("An encoder that tells no quantizer follows the bitrate alone")
    func noQuantizer() {
        var run = LadderRun()
        run.run(10) { _ in 2500 }
        run.run(10) { _ in 700 }
        #expect(run.size == "960x540")
    }

    @Test("The CPU takes one rung for each verdict, gives it back, and is named as the limitation")
    func cpu() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        run.run(5, cpu: .overused) { _ in 2500 }
        #expect(run.size == "960x540" && run.step?.limitation == .cpu && run.step?.reason == .cpuOverused)
        run.run(5, cpu: .overused) { _ in 2500 }
        #expect(run.size == "640x360")
        run.run(5, cpu: .underused) { _ in 2500 }
        #expect(run.size == "960x540" && run.step?.reason == .cpuUnderused)
        run.run(5, cpu: .underused) { _ in 2500 }
        #expect(run.size == "1280x720" && run.step?.limitation == QualityLimitation.Reason.none)
        run.run(5, cpu: .underused) { _ in 2500 }
        #expect(run.size == "1280x720")
    }

    @Test("While the network limits more, the CPU's limit is not lifted")
    func cpuBehindNetwork() {
        var run = LadderRun(complexity: 60)
        run.run(5) { _ in 2500 }
        run.run(5, cpu: .overused) { _ in 2500 }
        run.run(20) { _ in 250 }
        #expect(run.size == "480x270" && run.step?.limitation == .bandwidth)
        run.run(5, cpu: .underused) { _ in 250 }
        run.run(30) { _ in 2500 }
        #expect(run.size == "960x540" && run.step?.limitation == .cpu)
    }

    @Test("A verdict that comes too soon after a change is carried out later")
    func cpuSoon() {
        var run = LadderRun(complexity: 20)
        run.run(5) { _ in 2500 }
        run.run(0.5, cpu: .overused) { _ in 2500 }
        run.run(0.5, cpu: .overused) { _ in 2500 }
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

    @Test("Keeping the size, only the frame rate changes; balanced changes both")
    func preferences() {
        var sharp = LadderRun(preference: .maintainResolution, complexity: 60)
        sharp.run(10) { _ in 2500 }
        sharp.run(30) { _ in 450 }
        #expect(sharp.changes.allSatisfy { $0.step.dimensions == Dimensions(width: 1280, height: 720) })
        #expect(sharp.step.map { $0.frameRate < FrameRate(15) } == true)
        sharp.run(30) { _ in 2500 }
        #expect(sharp.step?.frameRate == FrameRate(30))
        var balanced = LadderRun(preference: .balanced, complexity: 60)
        balanced.run(10) { _ in 2500 }
        balanced.run(30) { _ in 220 }
        #expect(balanced.step.map { $0.frameRate <= FrameRate(15) } == true && balanced.size == "640x360")
    }
}

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
            let verdict: CPUController.Verdict =
                switch Int.random(in: 0..<40, using: &random) {
                case 0: .overused
                case 1: .underused
                default: .normal
                }
            let quantizer: UInt8? =
                Int.random(in: 0..<8, using: &random) == 0 ? nil : .random(in: 0...255, using: &random)
            let step = ladder.update(
                bitrate: Bitrate(bitsPerSecond: Int(rate)),
                quantizer: quantizer,
                cpu: verdict,
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
        run.run(30, framesPerSecond: 10) { _ in centre }
        let settled = run.changes.count
        run.run(300, framesPerSecond: 10) { noisy($0) }
        #expect(run.changes.count <= settled + 1, "\(centre) kbit/s, \(hold) s: \(run.changes)")
    }

    @Test("A bitrate that swings widely for minutes costs fewer and fewer size changes")
    func swings() {
        var run = LadderRun(complexity: 60)
        run.run(600, framesPerSecond: 10) { Int($0 / 15) % 2 == 0 ? 2500 : 450 }
        let firstMinutes = run.changes.count { $0.time < 7_000_000 + 2 * Self.minute }
        let lastMinutes = run.changes.count { $0.time > 7_000_000 + 8 * Self.minute }
        #expect(firstMinutes >= 2 && lastMinutes <= 2, "\(run.changes.map(\.time))")
    }
}
