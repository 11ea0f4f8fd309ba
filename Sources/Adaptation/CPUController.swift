package import MediaCore

/// Decides from the time that encoding takes whether the CPU is too slow for what is encoded, or has room for more.
///
/// The rule is libwebrtc's (`video/adaptation/overuse_frame_detector.cc`): the load is the time spent encoding, divided
/// by the time between frames; above 85 % in two checks in a row is too much, below 42 % there is room for the next
/// larger step. libwebrtc averages over 200 frames and checks every 5 s, which takes 15 s and more to notice that
/// another program wants the same core. This one averages over 2 s and checks every second.
///
/// A step up normally waits for 10 s of low load. It waits for 2 s only where the load shows that the CPU has become
/// free: the load fell so far below that of the time just after the step down that the larger step would not be
/// overused now. Then two steps are taken back at once if the load allows it, and so they are taken: each change of the
/// size costs a keyframe, and there are few in a minute.
///
/// Several encoders run on threads of their own. The time that one of them takes contains the time for which it waited
/// for the others to leave the CPU. So the load of all is that of the encoder that has the greatest load.
///
/// A pure value, for all encoders of a connection.
package struct CPUController: Hashable, Sendable {
    /// What to do about the load.
    package enum Verdict: Hashable, Sendable {
        /// Take so many steps down, at least one. Given once; the load is then measured anew.
        case overused(steps: Int)
        /// Stay.
        case normal
        /// Take back so many steps down, at least one. Given once for each step down at most; the load is then measured
        /// anew.
        case underused(steps: Int)
    }

    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// The load above which the CPU is overused (libwebrtc: 85 %).
        package var highLoad = 0.85
        /// The load below which the CPU is underused (libwebrtc: half of the high one).
        package var lowLoad = 0.42
        /// The time constant of the average.
        package var averageTime = 2_000_000.0
        /// The time between two checks.
        package var checkInterval: Int64 = 1_000_000
        /// How long the load is measured before the first check.
        package var settlingTime: Int64 = 2_000_000
        /// How many frames are measured before the first check.
        package var fewestFrames = 5
        /// How many checks in a row must find the CPU overused (libwebrtc: 2).
        package var checksInARow = 2
        /// A gap between the frames of an encoder after which the load is measured anew (libwebrtc: 1.5 s).
        package var longestGap: Int64 = 1_500_000
        /// How long the load must be low before a step up (libwebrtc, after the first overuse: 10 s).
        package var shortestRest: Int64 = 10_000_000
        /// The same after steps up that failed, each of which doubles it (libwebrtc: 240 s).
        package var longestRest: Int64 = 240_000_000
        /// A step up has failed if the CPU is overused within this time after it.
        package var trialTime: Int64 = 60_000_000
        /// The load that the larger step may be expected to have at most, for a step up after `freedRest`.
        package var freedLoad = 0.6
        /// How long the load must then be low before a step up.
        package var freedRest: Int64 = 2_000_000
        /// By how much a step changes the load, where that was not measured: a size has at most 3/5 of the pixels of
        /// the next larger one.
        package var stepLoad = 5.0 / 3
        /// The most steps that are taken, or taken back, at once.
        ///
        /// On a core that others want too, short work is done at once and long work waits: the load of a small encoding
        /// says too little of one that is far larger.
        package var mostStepsAtOnce = 2

        package init() {}
    }

    /// All encodings of a connection together have no more steps that use less of the CPU.
    private static let mostSteps = 64

    /// The load of one encoder.
    fileprivate struct Encoder: Hashable, Sendable {
        var id: Int
        var load: Double
        var frames = 1
        var lastFrame: Int64
        /// The part of the average that one frame is at most, after the first five.
        static let greatestWeight = 0.2
    }

    /// A step down that was asked for and not taken back.
    private struct StepDown: Hashable, Sendable {
        /// The load that led to it.
        var before: Double
        /// The load that was first measured after it; `nil` before.
        var after: Double?
        /// Since when the load has shown that the CPU is free for the larger step; `nil` while it has not.
        var freeSince: Int64?

        /// The load that the larger step may be expected to have.
        ///
        /// Where others want the CPU, a smaller encoding does not lower the load as its pixels say. So what a step
        /// changes is measured when it is taken.
        func expectedLoad(_ load: Double) -> Double { before * load / max(after ?? load, 1e-3) }
    }

    private let settings: Settings
    /// The encoders whose last frame is recent.
    private var encoders: [Encoder] = []
    /// The frames since the load is measured.
    private var frames = 0
    private var measuredSince: Int64 = 0
    private var lastFrame: Int64?
    private var lastCheck: Int64 = 0
    private var highChecks = 0
    /// Since when the load has been low without a break; `nil` while it is not.
    private var lowSince: Int64?
    private var rest: Int64
    private var lastStepUp: Int64?
    private var lastOveruse: Int64?
    /// The steps down that were asked for and not taken back; the last one is taken back first.
    private var stepsDown: [StepDown] = []
    /// The steps that were taken back last, in the order in which they had been taken.
    private var takenBack: [StepDown] = []

    /// The average part of the time between frames that encoding takes: 1 is all of it.
    package var load: Double { encoders.reduce(0) { max($0, $1.load) } }

    /// A controller of encoders that have encoded nothing yet.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        rest = settings.shortestRest
    }

    /// Notes that a frame was encoded at `now`.
    ///
    /// - Parameters:
    ///   - duration: The time that encoding took, on the clock: it includes the time in which others had the CPU.
    ///   - interval: The time between the frames that are to be encoded, so the inverse of the target's frame rate; not
    ///     the time since the frame before, which grows when encoding falls behind.
    ///   - encoder: The encoder's number.
    ///   - now: The time at which encoding ended.
    /// - Returns: What to do about the load.
    package mutating func encoded(
        _ duration: Duration,
        interval: Duration,
        by encoder: Int = 0,
        at now: MonotonicInstant
    ) -> Verdict {
        let time = max(now.microseconds, lastFrame ?? now.microseconds)
        lastFrame = time
        measure(duration.wholeMicroseconds, interval.wholeMicroseconds, by: encoder, at: time)
        guard frames >= settings.fewestFrames, time - measuredSince >= settings.settlingTime,
            time - lastCheck >= settings.checkInterval
        else { return .normal }
        lastCheck = time
        return check(at: time)
    }

    /// Whether the encoder has a part in the load: its last frame is recent.
    package func measures(_ encoder: Int) -> Bool { encoders.contains { $0.id == encoder } }

    /// Keeps the first `count` of the steps that were to be taken back; they are asked for again after another rest.
    package mutating func keepSteps(_ count: Int) {
        for step in takenBack.prefix(count) { push(step) }
        if count >= takenBack.count { lastStepUp = nil }
        takenBack = []
    }

    /// Notes that only `taken` of the `count` steps down that were asked for last were taken.
    ///
    /// The next check measures what they changed.
    package mutating func took(_ taken: Int, of count: Int) {
        guard taken < count else { return }
        stepsDown.removeLast(min(count - taken, stepsDown.count))
        if taken > 0, let last = stepsDown.indices.last { stepsDown[last].after = nil }
    }

    private mutating func push(_ step: StepDown) {
        guard stepsDown.count < Self.mostSteps else { return }
        stepsDown.append(step)
        stepsDown[stepsDown.count - 1].freeSince = nil
    }

    private mutating func measure(_ duration: Int64, _ interval: Int64, by encoder: Int, at time: Int64) {
        // Frame rates beyond 1,000 or below 1 frame a second are no measure of the load.
        let duration = max(0, duration)
        let part = Double(duration) / Double(min(1_000_000, max(1000, interval)))
        let sample = min(part, 4)
        if frames == 0 { encoders.removeAll(keepingCapacity: true) }
        // The gap before the frame, not the time that it took.
        encoders.removeAll { time &- duration &- $0.lastFrame > settings.longestGap }
        guard let index = encoders.firstIndex(where: { $0.id == encoder }) else {
            if encoders.isEmpty {
                frames = 0
                measuredSince = time
                lastCheck = time
                highChecks = 0
                lowSince = nil
            }
            encoders.append(Encoder(id: encoder, load: sample, lastFrame: time))
            frames = min(frames + 1, 1_000_000)
            return
        }
        encoders[index].note(sample, averageTime: settings.averageTime, at: time)
        frames = min(frames + 1, 1_000_000)
    }

    private mutating func check(at time: Int64) -> Verdict {
        if let last = stepsDown.indices.last, stepsDown[last].after == nil { stepsDown[last].after = load }
        if load > settings.highLoad {
            lowSince = nil
            highChecks += 1
            guard highChecks >= settings.checksInARow else { return .normal }
            lengthenRest(at: time)
            lastOveruse = time
            frames = 0
            return .overused(steps: takeSteps())
        }
        highChecks = 0
        guard !stepsDown.isEmpty else {
            lowSince = nil
            return .normal
        }
        lowSince = load < settings.lowLoad ? lowSince ?? time : nil
        let hasRested = lowSince.map { time - $0 >= rest } ?? false
        let steps = isFreed(at: time) ? freedSteps : hasRested ? 1 : 0
        guard steps > 0 else { return .normal }
        lastStepUp = time
        takenBack = Array(stepsDown.suffix(steps))
        stepsDown.removeLast(steps)
        frames = 0
        return .underused(steps: steps)
    }

    /// Notes as many steps down as the load needs; their number.
    private mutating func takeSteps() -> Int {
        var (before, count) = (load, 0)
        while true {
            count += 1
            let after = before / settings.stepLoad
            // The effect of the last step is measured.
            let isLast = after <= settings.highLoad || count >= settings.mostStepsAtOnce
            push(StepDown(before: before, after: isLast ? nil : after))
            guard !isLast else { return count }
            before = after
        }
    }

    /// How many steps a CPU that is free for the last one is free for.
    private var freedSteps: Int {
        var expected = load
        var count = 0
        for step in stepsDown.reversed() {
            expected = max(step.expectedLoad(expected), settings.stepLoad * expected)
            guard count == 0 || expected < settings.freedLoad, count < settings.mostStepsAtOnce else { break }
            count += 1
        }
        return count
    }

    /// Whether the CPU has been free for the larger step for long enough: longer after steps up that failed.
    private mutating func isFreed(at time: Int64) -> Bool {
        let last = stepsDown.count - 1
        let isFree = load < settings.lowLoad && stepsDown[last].expectedLoad(load) < settings.freedLoad
        stepsDown[last].freeSince = isFree ? stepsDown[last].freeSince ?? time : nil
        let needed = settings.freedRest * (rest / max(1, settings.shortestRest))
        return stepsDown[last].freeSince.map { time - $0 >= needed } ?? false
    }

    /// Waits longer before the next step up if the last one has failed, and forgets failures after a long good time.
    private mutating func lengthenRest(at time: Int64) {
        if let lastStepUp, time - lastStepUp < settings.trialTime {
            rest = min(settings.longestRest, 2 * rest)
        } else if let lastOveruse, time - lastOveruse > settings.longestRest {
            rest = settings.shortestRest
        }
    }
}

extension CPUController.Encoder {
    fileprivate mutating func note(_ sample: Double, averageTime: Double, at time: Int64) {
        let elapsed = Double(time - lastFrame)
        // An ordinary mean at first, so that one slow frame at the start does not decide the load.
        // A frame that was held up for a second, as when the machine was stopped, has a bounded weight too.
        let weight = max(min(elapsed / (elapsed + averageTime), Self.greatestWeight), 1 / Double(frames + 1))
        load += min(1, weight) * (sample - load)
        frames = min(frames + 1, 1_000_000)
        lastFrame = time
    }
}
