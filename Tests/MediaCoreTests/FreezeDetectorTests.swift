import MediaCore
import TestTools
import Testing

@Suite("Freeze detector")
struct FreezeDetectorTests {
    private let start = MonotonicInstant(nanoseconds: 5_000_000_000)

    /// What the detector says of frames with these gaps, in milliseconds.
    private func freezes(_ gaps: [Int]) -> (detector: FreezeDetector, ended: [Duration?]) {
        var detector = FreezeDetector()
        var now = start
        detector.shown(at: now)
        var ended: [Duration?] = []
        for gap in gaps {
            now += .milliseconds(gap)
            ended.append(detector.shown(at: now))
        }
        return (detector, ended)
    }

    @Test("A gap of 150 ms more than the average is a freeze, from the fifth gap on")
    func aFreeze() {
        let early = freezes([33, 33, 33, 800])
        #expect(early.detector.count == 0)
        let (detector, ended) = freezes([33, 33, 33, 33, 800, 33, 33])
        #expect(ended == [nil, nil, nil, nil, .milliseconds(800), nil, nil])
        #expect(detector.count == 1 && detector.totalDuration == .milliseconds(800))
    }

    @Test("A slow video does not freeze by a gap of less than three times its average")
    func aSlowVideo() {
        let steady = Array(repeating: 200, count: 40)
        // The average of 30 gaps includes the last one: 3 × (29 × 200 + g) / 30 = g for g = 644.4.
        #expect(freezes(steady + [644]).detector.count == 0)
        #expect(freezes(steady + [645]).detector.count == 1)
    }

    @Test("A pause is no freeze, and time that goes back is none either")
    func pauses() {
        var detector = freezes(Array(repeating: 33, count: 10)).detector
        detector.paused()
        detector.shown(at: start + .seconds(60))
        #expect(detector.count == 0)
        detector.shown(at: start)
        detector.shown(at: start + .seconds(60) + .milliseconds(33))
        #expect(detector.count == 0)
    }

    @Test("A standstill is worth a word after 1.5 s, or after three intervals if that is longer")
    func standstill() {
        func wait(_ gaps: [Int], expected: Int = 0) -> Duration? {
            let last = start + .milliseconds(gaps.reduce(0, +))
            return freezes(gaps).detector.standstill(expectedGap: .milliseconds(expected))?.duration(since: last)
        }
        #expect(FreezeDetector().standstill(expectedGap: .zero) == nil)
        #expect(wait(Array(repeating: 33, count: 40)) == .milliseconds(1500))
        #expect(wait(Array(repeating: 600, count: 40)) == .milliseconds(1800))
        #expect(wait(Array(repeating: 5000, count: 40), expected: 33) == .seconds(15))
        // While little is known, a source may be as slow as one of which the picture is repeated.
        #expect(wait([33, 33]) == .seconds(3) && wait([33, 33], expected: 33) == .seconds(3))
        #expect(wait([], expected: 10_000) == .seconds(30))
        var detector = freezes(Array(repeating: 33, count: 40)).detector
        detector.paused()
        #expect(detector.standstill(expectedGap: .zero) == nil)
        // A picture that stands still is repeated each second.
        for number in 0..<3 as Range<UInt32> {
            let frame = FreezeDetector.Frame(number: number, simulcastLayer: 0, isRepeat: number > 0)
            detector.shown(frame, at: start + .seconds(60 + Int(number)))
        }
        #expect(detector.standstill(expectedGap: .seconds(10)) == start + .milliseconds(64_500))
    }

    // A viewer of a slow track was told of a freeze between each two of its first pictures.
    @Test("A standstill is worth a word only after what is known of the pictures, and what is wished for")
    func slowStandstill() {
        let start = start
        var slow = FreezeDetector()
        for second in [0, 10] { slow.shown(at: start + .seconds(second)) }
        #expect(slow.standstill(expectedGap: .milliseconds(33)) == start + .seconds(10 + 30))
        let fast = freezes(Array(repeating: 33, count: 40)).detector
        let last = start + .milliseconds(33 * 40)
        #expect(fast.standstill(expectedGap: .zero, wishedGap: .seconds(2)) == last + .seconds(6))
        #expect(fast.standstill(expectedGap: .seconds(9), wishedGap: .milliseconds(33)) == last + .milliseconds(1500))
    }

