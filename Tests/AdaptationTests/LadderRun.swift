import MediaCore

@testable import Adaptation

/// A ladder in a loop with a model of an encoder: the bits of a picture are in inverse proportion to the step size.
struct LadderRun {
    var ladder: DegradationLadder
    /// The step size at 1 Mbit/s for a million pixels at 30 frames a second; `nil` for an encoder that tells none.
    var complexity: Double?
    var quantizer: UInt8?
    var cpuSteps = 0
    var used: Bitrate?
    var now = MonotonicInstant(microseconds: 7_000_000)
    var changes: [(time: Int64, step: DegradationLadder.Step)] = []
    var step: DegradationLadder.Step?

    init(
        _ width: Int = 1280,
        _ height: Int = 720,
        frameRate: Int = 30,
        preference: DegradationPreference = .maintainFramerate,
        complexity: Double? = nil,
        highestBitrate: Bitrate? = nil
    ) {
        ladder = DegradationLadder(
            largest: Dimensions(width: width, height: height),
            frameRate: FrameRate(frameRate),
            preference: preference,
            highestBitrate: highestBitrate
        )
        self.complexity = complexity
    }

    /// Encodes frames for `seconds`, each at the bitrate (kbit/s) that `bitrate` gives for the time since the
    /// beginning.
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
        cpu.add(to: &cpuSteps)
        let bitrate = Bitrate(bitsPerSecond: Int(kilobits * 1000))
        let new = ladder.update(
            bitrate: bitrate,
            quantizer: quantizer,
            used: used,
            cpuSteps: cpuSteps,
            bounds: bounds,
            at: now
        )
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

extension CPUController.Verdict {
    /// Changes the number of steps down as the verdict says.
    func add(to steps: inout Int) {
        switch self {
        case .overused(let more): steps += more
        case .normal: break
        case .underused(let fewer): steps = max(0, steps - fewer)
        }
    }
}