    // The average was that of the gaps before the wish, and the first eight gaps after it counted as freezes.
    @Test("Gaps that the viewer wishes for are no freezes, and much longer ones are")
    func wished() {
        var detector = freezes(Array(repeating: 33, count: 40)).detector
        var now = start + .milliseconds(33 * 40)
        for _ in 0..<40 {
            now += .milliseconds(500)
            #expect(detector.shown(at: now, wishedGap: .milliseconds(500)) == nil)
        }
        now += .milliseconds(2000)
        #expect(detector.shown(at: now, wishedGap: .milliseconds(500)) == .milliseconds(2000))
    }

    @Test("A screen that stands still after a motion is no freeze, and one that is silent for three seconds is one")
    func screen() {
        var detector = FreezeDetector(leastAverageGap: .seconds(1))
        var now = start
        detector.shown(at: now)
        for gap in Array(repeating: 67, count: 40) + [200, 200, 200, 1000, 1010, 990, 67, 67] {
            now += .milliseconds(gap)
            #expect(detector.shown(at: now) == nil)
        }
        now += .milliseconds(3100)
        #expect(detector.shown(at: now) == .milliseconds(3100))
    }

    /// What the detector says of frames that follow one another after these times, in milliseconds, some of them
    /// repeats.
    private func freezes(_ frames: [(gap: Int, isRepeat: Bool)], skipping skipped: Set<Int> = []) -> [Int] {
        var detector = FreezeDetector()
        var now = start
        var ended: [Int] = []
        for (number, frame) in frames.enumerated() {
            now += .milliseconds(frame.gap)
            if skipped.contains(number) { continue }
            let shown = FreezeDetector.Frame(number: UInt32(number), simulcastLayer: 0, isRepeat: frame.isRepeat)
            if let freeze = detector.shown(shown, at: now) { ended.append(Int(freeze.wholeMicroseconds / 1000)) }
        }
        return ended
    }

    private let motion = Array(repeating: (gap: 67, isRepeat: false), count: 40)
    private let stillness = [200, 200, 200, 1000, 1010, 990].map { (gap: $0, isRepeat: true) }

    // The log of a screen that stood still had a freeze for each pause.
    @Test("Up to a repeat nothing is missed, and after one the picture may stand still for a second")
    func repeats() {
        #expect(freezes(motion + stillness + motion) == [])
        #expect(freezes(motion + stillness + [(5000, true)] + motion) == [], "the repeat was late")
        #expect(freezes(motion + stillness + [(900, false)] + motion) == [])
        #expect(
            freezes(motion + stillness + [(3100, false)] + motion) == [3100],
            "longer than a still source keeps quiet"
        )
        #expect(freezes(motion + stillness + motion + [(800, false)]) == [800], "a change is shown late")
    }

    @Test("A repeat after a frame that was left out may be the first to show a change: the time before it counts")
    func repeatAfterGap() {
        let frames = motion + [(67, false), (900, true)] + motion
        #expect(freezes(frames) == [])
        #expect(freezes(frames, skipping: [40]) == [967])
    }

    @Test("Random gaps: the same as the definition says", arguments: 0..<40 as Range<UInt64>)
    func definition(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var detector = FreezeDetector()
        var now = start
        var gaps: [Int64] = []
        var expected: [Int64] = []
        detector.shown(at: now)
        for _ in 0..<400 {
            let isLong = Int.random(in: 0..<12, using: &random) == 0
            let gap = Int64.random(in: isLong ? 100_000...900_000 : 0...70_000, using: &random)
            now += .microseconds(gap)
            gaps.append(gap)
            let recent = gaps.suffix(30)
            let average = recent.reduce(0, +) / Int64(recent.count)
            let isFreeze = gaps.count >= 5 && gap >= max(3 * average, average + 150_000)
            if isFreeze { expected.append(gap) }
            #expect(detector.shown(at: now) == (isFreeze ? .microseconds(gap) : nil))
        }
        #expect(!expected.isEmpty)
        #expect(detector.count == expected.count)
        #expect(detector.totalDuration == .microseconds(expected.reduce(0, +)))
    }
}
